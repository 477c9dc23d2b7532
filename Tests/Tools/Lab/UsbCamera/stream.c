// SPDX-License-Identifier: Apache-2.0
// The stream: frames at their times, their payloads in packets, faults, and the log.
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
  PAYLOAD_HEADER = 2,
  /// Bytes of a bulk endpoint in a microframe.
  BULK_BYTES = 13 * BULK_PACKET, SUPER_SPEED_BULK_BYTES = 48 * 1024,
};

const char *const fault_names[FAULT_KINDS] = {
  "sent", "skip", "packets", "error-bit", "silent", "truncate", "stuck", "no-end", "mute", "all-packets",
  "header", "oversize", "urb", "late", "unplug", "replug", "overrun",
};

/// The frame duration in nanoseconds.
static double period(const camera *camera) {
  double rate = camera->options.rate;
  return (rate > 0 ? 1e9 / rate : camera->mode.interval * 100.0) * (1 + camera->options.ppm * 1e-6);
}

void start_stream(camera *camera) {
  camera->is_streaming = true;
  camera->first_number = camera->frame_count;
  begin_images(camera);
  camera->bus_time = now();
  camera->frame_time = (double)camera->bus_time + period(camera);
  camera->frame = (frame){0};
  fprintf(camera->options.log, "start %" PRId64 "\n", camera->bus_time / 1000);
}

void stop_stream(camera *camera) {
  if (!camera->is_streaming) return;
  camera->is_streaming = false;
  fprintf(camera->options.log, "stop %" PRId64 "\n", now() / 1000);
  fflush(camera->options.log);
}

static const fault *fault_of(const camera *camera, int64_t number) {
  for (int index = 0; index < camera->options.fault_count; index++) {
    if (camera->options.faults[index].frame == number) return &camera->options.faults[index];
  }
  return NULL;
}

/// Begins the next frame if it is due.
static void begin_frame(camera *camera, int64_t time) {
  while (!camera->frame.is_active && !camera->is_unplugged && camera->frame_time <= (double)time) {
    int64_t number = camera->frame_count;
    const fault *fault = fault_of(camera, number);
    fault_kind kind = fault != NULL ? fault->kind : FAULT_NONE;
    if (kind == FAULT_LATE && camera->paused_number != number) {
      camera->paused_number = number;
      camera->frame_time += (double)fault->amount * 1e6;
      continue;
    }
    camera->frame_count++;
    // A frame that takes long to send leaves no time for the next ones.
    if (kind == FAULT_NONE && camera->frame_time + period(camera) <= (double)time) kind = FAULT_OVERRUN;
    fprintf(camera->options.log, "frame %" PRId64 " %" PRId64 " %s\n", number,
      (int64_t)(camera->frame_time / 1000), fault_names[kind]);
    camera->frame_time += period(camera);
    if (kind == FAULT_UNPLUG || kind == FAULT_REPLUG) {
      camera->is_unplugged = true;
      camera->replug_time = kind == FAULT_REPLUG ? fault->amount : 0;
      return;
    }
    if (kind == FAULT_SKIP || kind == FAULT_OVERRUN) continue;
    if (kind != FAULT_STUCK) camera->frame_id ^= FRAME_ID;
    camera->frame = (frame){
      .is_active = true,
      .number = number,
      .fault = kind,
      .amount = fault != NULL ? fault->amount : 0,
      .id = camera->frame_id,
    };
    number_image(camera, &camera->frame);
    uint32_t length = camera->frame.image_length;
    if (kind == FAULT_HEADER) length = 0;
    if (kind == FAULT_TRUNCATE) length /= 2;
    if (kind == FAULT_OVERSIZE) length = camera->mode.width * camera->mode.height * 2 + 5000;
    camera->frame.length = length;
  }
}

void put_frame(camera *camera, uint8_t *to, uint32_t count) {
  frame *frame = &camera->frame;
  uint32_t rest = frame->image_length > frame->sent ? frame->image_length - frame->sent : 0;
  uint32_t whole = count < rest ? count : rest;
  memcpy(to, frame->bytes + frame->sent, whole);
  memset(to + whole, 0, count - whole);
  frame->sent += count;
}

/// Whether a packet in the middle of the frame has its fault.
static bool is_hit(const frame *frame, fault_kind kind) {
  int64_t first = 4;
  return frame->fault == kind && frame->packet >= first && frame->packet < first + frame->amount;
}

/// Fills an isochronous packet of a microframe; returns its number of bytes.
static uint32_t fill_packet(camera *camera, int64_t time, uint32_t space, uint8_t *to, int32_t *status) {
  begin_frame(camera, time);
  frame *frame = &camera->frame;
  *status = 0;
  if (!frame->is_active || space <= PAYLOAD_HEADER) return 0;
  uint32_t left = frame->length - frame->sent;
  uint32_t count = left < space - PAYLOAD_HEADER ? left : space - PAYLOAD_HEADER;
  to[0] = PAYLOAD_HEADER;
  to[1] = (uint8_t)(END_OF_HEADER | frame->id);
  put_frame(camera, to + PAYLOAD_HEADER, count);
  bool is_silent = frame->fault == FAULT_MUTE || is_hit(frame, FAULT_SILENT);
  bool is_broken = frame->fault == FAULT_ALL_PACKETS || is_hit(frame, FAULT_PACKETS);
  if (is_hit(frame, FAULT_ERROR_BIT)) to[1] |= PAYLOAD_ERROR;
  frame->packet++;
  if (frame->sent >= frame->length) {
    if (frame->fault != FAULT_NO_END) to[1] |= END_OF_FRAME;
    frame->is_active = false;
  }
  if (is_broken) *status = -EXDEV;
  return is_silent || is_broken ? 0 : PAYLOAD_HEADER + count;
}

static void complete_isochronous(camera *camera, urb *urb) {
  static uint8_t data[1 << 20];
  uint32_t actual[ISO_PACKETS];
  int32_t statuses[ISO_PACKETS];
  int64_t time = urb->end - urb->packets * MICROFRAME;
  uint32_t count = 0;
  int32_t status = 0;
  for (uint32_t index = 0; index < urb->packets; index++) {
    actual[index] = fill_packet(
      camera, time + index * MICROFRAME, urb->lengths[index], data + count, &statuses[index]);
    count += actual[index];
    if (camera->frame.fault == FAULT_URB && camera->frame.packet == 5) status = (int32_t)-camera->frame.amount;
  }
  if (status != 0) {
    memset(actual, 0, sizeof actual);
    count = 0;
  }
  complete(camera, urb, status, data, count, actual, statuses);
}

/// The number of bytes of the next bulk request: a frame is one payload, which a short request ends.
static uint32_t bulk_count(const camera *camera, const urb *urb) {
  uint32_t left = camera->frame.length - camera->frame.sent;
  if (camera->options.is_ps3_eye) return ps3_eye_count(left, urb->length);
  if (camera->frame.packet == 0) left += PAYLOAD_HEADER;
  return left < urb->length ? left : urb->length;
}

static void complete_bulk(camera *camera, urb *urb) {
  static uint8_t data[1 << 20];
  frame *frame = &camera->frame;
  uint32_t count = bulk_count(camera, urb), header = 0;
  int32_t status = frame->fault == FAULT_URB && frame->packet == 1 ? (int32_t)-frame->amount : 0;
  uint8_t flags = (uint8_t)(END_OF_HEADER | frame->id | (frame->fault == FAULT_NO_END ? 0 : END_OF_FRAME)
    | (frame->fault == FAULT_ERROR_BIT ? PAYLOAD_ERROR : 0));
  bool is_last = count < urb->length;
  if (camera->options.is_ps3_eye) {
    fill_ps3_eye(camera, flags, data, count);
    is_last = frame->sent >= frame->length;
  } else {
    if (frame->packet == 0) {
      data[0] = PAYLOAD_HEADER;
      data[1] = flags;
      header = PAYLOAD_HEADER;
    }
    put_frame(camera, data + header, count - header);
  }
  frame->packet++;
  if (is_last) frame->is_active = false;
  complete(camera, urb, status, data, status == 0 ? count : 0, NULL, NULL);
}

/// Completes the next bulk request if it is due; returns the time to wait for, or 0 after progress.
///
/// The times are those of a bus that transfers on its own. If this process runs late, a request that
/// was pending in time has the same content as if the process had been on time.
static int64_t run_bulk(camera *camera, urb *urb, int64_t time) {
  int64_t start = camera->bus_time > urb->submitted ? camera->bus_time : urb->submitted;
  if (!camera->frame.is_active) {
    int64_t frame_start = (int64_t)camera->frame_time + 1;
    if (start < frame_start) start = frame_start;
    if (start > time) return start;
    begin_frame(camera, start);
    camera->bus_time = start;
    return 0;
  }
  uint32_t speed = camera->options.is_super_speed ? SUPER_SPEED_BULK_BYTES : BULK_BYTES;
  int64_t end = start + MICROFRAME * (bulk_count(camera, urb) / speed + 1);
  if (end > time) return end;
  camera->bus_time = end;
  complete_bulk(camera, urb);
  return 0;
}

int64_t run_stream(camera *camera) {
  while (camera->is_streaming && !camera->is_unplugged) {
    urb *urb = first_urb(camera, VIDEO_ENDPOINT);
    int64_t time = now();
    if (urb == NULL) return INT64_MAX;
    if (urb->packets > 0) {
      if (urb->end > time) return urb->end;
      complete_isochronous(camera, urb);
    } else {
      int64_t due = run_bulk(camera, urb, time);
      if (due > 0) return due;
    }
  }
  return INT64_MAX;
}
