// SPDX-License-Identifier: Apache-2.0
// Access to the truth log, and functions that only the preloaded library needs.
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int64_t fakevideo_truth_count(fakevideo *machine, int node) {
  if (node < 0 || node >= machine->node_count) return 0;
  pthread_mutex_lock(&machine->lock);
  int64_t count = machine->nodes[node].logged;
  pthread_mutex_unlock(&machine->lock);
  return count;
}

int fakevideo_truth_at(fakevideo *machine, int node, int64_t index, fakevideo_truth *truth) {
  if (node < 0 || node >= machine->node_count) return -EINVAL;
  pthread_mutex_lock(&machine->lock);
  const device_node *one = &machine->nodes[node];
  int64_t kept = one->options.log_length;
  bool is_there = index >= 0 && index < one->logged && index >= one->logged - kept;
  if (is_there) *truth = one->log[index % kept];
  pthread_mutex_unlock(&machine->lock);
  return is_there ? 0 : -ERANGE;
}

fakevideo_counts fakevideo_truth_counts(fakevideo *machine, int node) {
  fakevideo_counts counts = {0};
  if (node < 0 || node >= machine->node_count) return counts;
  pthread_mutex_lock(&machine->lock);
  const device_node *one = &machine->nodes[node];
  for (int fate = 0; fate < FATE_COUNT; fate++) counts.periods += one->fates[fate];
  counts.delivered = one->fates[FAKEVIDEO_DELIVERED];
  counts.corrupt_flag = one->fates[FAKEVIDEO_CORRUPT_FLAG];
  counts.short_frames = one->fates[FAKEVIDEO_SHORT];
  counts.truncated = one->fates[FAKEVIDEO_TRUNCATED];
  counts.lost_start = one->fates[FAKEVIDEO_LOST_START];
  counts.lost_device = one->fates[FAKEVIDEO_LOST_DEVICE];
  counts.lost_kernel = one->fates[FAKEVIDEO_LOST_KERNEL];
  counts.dequeued = one->dequeued;
  pthread_mutex_unlock(&machine->lock);
  return counts;
}

static device_node *node_at(fakevideo *machine, int handle) {
  if (handle < 0 || handle >= MAX_HANDLES || !machine->handles[handle].is_open) return NULL;
  return &machine->nodes[machine->handles[handle].node];
}

int64_t wake_time(fakevideo *machine, int handle) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_at(machine, handle);
  int64_t time = 0;
  // poll(2) returns immediately for a node that does not stream.
  if (node != NULL && node->is_streaming && !node->is_gone && !node->is_broken
      && node->done_count == 0) {
    int64_t due = next_due(node);
    time = node->queued_count == 0 ? INT64_MAX : due;
  }
  pthread_mutex_unlock(&machine->lock);
  return time;
}

int memory_file(fakevideo *machine, int handle, size_t length, int64_t offset) {
  int error = 0;
  void *memory = fakevideo_map(machine, handle, length, offset, &error);
  if (memory == NULL) return error;
  // The mapping only validates the arguments; programs map the file themselves.
  fakevideo_unmap(machine, memory, length);
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_at(machine, handle);
  int file = node == NULL || node->buffer_count == 0 ? -EINVAL : node->memory_file;
  pthread_mutex_unlock(&machine->lock);
  return file;
}

int print_counts(fakevideo *machine, int node, char *text, size_t size) {
  pthread_mutex_lock(&machine->lock);
  const device_node *one = &machine->nodes[node];
  bool was_opened = one->was_opened;
  char controls[2048];
  print_controls(one, controls, sizeof controls);
  pthread_mutex_unlock(&machine->lock);
  if (!was_opened) return 0;
  fakevideo_counts counts = fakevideo_truth_counts(machine, node);
  int64_t corrupt = counts.corrupt_flag + counts.short_frames + counts.truncated;
  return snprintf(
    text, size,
    "{\"node\":\"%s\",\"description\":\"%s\",\"periods\":%" PRId64 ",\"delivered\":%" PRId64
    ",\"corrupt\":%" PRId64 ",\"lost_start\":%" PRId64 ",\"lost_device\":%" PRId64
    ",\"lost_kernel\":%" PRId64 ",\"dequeued\":%" PRId64 ",\"controls\":{%s}}\n",
    one->path, one->kind->name, counts.periods, counts.delivered, corrupt, counts.lost_start,
    counts.lost_device, counts.lost_kernel, counts.dequeued, controls);
}
