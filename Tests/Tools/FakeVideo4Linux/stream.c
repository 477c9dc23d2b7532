// SPDX-License-Identifier: Apache-2.0
// Buffers and the stream: REQBUFS, QUERYBUF, QBUF, DQBUF, STREAMON, STREAMOFF.
#define _GNU_SOURCE  // memfd_create
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/// Whether this call of its kind is configured to fail.
static bool is_to_fail(device_node *node, int kind) {
  int64_t *left = &node->options.fail_at[kind];
  if (*left == 0) return false;
  return --*left == 0;
}

static bool is_mplane(const device_node *node) {
  return (node->kind->capabilities & V4L2_CAP_VIDEO_CAPTURE_MPLANE) != 0;
}

void free_blocks(fakevideo *machine, bool is_end) {
  memory_block **place = &machine->memory;
  while (*place != NULL) {
    memory_block *block = *place;
    if (!is_end && (block->maps > 0 || !block->is_released)) {
      place = &block->next;
      continue;
    }
    *place = block->next;
    munmap(block->start, block->length);
    free(block);
  }
}

void release_buffers(device_node *node) {
  if (node->buffer_count > 0) {
    // Mappings made by programs themselves stay valid.
    if (node->machine->shares_memory) close(node->memory_file);
    node->memory->is_released = true;
    free_blocks(node->machine, false);
  }
  node->memory = NULL;
  node->buffer_count = 0;
  node->buffer_owner = -1;
  free(node->jpeg);
  node->jpeg = NULL;
}

static uint8_t *make_memory(device_node *node, size_t length) {
  int flags = MAP_SHARED | MAP_ANONYMOUS;
  memory_block *block = calloc(1, sizeof *block);
  if (block == NULL) return NULL;
  node->memory_file = -1;
  if (node->machine->shares_memory) {
    flags = MAP_SHARED;
    node->memory_file = memfd_create("fakevideo", MFD_CLOEXEC);
    if (node->memory_file >= 0 && ftruncate(node->memory_file, (off_t)length) < 0)
      close(node->memory_file), node->memory_file = -1;
  }
  void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, node->memory_file, 0);
  if (memory == MAP_FAILED) {
    if (node->memory_file >= 0) close(node->memory_file);
    free(block);
    return NULL;
  }
  *block = (memory_block){.next = node->machine->memory, .start = memory, .length = length};
  node->memory = node->machine->memory = block;
  return memory;
}

static int request_buffers(device_node *node, int handle, struct v4l2_requestbuffers *request) {
  if (request->type != buffer_type(node) || request->memory != V4L2_MEMORY_MMAP) return -EINVAL;
  if (node->options.busy) return -EBUSY;
  if (node->buffer_count > 0 && node->buffer_owner != handle) return -EBUSY;
  if (node->is_streaming) return -EBUSY;
  if (is_to_fail(node, 0)) return -ENOMEM;
  release_buffers(node);
  if (request->count == 0) return 0;
  uint32_t count = request->count;
  if (count < node->options.least_buffers) count = node->options.least_buffers;
  if (count > node->options.most_buffers) count = node->options.most_buffers;
  if (count == 0) {
    request->count = 0;
    return 0;
  }
  uint32_t length = 0;
  for (uint32_t plane = 0; plane < plane_count(node); plane++) {
    node->plane_length[plane] = (plane_bytes(node, plane) + 4095) / 4096 * 4096;
    length += node->plane_length[plane];
  }
  uint8_t *memory = make_memory(node, (size_t)length * count);
  if (memory == NULL) return -ENOMEM;
  uint32_t fourcc = node->format->fourcc;
  if (fourcc == V4L2_PIX_FMT_MJPEG || fourcc == V4L2_PIX_FMT_JPEG)
    node->jpeg = make_gray_jpeg(
      node->width, node->height, node->options.mjpeg_bytes, &node->jpeg_length,
      &node->jpeg_number);
  for (uint32_t index = 0; index < count; index++) {
    frame_buffer *buffer = &node->buffers[index];
    *buffer = (frame_buffer){.state = WITH_USER, .memory = memory + (size_t)index * length};
    // The JPEG is copied into the buffer once; later only its frame number changes.
    if (node->jpeg != NULL && node->jpeg_length <= length)
      memcpy(buffer->memory, node->jpeg, node->jpeg_length);
  }
  node->buffer_count = request->count = count;
  node->buffer_length = length;
  node->buffer_owner = handle;
  node->queued_start = node->queued_count = node->done_start = node->done_count = 0;
  request->capabilities = V4L2_BUF_CAP_SUPPORTS_MMAP;
  return 0;
}

/// Fills in the caller's v4l2_buffer, single-planar or multi-planar.
static void describe_buffer(const device_node *node, uint32_t index, struct v4l2_buffer *answer) {
  const frame_buffer *buffer = &node->buffers[index];
  answer->index = index;
  answer->flags = V4L2_BUF_FLAG_MAPPED | V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | buffer->flags;
  if (buffer->state == QUEUED) answer->flags |= V4L2_BUF_FLAG_QUEUED;
  if (buffer->state == DONE) answer->flags |= V4L2_BUF_FLAG_DONE;
  answer->field = field_of(node);
  answer->sequence = buffer->sequence;
  int64_t seconds = buffer->microseconds / 1000000;
  int64_t rest = buffer->microseconds % 1000000;
  if (rest < 0) {
    seconds -= 1;
    rest += 1000000;
  }
  answer->timestamp.tv_sec = seconds;
  answer->timestamp.tv_usec = rest;
  answer->memory = V4L2_MEMORY_MMAP;
  uint32_t offset = index * node->buffer_length;
  if (!is_mplane(node)) {
    answer->bytesused = buffer->bytes_used;
    answer->length = node->buffer_length;
    answer->m.offset = offset;
    return;
  }
  // bytesused counts from the start of the plane, including the header of data_offset bytes.
  uint32_t before = node->options.data_offset, left = buffer->bytes_used;
  for (uint32_t plane = 0; plane < plane_count(node); plane++) {
    uint32_t capacity = plane_bytes(node, plane) - before;
    uint32_t used = left < capacity ? left : capacity;
    left -= used;
    answer->m.planes[plane] = (struct v4l2_plane){
      .bytesused = used > 0 ? used + before : 0, .length = node->plane_length[plane],
      .m.mem_offset = offset, .data_offset = before};
    offset += node->plane_length[plane];
  }
  answer->length = plane_count(node);
}

static int check_buffer(const device_node *node, const struct v4l2_buffer *buffer) {
  if (buffer->type != buffer_type(node)) return -EINVAL;
  if (is_mplane(node) && (buffer->length < plane_count(node) || buffer->m.planes == NULL))
    return -EINVAL;
  return 0;
}

static int queue_buffer(device_node *node, struct v4l2_buffer *request) {
  int result = check_buffer(node, request);
  if (result < 0) return result;
  if (request->index >= node->buffer_count || request->memory != V4L2_MEMORY_MMAP) return -EINVAL;
  frame_buffer *buffer = &node->buffers[request->index];
  if (buffer->state != WITH_USER) return -EINVAL;
  if (is_to_fail(node, 1)) return -EIO;
  // Periods that have already ended must not use this buffer, so their frames are generated first.
  generate(node);
  if (node->is_gone) return -ENODEV;
  buffer->state = QUEUED;
  buffer->flags = 0;
  node->queued[(node->queued_start + node->queued_count) % MAX_BUFFERS] = request->index;
  node->queued_count++;
  describe_buffer(node, request->index, request);
  return 0;
}

static int dequeue_buffer(device_node *node, struct v4l2_buffer *request) {
  int result = check_buffer(node, request);
  if (result < 0) return result;
  if (!node->is_streaming) return -EINVAL;
  generate(node);
  if (node->is_broken) return -EIO;
  if (node->done_count == 0) return node->is_gone ? -ENODEV : -EAGAIN;
  if (is_to_fail(node, 2)) return -EIO;
  uint32_t index = node->done[node->done_start];
  node->done_start = (node->done_start + 1) % MAX_BUFFERS;
  node->done_count--;
  node->buffers[index].state = WITH_USER;
  node->dequeued++;
  describe_buffer(node, index, request);
  return 0;
}

/// Whether the mode needs more bandwidth than the bus has.
static bool needs_more_than_bus(const device_node *node) {
  if (node->options.bandwidth == 0) return false;
  double bytes = node->jpeg != NULL ? node->jpeg_length : node->size_image;
  return bytes * node->interval.denominator / node->interval.numerator > node->options.bandwidth;
}

static int switch_on(device_node *node, int handle, uint32_t type) {
  if (type != buffer_type(node)) return -EINVAL;
  if (node->options.busy || (node->buffer_owner >= 0 && node->buffer_owner != handle))
    return -EBUSY;
  if (node->buffer_count == 0) return -EINVAL;
  if (node->options.no_bandwidth || needs_more_than_bus(node)) return -ENOSPC;
  if (is_to_fail(node, 3)) return -EIO;
  if (node->is_streaming) return 0;
  node->is_streaming = true;
  node->is_broken = false;
  // The stream works without a log where its memory cannot be allocated.
  if (node->log == NULL) node->log = calloc(node->options.log_length, sizeof *node->log);
  start_generator(node);
  return 0;
}

static int switch_off(device_node *node, uint32_t type) {
  if (type != buffer_type(node)) return -EINVAL;
  generate(node);
  node->is_streaming = node->is_broken = false;
  node->queued_start = node->queued_count = node->done_start = node->done_count = 0;
  for (uint32_t index = 0; index < node->buffer_count; index++)
    node->buffers[index].state = WITH_USER;
  return 0;
}

int stream_request(device_node *node, int handle, unsigned long request, void *argument) {
  switch (request) {
  case VIDIOC_REQBUFS: return request_buffers(node, handle, argument);
  case VIDIOC_QUERYBUF: {
    struct v4l2_buffer *buffer = argument;
    int result = check_buffer(node, buffer);
    if (result < 0) return result;
    if (buffer->index >= node->buffer_count) return -EINVAL;
    describe_buffer(node, buffer->index, buffer);
    return 0;
  }
  case VIDIOC_QBUF: return queue_buffer(node, argument);
  case VIDIOC_DQBUF: return dequeue_buffer(node, argument);
  case VIDIOC_STREAMON: return switch_on(node, handle, *(uint32_t *)argument);
  case VIDIOC_STREAMOFF: return switch_off(node, *(uint32_t *)argument);
  default: return -ENOTTY;
  }
}
