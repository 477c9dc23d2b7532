// SPDX-License-Identifier: Apache-2.0
// A simulated Video4Linux driver: many kinds of cameras, faults on demand, and a log of the true
// outcome of each frame period. It has two interfaces: these functions replace the kernel's calls
// in process, and a preloaded library adds the same devices to any program.
#ifndef FAKE_VIDEO4LINUX_H
#define FAKE_VIDEO4LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A machine with devices and a clock. All functions may be called from any thread.
typedef struct fakevideo fakevideo;

/// The true outcome of a frame period.
enum {
  FAKEVIDEO_DELIVERED = 0,
  /// Delivered with V4L2_BUF_FLAG_ERROR.
  FAKEVIDEO_CORRUPT_FLAG = 1,
  /// Delivered with fewer bytes than an uncompressed frame has.
  FAKEVIDEO_SHORT = 2,
  /// A JPEG without its end marker.
  FAKEVIDEO_TRUNCATED = 3,
  /// Lost before the first frame, by the driver's sequence number.
  FAKEVIDEO_LOST_START = 4,
  FAKEVIDEO_LOST_DEVICE = 5,
  /// The driver had no free buffer.
  FAKEVIDEO_LOST_KERNEL = 6,
};

/// Anomalies of a period's sequence number or timestamp.
enum {
  /// Counted twice: a sequence gap without a loss.
  FAKEVIDEO_DOUBLE_COUNT = 1,
  /// A loss whose sequence gap appears one frame too late.
  FAKEVIDEO_LATE_GAP = 2,
  /// The sequence restarts at 0, repeats the previous number, or goes backwards.
  FAKEVIDEO_RESET = 4,
  FAKEVIDEO_REPEATED = 8,
  FAKEVIDEO_BACKWARDS = 16,
  /// The timestamp is one or more periods late.
  FAKEVIDEO_LATE = 32,
  /// The timestamp clock wrapped.
  FAKEVIDEO_CLOCK_WRAP = 64,
  /// A loss without a sequence gap.
  FAKEVIDEO_SILENT = 128,
};

/// A log entry: one frame period since the stream start.
typedef struct {
  int64_t period;
  /// The delivered timestamp and sequence number, or the ones a lost frame would have had.
  int64_t microseconds;
  uint32_t sequence;
  uint8_t fate;
  uint8_t anomaly;
} fakevideo_truth;

/// The totals of a node's log, over all its streams.
typedef struct {
  int64_t periods, delivered, corrupt_flag, short_frames, truncated, lost_start, lost_device,
    lost_kernel;
  /// Frames that were dequeued. Delivered frames still in a buffer at the stream end are not
  /// included.
  int64_t dequeued;
} fakevideo_counts;

/// Builds a machine. The configuration has one device per line (or separated by ';'), such as
/// "hfr-usb seed=7 loss=2%"; an empty one means one device of every kind. The README lists all
/// kinds and options. With `ownClock`, time advances only in polls and fakevideo_advance(). On
/// failure the result is NULL, and `error` receives the reason.
fakevideo *fakevideo_create(
  const char *configuration, bool ownClock, char *error, size_t errorSize);
void fakevideo_destroy(fakevideo *machine);

int fakevideo_node_count(fakevideo *machine);
const char *fakevideo_node_path(fakevideo *machine, int index);

/// The driver calls; each returns a value or a negative errno.
int fakevideo_open(fakevideo *machine, const char *path, int flags);
int fakevideo_close(fakevideo *machine, int handle);
int fakevideo_ioctl(fakevideo *machine, int handle, unsigned long request, void *argument);
int fakevideo_poll(fakevideo *machine, int handle, short events, int milliseconds);
void *fakevideo_map(
  fakevideo *machine, int handle, size_t length, int64_t offset, int *error);
int fakevideo_unmap(fakevideo *machine, void *start, size_t length);

/// The timestamp clock, in nanoseconds.
int64_t fakevideo_now(fakevideo *machine);
/// Advances the machine's own clock without a poll.
void fakevideo_advance(fakevideo *machine, int64_t nanoseconds);

/// The number of times that a request was made, over all devices.
int64_t fakevideo_call_count(fakevideo *machine, unsigned long request);
/// The value of a control inside the camera; `missing` where the camera lacks it.
int64_t fakevideo_control(fakevideo *machine, int node, uint32_t id, int64_t missing);
/// Sets a callback for each log entry of a node, called with the machine's lock held.
void fakevideo_set_truth(
  fakevideo *machine, int node, void (*note)(void *context, const fakevideo_truth *truth),
  void *context);

/// The number of log entries of a node, over all its streams.
int64_t fakevideo_truth_count(fakevideo *machine, int node);
/// Reads a log entry by its index; -ERANGE for one that does not exist or was overwritten. The log
/// keeps the last 4096 entries, or as many as configured ("log=100000").
int fakevideo_truth_at(
  fakevideo *machine, int node, int64_t index, fakevideo_truth *truth);
fakevideo_counts fakevideo_truth_counts(fakevideo *machine, int node);

#ifdef __cplusplus
}
#endif

#endif
