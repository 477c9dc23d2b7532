// SPDX-License-Identifier: Apache-2.0
// The frame generator: one frame per period, with faults, and a log entry for each period.
#include "model.h"

#include <string.h>

/// The actual frame duration of the camera, as a fraction in nanoseconds.
static void real_period(const device_node *node, int64_t *numerator, int64_t *denominator) {
  *numerator = (int64_t)node->interval.numerator * 1000000000;
  *denominator = node->interval.denominator;
  const device_options *options = &node->options;
  if (options->lie > 0) {
    *numerator = (int64_t)(1e9 / options->lie);
    *denominator = 1;
    if (options->dark == 0) return;  // The configured rate and exposure are ignored.
  }
  int64_t mode = control_value(node, V4L2_CID_EXPOSURE_AUTO, V4L2_EXPOSURE_APERTURE_PRIORITY);
  bool is_manual = mode == V4L2_EXPOSURE_MANUAL || mode == V4L2_EXPOSURE_SHUTTER_PRIORITY;
  if (is_manual) {
    // An exposure longer than the frame duration extends the frame duration.
    int64_t exposure = control_value(node, V4L2_CID_EXPOSURE_ABSOLUTE, 0) * 100000;
    if (exposure * *denominator > *numerator) {
      *numerator = exposure;
      *denominator = 1;
    }
  } else if (options->dark == 0) {
    return;
  } else if (
    options->dark == 2 || control_value(node, V4L2_CID_EXPOSURE_AUTO_PRIORITY, 1) != 0) {
    *numerator *= 2;
  }
}

static int64_t due(const device_node *node, int64_t period) {
  __int128 offset = (__int128)(period - node->period_base) * node->period_nanoseconds_numerator;
  return node->start + (int64_t)(offset / node->period_nanoseconds_denominator);
}

/// Applies a changed frame duration from the next period on.
static void follow_rate(device_node *node) {
  if (!node->is_rate_stale) return;
  node->is_rate_stale = false;
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

/// The wrap length of the driver's timestamps in microseconds; 0 for none.
static int64_t wrap_of(const device_node *node) {
  switch (node->options.stamp_wrap) {
  case 32: return (int64_t)1 << 32;
  case 63: return INT64_MAX / 1000;  // 2^63 ns in microseconds; tv_sec is near 9223372036.
  default: return 0;
  }
}

void start_generator(device_node *node) {
  node->period = 0;
  node->period_base = 0;
  node->is_rate_stale = true;
  node->period_nanoseconds_denominator = 0;
  node->period_nanoseconds_numerator = 0;
  // Cameras need some time before their first frame (20 ms here).
  node->start = machine_now(node->machine) + 20000000;
  node->sequence = node->options.first_sequence;
  node->delayed_gap = 0;
  node->pending_loss = 0;
  node->next_scheduled = 0;
  node->last_microseconds = 0;
  node->clock_offset = 0;
  if (wrap_of(node) != 0) {
    // The clock offset puts the wrap `wrap_after` seconds after the stream start.
    int64_t left = (int64_t)(node->options.wrap_after * 1e6);
    node->clock_offset = wrap_of(node) - left - node->start / 1000;
  }
  node->next_fault = 40;
  node->random = node->options.seed * 0x2545F4914F6CDD1Du + 1;
}

static void log_period(
  device_node *node, uint8_t fate, uint8_t anomaly, uint32_t sequence, int64_t microseconds
) {
  node->fates[fate]++;
  fakevideo_truth truth = {
    .period = node->period, .microseconds = microseconds, .sequence = sequence, .fate = fate,
    .anomaly = anomaly,
  };
  if (node->log != NULL) node->log[node->logged++ % node->options.log_length] = truth;
  if (node->note != NULL) node->note(node->context, &truth);
}

/// The fault that begins in this period, with its amount; FAULT_NONE for none.
static fault_kind begin_fault(device_node *node, int64_t *amount) {
  *amount = 0;
  const device_options *options = &node->options;
  if (node->next_scheduled < options->schedule_count) {
    const scheduled_fault *fault = &options->schedule[node->next_scheduled];
    if (fault->period <= node->period) {
      node->next_scheduled++;
      *amount = fault->amount > 0 ? fault->amount : fault->kind == FAULT_SILENT ? 2 : 1;
      return fault->kind;
    }
  }
  if (node->period < node->next_fault) return FAULT_NONE;
  double place = random_share(&node->random);
  for (int kind = 0; kind < RANDOM_FAULTS; kind++) {
    place -= node->options.faults[kind];
    if (place >= 0) continue;
    uint64_t more = next_random(&node->random) % (uint64_t)node->options.apart;
    node->next_fault = node->period + node->options.apart + (int64_t)more;
    return (fault_kind)kind;
  }
  return FAULT_NONE;
}

static void unplug(device_node *node) {
  node->is_gone = true;
  node->gone_since = machine_now(node->machine);
}

/// Applies a fault to the counters, or starts a loss; returns the anomaly bits.
static uint8_t apply_fault(device_node *node, fault_kind fault, int64_t amount, int64_t *late) {
  int64_t some = 1 + (int64_t)(next_random(&node->random) % 4);
  if (amount > 0) some = amount;
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
    *late = amount > 0 ? amount * period
                       : period + (int64_t)(random_share(&node->random) * 4 * (double)period);
    return FAKEVIDEO_LATE;
  case FAULT_UNPLUG: unplug(node); return 0;
  case FAULT_EIO: node->is_broken = true; return 0;
  case FAULT_RATE_SWAP:
    node->interval.numerator *= 2;
    node->is_rate_stale = true;
    return 0;
  case FAULT_SOURCE_CHANGE: change_signal(node); return 0;
  case FAULT_CLOCK_WRAP: node->clock_offset -= (int64_t)1 << 32; return FAKEVIDEO_CLOCK_WRAP;
  default: return 0;
  }
}

/// The driver's timestamp of the current period, in microseconds.
static int64_t stamp(device_node *node, int64_t late, bool jitters) {
  int64_t time = due(node, node->period) + late;
  if (jitters && node->options.jitter > 0) {
    double period =
      (double)node->period_nanoseconds_numerator / (double)node->period_nanoseconds_denominator;
    time += (int64_t)((random_share(&node->random) - 0.5) * node->options.jitter * period);
  }
  int64_t microseconds = time / 1000 + node->clock_offset;
  int64_t wrap = wrap_of(node);
  return wrap == 0 ? microseconds : microseconds % wrap;
}

/// Paints a time as four gray columns: its 16 bits in units of 100 us, the highest four bits first.
static void paint_time(const device_node *node, uint8_t *memory, int64_t microseconds) {
  for (uint32_t y = 0; y < node->height; y++) {
    uint8_t *row = memory + (size_t)y * node->bytes_per_line;
    for (uint32_t x = 0; x < node->width; x++) {
      uint32_t column = x * 4 / node->width;
      row[x * 2] = (uint8_t)(16 + 13 * (microseconds / 100 >> (12 - 4 * column) & 15));
      row[x * 2 + 1] = 128;
    }
  }
}

/// Fills the oldest queued buffer with the frame of the current period.
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
  buffer->microseconds = stamp(node, late, true);
  if (node->options.stamp_wrap != 0 && buffer->microseconds < node->last_microseconds)
    anomaly |= FAKEVIDEO_CLOCK_WRAP;
  node->last_microseconds = buffer->microseconds;
  buffer->sequence = node->sequence++;
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
  if (node->kind->shows_brightness)
    memset(
      buffer->memory, (int)control_value(node, V4L2_CID_BRIGHTNESS, 0), node->buffer_length);
  if (node->options.paints_time && node->format->fourcc == V4L2_PIX_FMT_YUYV)
    paint_time(node, buffer->memory, buffer->microseconds);
  uint32_t place = is_jpeg ? node->jpeg_number : node->options.data_offset;
  if (place + 8 <= node->buffer_length) memcpy(buffer->memory + place, &node->period, 8);
  log_period(node, fate, anomaly, buffer->sequence, buffer->microseconds);
}

/// Generates one period; false where the device disappeared during it.
static bool make_period(device_node *node) {
  if (node->options.rate_swap != 0 && node->period == node->options.rate_swap) {
    // Another program sets half the frame rate, which the driver allows.
    node->interval.numerator *= 2;
    node->is_rate_stale = true;
    node->options.rate_swap = 0;
  }
  int64_t late = 0, amount = 0;
  uint8_t anomaly = 0;
  fault_kind fault = FAULT_NONE;
  if (node->period < node->options.lost_at_start) {
    log_period(node, FAKEVIDEO_LOST_START, 0, node->sequence++, stamp(node, 0, false));
    return true;
  }
  // Faults also keep their distance from losses of a full queue, because adjacent losses could not
  // be distinguished.
  if (node->queued_count < 4 && node->next_fault < node->period + node->options.apart)
    node->next_fault = node->period + node->options.apart;
  if (node->pending_loss == 0) {
    fault = begin_fault(node, &amount);
    if (fault != FAULT_NONE) anomaly = apply_fault(node, fault, amount, &late);
    if (node->is_gone || node->is_broken) return false;
  }
  if (node->pending_loss > 0) {
    node->pending_loss--;
    uint32_t sequence = node->pending_is_silent ? node->sequence : node->sequence++;
    log_period(
      node, FAKEVIDEO_LOST_DEVICE,
      (uint8_t)(anomaly | (node->pending_is_silent ? FAKEVIDEO_SILENT : 0)), sequence,
      stamp(node, 0, false));
    return true;
  }
  if (node->queued_count == 0) {
    log_period(node, FAKEVIDEO_LOST_KERNEL, anomaly, node->sequence++, stamp(node, late, false));
    return true;
  }
  deliver(node, fault, anomaly, late);
  // A stalled consumer: the machine's clock advances, and the buffers fill up.
  if (fault == FAULT_STALL && node->machine->own_clock) {
    int64_t periods = amount > 0
      ? amount
      : node->buffer_count + 1 + (int64_t)(next_random(&node->random) % 20);
    node->machine->now =
      (due(node, node->period + periods) + due(node, node->period + periods + 1)) / 2;
  }
  return true;
}

void generate(device_node *node) {
  if (!node->is_streaming || node->is_gone || node->is_broken) return;
  while (next_due(node) <= machine_now(node->machine)) {
    if (node->options.unplug != 0 && node->period >= node->options.unplug) {
      unplug(node);
      return;
    }
    if (!make_period(node)) return;
    node->period++;
  }
}
