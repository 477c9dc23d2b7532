// SPDX-License-Identifier: Apache-2.0
// A Video4Linux driver that is a program: cameras of many kinds, their faults on demand, and a
// log of what really became of each frame period. One model, two faces: these functions, which
// stand where the kernel's calls would be, and a library to preload that puts the same devices
// in front of any program.
#ifndef FAKE_VIDEO4LINUX_H
#define FAKE_VIDEO4LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A machine with its devices and its clock. All functions may be called from any thread.
typedef struct fakevideo fakevideo;

/// What became of a frame period.
enum {
  FAKEVIDEO_DELIVERED = 0,
  /// Delivered with V4L2_BUF_FLAG_ERROR.
  FAKEVIDEO_CORRUPT_FLAG = 1,
  /// Delivered with fewer bytes than a frame of pixels has.
  FAKEVIDEO_SHORT = 2,
  /// A JPEG without its end.
  FAKEVIDEO_TRUNCATED = 3,
  /// Before the first frame, by the driver's own count.
  FAKEVIDEO_LOST_START = 4,
  FAKEVIDEO_LOST_DEVICE = 5,
  /// The driver had no free buffer.
  FAKEVIDEO_LOST_KERNEL = 6,
};

/// What was odd about the numbers of a period.
enum {
  /// Counted twice: a gap in the sequence where nothing is lost.
  FAKEVIDEO_DOUBLE_COUNT = 1,
  /// A loss that the sequence shows a frame too late.
  FAKEVIDEO_LATE_GAP = 2,
  /// The sequence begins again at 0, is that of the frame before, or steps back.
  FAKEVIDEO_RESET = 4,
  FAKEVIDEO_REPEATED = 8,
  FAKEVIDEO_BACKWARDS = 16,
  /// The stamp is a period late, or several.
  FAKEVIDEO_LATE = 32,
  /// The clock of the stamps began again.
  FAKEVIDEO_CLOCK_WRAP = 64,
  /// A loss that used no number up.
  FAKEVIDEO_SILENT = 128,
};

/// An entry of the log: one frame period since the stream was switched on.
typedef struct {
  int64_t period;
  /// The stamp as it was delivered, or would have been; so with the sequence.
  int64_t microseconds;
  uint32_t sequence;
  uint8_t fate;
  uint8_t anomaly;
} fakevideo_truth;

/// The sums of a node's log, over all its streams.
typedef struct {
  int64_t periods, delivered, corrupt_flag, short_frames, truncated, lost_start, lost_device,
    lost_kernel;
  /// Frames that were taken. Delivered ones that lay in a buffer when a stream ended were not.
  int64_t dequeued;
} fakevideo_counts;

/// Builds a machine. The configuration has one device a line (or separated by ';'):
/// "hfr-usb seed=7 loss=2%"; nothing means one of every kind. The README beside this tells of
/// all kinds and options. With `ownClock` time stands still
/// but for polls and fakevideo_advance(). Answers NULL, and why in `error`.
fakevideo *fakevideo_create(
  const char *configuration, bool ownClock, char *error, size_t errorSize);
void fakevideo_destroy(fakevideo *machine);

int fakevideo_node_count(fakevideo *machine);
const char *fakevideo_node_path(fakevideo *machine, int index);

/// The calls of a driver; each answers with a value or a negative errno.
int fakevideo_open(fakevideo *machine, const char *path, int flags);
int fakevideo_close(fakevideo *machine, int handle);
int fakevideo_ioctl(fakevideo *machine, int handle, unsigned long request, void *argument);
int fakevideo_poll(fakevideo *machine, int handle, short events, int milliseconds);
void *fakevideo_map(
  fakevideo *machine, int handle, size_t length, int64_t offset, int *error);
int fakevideo_unmap(fakevideo *machine, void *start, size_t length);

/// The clock of the stamps, in nanoseconds.
int64_t fakevideo_now(fakevideo *machine);
/// Lets time pass on the machine's own clock while nobody asks for frames.
void fakevideo_advance(fakevideo *machine, int64_t nanoseconds);

/// How often a request was made of any device.
int64_t fakevideo_call_count(fakevideo *machine, unsigned long request);
/// The value of a control as the camera has it, whoever asks; `missing` where there is none.
int64_t fakevideo_control(fakevideo *machine, int node, uint32_t id, int64_t missing);
/// Hands each entry of a node's log over as it is made, under the machine's lock.
void fakevideo_set_truth(
  fakevideo *machine, int node, void (*note)(void *context, const fakevideo_truth *truth),
  void *context);

/// How many entries a node's log has had, over all its streams.
int64_t fakevideo_truth_count(fakevideo *machine, int node);
/// An entry by its place; -ERANGE for one that is not there, or no longer. The log keeps the last
/// 4096 unless the configuration says otherwise ("log=100000").
int fakevideo_truth_at(
  fakevideo *machine, int node, int64_t index, fakevideo_truth *truth);
fakevideo_counts fakevideo_truth_counts(fakevideo *machine, int node);

#ifdef __cplusplus
}
#endif

#endif
