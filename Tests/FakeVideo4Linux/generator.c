// SPDX-License-Identifier: Apache-2.0
// Frames as the camera makes them: one for each period, faults and all, each period logged.
#include "model.h"

#include <string.h>

/// The frame duration that the camera really keeps, as a fraction of nanoseconds.
static void real_period(const device_node *node, int64_t *numerator, int64_t *denominator) {
  *numerator = (int64_t)node->interval.numerator * 1000000000;
  *denominator = node->interval.denominator;
  const device_options *options = &node->options;
  if (options->lie > 0) {
    *numerator = (int64_t)(1e9 / options->lie);
    *denominator = 1;
  }
  if (options->dark == 0) return;
  int64_t mode = control_value(node, V4L2_CID_EXPOSURE_AUTO, V4L2_EXPOSURE_APERTURE_PRIORITY);
  bool is_manual = mode == V4L2_EXPOSURE_MANUAL || mode == V4L2_EXPOSURE_SHUTTER_PRIORITY;
  if (is_manual) {
    // An exposure longer than the frame lengthens the frame.
    int64_t exposure = control_value(node, V4L2_CID_EXPOSURE_ABSOLUTE, 0) * 100000;
    if (exposure * *denominator > *numerator) {
      *numerator = exposure;
      *denominator = 1;
    }
  } else if (
    options->dark == 2 || control_value(node, V4L2_CID_EXPOSURE_AUTO_PRIORITY, 1) != 0) {
    *numerator *= 2;
  }
}

static int64_t due(const device_node *node, int64_t period) {
  __int128 offset = (__int128)(period - node->period_base) * node->period_nanoseconds_numerator;
  return node->start + (int64_t)(offset / node->period_nanoseconds_denominator);
}

/// Goes on with another frame duration from the next period on, if it has changed.
static void follow_rate(device_node *node) {
  int64_t numerator, denominator;
  real_period(node, &numerator, &denominator);
  if (numerator == node->period_nanoseconds_numerator
      && denominator == node->period_nanoseconds_denominator)
    return;
  if (node->period_nanoseconds_denominator != 0) node->start = due(node, node->period);
  node->period_base = node->period;
  node->period_nanoseconds_numerator = numerator;
  node->period_nanoseconds_denominator = denominator;
}

int64_t next_due(device_node *node) {
  follow_rate(node);
  return due(node, node->period);
}

void start_generator(device_node *node) {
  node->period = 0;
  node->period_base = 0;
  node->period_nanoseconds_denominator = 0;
  node->period_nanoseconds_numerator = 0;
  // Cameras need a moment before their first frame.
  node->start = machine_now(node->machine) + 20000000;
  node->sequence = node->options.first_sequence;
  node->delayed_gap = 0;
  node->pending_loss = 0;
  node->clock_offset = 0;
  node->next_fault = 40;
  node->random = node->options.seed * 0x2545F4914F6CDD1Du + 1;
}

static void log_period(
  device_node *node, uint8_t fate, uint8_t anomaly, uint32_t sequence, int64_t microseconds
) {
  node->fates[fate]++;
  if (node->note == NULL) return;
  fakevideo_truth truth = {
    .period = node->period, .microseconds = microseconds, .sequence = sequence, .fate = fate,
    .anomaly = anomaly,
  };
  node->note(node->context, &truth);
}

/// The fault that begins in this period, or FAULT_COUNT.
static fault_kind begin_fault(device_node *node) {
  if (node->period < node->next_fault) return FAULT_COUNT;
  double place = random_share(&node->random);
  for (int kind = 0; kind < FAULT_COUNT; kind++) {
    place -= node->options.faults[kind];
    if (place >= 0) continue;
    uint64_t more = next_random(&node->random) % (uint64_t)node->options.apart;
    node->next_fault = node->period + node->options.apart + (int64_t)more;
    return (fault_kind)kind;
  }
  return FAULT_COUNT;
}

/// Changes the numbers, or begins a loss, as a fault says; answers the anomaly.
static uint8_t apply_fault(device_node *node, fault_kind fault, int64_t *late) {
  int64_t some = 1 + (int64_t)(next_random(&node->random) % 4);
  int64_t period = node->period_nanoseconds_numerator / node->period_nanoseconds_denominator;
  switch (fault) {
  case FAULT_LOSS: node->pending_loss = some; node->pending_is_silent = false; return 0;
  case FAULT_SILENT: node->pending_loss = some; node->pending_is_silent = true; return 0;
  case FAULT_LATE_GAP:
    node->pending_loss = 1;
    node->pending_is_silent = true;
    node->delayed_gap = 2;
    return FAKEVIDEO_LATE_GAP;
  case FAULT_DOUBLE: node->sequence += 1; return FAKEVIDEO_DOUBLE_COUNT;
  case FAULT_RESET: node->sequence = 0; return FAKEVIDEO_RESET;
  case FAULT_REPEAT: node->sequence -= 1; return FAKEVIDEO_REPEATED;
  case FAULT_BACKWARDS: node->sequence -= (uint32_t)some + 1; return FAKEVIDEO_BACKWARDS;
  case FAULT_LATE:
    *late = period + (int64_t)(random_share(&node->random) * 4 * (double)period);
    return FAKEVIDEO_LATE;
  case FAULT_CLOCK_WRAP: node->clock_offset -= (int64_t)1 << 32; return FAKEVIDEO_CLOCK_WRAP;
  default: return 0;
  }
}

/// Fills the oldest buffer that the driver has with this period's frame.
static void deliver(device_node *node, fault_kind fault, uint8_t anomaly, int64_t late) {
  uint32_t index = node->queued[node->queued_start];
  node->queued_start = (node->queued_start + 1) % MAX_BUFFERS;
  node->queued_count--;
  frame_buffer *buffer = &node->buffers[index];
  buffer->state = DONE;
  node->done[(node->done_start + node->done_count) % MAX_BUFFERS] = index;
  node->done_count++;

  if (node->delayed_gap == 1) {
    node->sequence += 1;
    node->delayed_gap = 0;
  } else if (node->delayed_gap == 2) {
    node->delayed_gap = 1;
  }
  int64_t time = due(node, node->period) + late;
  if (node->options.jitter > 0) {
    double period =
      (double)node->period_nanoseconds_numerator / (double)node->period_nanoseconds_denominator;
    time += (int64_t)((random_share(&node->random) - 0.5) * node->options.jitter * period);
  }
  buffer->sequence = node->sequence++;
  buffer->microseconds = time / 1000 + node->clock_offset;
  buffer->flags = fault == FAULT_ERROR ? V4L2_BUF_FLAG_ERROR : 0;
  bool is_jpeg = node->jpeg != NULL;
  buffer->bytes_used = is_jpeg ? node->jpeg_length : node->size_image;
  uint8_t fate = fault == FAULT_ERROR ? FAKEVIDEO_CORRUPT_FLAG : FAKEVIDEO_DELIVERED;
  if (fault == FAULT_SHORT && !is_jpeg) {
    buffer->bytes_used = node->size_image / 2;
    fate = FAKEVIDEO_SHORT;
  }
  if ((fault == FAULT_TRUNCATED || fault == FAULT_SHORT) && is_jpeg) {
    buffer->bytes_used = node->jpeg_length - 2 - node->jpeg_length / 4;
    fate = FAKEVIDEO_TRUNCATED;
  }
  uint32_t place = is_jpeg ? node->jpeg_number : 0;
  if (place + 8 <= node->buffer_length) memcpy(buffer->memory + place, &node->period, 8);
  log_period(node, fate, anomaly, buffer->sequence, buffer->microseconds);
}

static void make_period(device_node *node) {
  if (node->options.rate_swap != 0 && node->period == node->options.rate_swap) {
    // Another program asks for half the rate, as any may that the driver does not refuse.
    node->interval.numerator *= 2;
    node->options.rate_swap = 0;
  }
  int64_t late = 0;
  uint8_t anomaly = 0;
  fault_kind fault = FAULT_COUNT;
  if (node->period < node->options.lost_at_start) {
    log_period(node, FAKEVIDEO_LOST_START, 0, node->sequence++, 0);
    return;
  }
  // Faults keep their distance from the losses of a full driver, too: of two that touch, nobody
  // could tell one from the other.
  if (node->queued_count < 4 && node->next_fault < node->period + node->options.apart)
    node->next_fault = node->period + node->options.apart;
  if (node->pending_loss == 0) {
    fault = begin_fault(node);
    if (fault != FAULT_COUNT) anomaly = apply_fault(node, fault, &late);
  }
  if (node->pending_loss > 0) {
    node->pending_loss--;
    if (!node->pending_is_silent) node->sequence++;
    log_period(
      node, FAKEVIDEO_LOST_DEVICE,
      (uint8_t)(anomaly | (node->pending_is_silent ? FAKEVIDEO_SILENT : 0)), 0, 0);
    return;
  }
  if (node->queued_count == 0) {
    log_period(node, FAKEVIDEO_LOST_KERNEL, anomaly, node->sequence++, 0);
    return;
  }
  deliver(node, fault, anomaly, late);
  // A consumer that is away: the machine's own clock runs on, and buffers fill.
  if (fault == FAULT_STALL && node->machine->own_clock) {
    int64_t periods = node->buffer_count + 1 + (int64_t)(next_random(&node->random) % 20);
    node->machine->now = (due(node, node->period + periods) + due(node, node->period + periods + 1)) / 2;
  }
}

void generate(device_node *node) {
  if (!node->is_streaming || node->is_gone) return;
  while (next_due(node) <= machine_now(node->machine)) {
    if (node->options.unplug != 0 && node->period >= node->options.unplug) {
      node->is_gone = true;
      return;
    }
    make_period(node);
    node->period++;
  }
}
