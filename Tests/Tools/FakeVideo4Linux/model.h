// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the parts of the simulated driver.
#ifndef MODEL_H
#define MODEL_H

#include "include/FakeVideo4Linux.h"

#include <linux/videodev2.h>
#include <pthread.h>

#define MAX_BUFFERS 32
#define MAX_HANDLES 128
#define MAX_NODES 32
#define MENU_ITEMS 8
#define MAX_CONTROLS 40
#define MAX_EVENTS 64
#define MAX_SCHEDULED 64
#define MAX_FAILURES 16
#define FATE_COUNT 7

// Constants that kernel headers before Linux 6.15 lack.
#define TYPE_RECT 0x0107
#define WHICH_MINIMUM 0x0f020000
#define WHICH_MAXIMUM 0x0f030000
#define CID_UVC_REGION (V4L2_CID_USER_BASE + 0x11e0 + 1)
#define CID_UVC_REGION_AUTO (V4L2_CID_USER_BASE + 0x11e0 + 2)

/// The form in which a description lists sizes or intervals.
typedef enum { DISCRETE, STEPWISE, CONTINUOUS } range_kind;

/// A size of a format with its rates; a width of 0 ends a list.
typedef struct {
  uint32_t width, height;
  /// Frame durations; a numerator of 0 ends the list.
  struct v4l2_fract intervals[8];
} description_size;

typedef struct {
  uint32_t fourcc;
  const char *name;
  uint32_t flags;
  range_kind sizes;
  /// All sizes, or the smallest and the largest of a range.
  const description_size *list;
  uint32_t step_width, step_height;
  range_kind intervals;
  /// Pixels per second, which limits the rates of a range at each size.
  uint64_t pixel_rate;
  /// The number of memory planes; 0 or 1 for a single plane.
  uint32_t planes;
} description_format;

typedef struct {
  uint32_t id, type;
  const char *name;
  int64_t minimum, maximum, step, value;
  uint32_t flags;
  /// Menu items by value; NULL is a missing item. Items of an integer menu are numbers.
  const char *items[MENU_ITEMS];
} description_control;

/// An input (connector); a name of NULL ends a list.
typedef struct {
  const char *name;
  uint32_t type, capabilities;
  v4l2_std_id standards;
  /// The incoming DV signal, and the error that the driver reports for it (0: none).
  const struct v4l2_dv_timings *signal;
  int error;
} description_input;

typedef struct {
  const char *name, *driver, *card, *bus;
  uint32_t capabilities;
  const description_format *formats;
  const description_control *controls;
  /// Whether VIDIOC_S_PARM is rejected.
  bool fixed_rate;
  /// Whether the maximum exposure depends on the frame duration.
  bool exposure_follows_rate;
  /// The inputs; NULL for a single camera input.
  const description_input *inputs;
  /// The listed DV timings; a width of 0 ends the list.
  const struct v4l2_dv_timings *timings;
  /// A second node of the same device; NULL for none.
  const char *companion;
  /// Whether enumerations never end.
  bool is_endless;
  /// Whether the kind is left out of the default machine with one device of each kind.
  bool by_name_only;
  /// Whether every byte of a frame is what the control of brightness holds.
  bool shows_brightness;
} description;

extern const description fake_descriptions[];
const description *find_description(const char *name, size_t length);

typedef enum { WITH_USER, QUEUED, DONE } buffer_state;

typedef struct {
  buffer_state state;
  uint32_t bytes_used, sequence, flags;
  int64_t microseconds;
  uint8_t *memory;
} frame_buffer;

/// The kinds of fault.
typedef enum {
  FAULT_LOSS, FAULT_SILENT, FAULT_DOUBLE, FAULT_LATE_GAP, FAULT_RESET, FAULT_REPEAT,
  FAULT_BACKWARDS, FAULT_LATE, FAULT_CLOCK_WRAP, FAULT_ERROR, FAULT_SHORT, FAULT_TRUNCATED,
  FAULT_STALL, RANDOM_FAULTS,
  // These kinds occur only in a schedule, never at random.
  FAULT_EIO = RANDOM_FAULTS, FAULT_UNPLUG, FAULT_RATE_SWAP, FAULT_SOURCE_CHANGE, FAULT_NONE
} fault_kind;

/// A scheduled fault at a period, such as "at=100:loss*3".
typedef struct {
  int64_t period;
  fault_kind kind;
  /// The amount; 0 for the default.
  int64_t amount;
} scheduled_fault;

/// A failing request, such as "fail=STREAMON:ENOSPC" or "fail=DQBUF:EIO@100*2".
typedef struct {
  unsigned long request;
  int code;
  /// The first failing call, counted from 1, and the number of failures (0: all further calls).
  int64_t first, count, seen;
} scheduled_failure;

/// The options of a device in a configuration.
typedef struct {
  uint64_t seed;
  double faults[RANDOM_FAULTS];
  /// The minimum number of periods between random faults.
  int64_t apart;
  double jitter;
  uint32_t first_sequence, lost_at_start;
  /// The actual frame rate, regardless of the configured one; 0 for no deviation.
  double lie;
  /// Whether the scene is dark; 2 slows the camera down even where this is switched off.
  int dark;
  /// How the driver crops: 0 not at all, 1 with a scaler, 2 without one, 3 it ignores the request.
  int crop;
  /// The periods at which the device is unplugged, or another program changes its rate; 0 for
  /// never.
  int64_t unplug, rate_swap;
  /// Whether another program streams, and whether the bus is full.
  bool busy, no_bandwidth;
  /// The call numbers that fail once: REQBUFS, QBUF, DQBUF, STREAMON.
  int64_t fail_at[4];
  /// The call number, over all requests, that fails with EIO; 0 for none.
  int64_t abort_call;
  uint32_t mjpeg_bytes;
  scheduled_fault schedule[MAX_SCHEDULED];
  int schedule_count;
  scheduled_failure failures[MAX_FAILURES];
  int failure_count;
  /// The wrap of timestamps in bits (32 of microseconds, 63 of nanoseconds; 0: never), and the
  /// seconds until it.
  int stamp_wrap;
  double wrap_after;
  /// The maximum and minimum number of buffers.
  uint32_t most_buffers, least_buffers;
  /// The bandwidth of the bus in bytes per second; 0 for no limit.
  double bandwidth;
  /// Seconds until an unplugged device reappears; 0 for never.
  double replug;
  /// Seconds until a suspended device, which does not wake at the first opening, has been reset.
  double asleep;
  /// The number of log entries to keep.
  uint32_t log_length;
  /// The header size of a plane in bytes (v4l2_plane.data_offset).
  uint32_t data_offset;
  /// Whether frames of YUYV show their time.
  bool paints_time;
  /// The error of QUERY_DV_TIMINGS instead of the signal: ENOLINK, ENOLCK, ERANGE.
  int signal_error;
} device_options;

typedef struct {
  fakevideo *machine;
  char path[32];
  const description *kind;
  device_options options;
  bool is_gone, is_broken;
  int64_t gone_since;
  /// The time of the opening that did not wake the device; 0 for none.
  int64_t reset_since;
  /// The handle that alone may configure the device, as with uvcvideo; -1 for none.
  int holder;

  /// The current input, its configured timings, and the incoming signal.
  uint32_t input;
  struct v4l2_dv_timings timings, signal;
  v4l2_std_id standard;
  uint32_t frequency;
  /// The only size and rate that the signal allows.
  description_size signal_sizes[2];

  const description_format *format;
  uint32_t width, height, bytes_per_line, size_image;
  struct v4l2_fract interval;
  int64_t values[MAX_CONTROLS];
  struct v4l2_rect region;
  /// The part of the sensor that fills the frames, which is at first as large as they are.
  struct v4l2_rect crop;

  frame_buffer buffers[MAX_BUFFERS];
  /// The size of a buffer in whole pages, and the size of each plane.
  uint32_t buffer_count, buffer_length, plane_length[2];
  uint32_t queued[MAX_BUFFERS], queued_start, queued_count;
  uint32_t done[MAX_BUFFERS], done_start, done_count;
  int buffer_owner;
  bool is_streaming;

  /// The generator's state, in periods since the stream start.
  int64_t period, start, period_nanoseconds_numerator, period_nanoseconds_denominator;
  int64_t period_base;
  /// Whether the inputs of the frame duration may have changed.
  bool is_rate_stale;
  uint32_t sequence, delayed_gap;
  int64_t clock_offset;
  int64_t pending_loss, next_fault;
  bool pending_is_silent;
  int next_scheduled;
  int64_t last_microseconds;
  uint64_t random;
  /// The JPEG of the current mode, and the offset of the period number in it.
  uint8_t *jpeg;
  uint32_t jpeg_length, jpeg_number;

  /// The memory of the buffers, and its file where programs map it themselves.
  struct memory_block *memory;
  int memory_file;

  void (*note)(void *context, const fakevideo_truth *truth);
  void *context;
  /// The last log entries, in a ring, and the total number of entries.
  fakevideo_truth *log;
  int64_t logged;
  /// The number of periods for each outcome, and of dequeued frames, over all streams.
  int64_t fates[FATE_COUNT], dequeued;
  bool was_opened;
} device_node;

/// The memory of a node's buffers; it lives until nothing maps it.
typedef struct memory_block {
  struct memory_block *next;
  uint8_t *start;
  size_t length;
  int64_t maps;
  bool is_released;
} memory_block;

/// The event queue of a handle, with its subscriptions.
typedef struct {
  struct v4l2_event_subscription subscriptions[MAX_EVENTS];
  struct v4l2_event events[MAX_EVENTS];
  int subscription_count, event_count;
  uint32_t sequence;
} event_queue;

struct fakevideo {
  pthread_mutex_t lock;
  bool own_clock;
  /// Whether programs map the buffers themselves, as with the preloaded library.
  bool shares_memory;
  int64_t now;
  device_node nodes[MAX_NODES];
  int node_count;
  memory_block *memory;
  struct {
    bool is_open;
    /// Whether the handle was opened before the device was unplugged.
    bool is_stale;
    int node;
    uint32_t priority;
    event_queue events;
  } handles[MAX_HANDLES];
  int64_t calls[256];
  int64_t call_count;
};

int64_t machine_now(const fakevideo *machine);
bool parse_options(
  const char *text, size_t length, device_options *options, char *error, size_t size);
/// Prepares an argument like the kernel: zeroes the fields that the caller need not set. An error
/// for an invalid request or argument.
int take_argument(unsigned long request, void *argument);
/// The value of FAKEVIDEO_NAME, which replaces the names of cameras, buses and first controls, or the
/// name itself.
const char *given_name(const char *name);
/// The number of a request by its name without VIDIOC_, and of an errno by its name; 0 for unknown.
unsigned long request_named(const char *name, size_t length);
int error_named(const char *name, size_t length);

/// Makes a request of a node on behalf of a handle.
int make_request(
  fakevideo *machine, device_node *node, int handle, unsigned long request, void *argument);
/// The requests, by subject; each function returns -ENOTTY for requests of other subjects.
int query_request(device_node *node, int handle, unsigned long request, void *argument);
int input_request(device_node *node, int handle, unsigned long request, void *argument);
int format_request(device_node *node, int handle, unsigned long request, void *argument);
int control_request(device_node *node, int handle, unsigned long request, void *argument);
int crop_request(device_node *node, int handle, unsigned long request, void *argument);
int tuner_request(device_node *node, int handle, unsigned long request, void *argument);
int event_request(device_node *node, int handle, unsigned long request, void *argument);
int stream_request(device_node *node, int handle, unsigned long request, void *argument);

void set_default_input(device_node *node);
void set_default_format(device_node *node);
void set_default_interval(device_node *node);
/// The sizes of a format, and whether they follow the signal.
const description_size *sizes_of(const device_node *node, const description_format *format);
bool follows_signal(const device_node *node);
uint32_t buffer_type(const device_node *node);
/// The field order, the number of planes, and the maximum size of a plane in bytes.
uint32_t field_of(const device_node *node);
uint32_t plane_count(const device_node *node);
uint32_t plane_bytes(const device_node *node, uint32_t plane);
int64_t control_value(const device_node *node, uint32_t id, int64_t missing);
void set_default_controls(device_node *node);
/// Prints the control values as members of a JSON object, without headings and rectangles.
void print_controls(const device_node *node, char *text, size_t size);
/// Posts an event to all subscribers, except the handle that caused it; -1 for no exception.
void post_event(device_node *node, int cause, const struct v4l2_event *event);
/// Posts an event for a control's new value, flags or range.
void post_control(device_node *node, int cause, uint32_t id, uint32_t changes);
/// Changes the signal of the current input and posts an event.
void change_signal(device_node *node);

/// Generates frames for all periods up to now.
void generate(device_node *node);
/// The time of the next frame, in nanoseconds.
int64_t next_due(device_node *node);
void start_generator(device_node *node);
void release_buffers(device_node *node);
/// Frees the unused memory blocks; all blocks where `is_end`.
void free_blocks(fakevideo *machine, bool is_end);

/// For the preloaded library: the time to poll a handle again (0: now, INT64_MAX: never by itself),
/// the file of a handle's buffers (or -errno), and a JSON line with a node's totals.
int64_t wake_time(fakevideo *machine, int handle);
int memory_file(fakevideo *machine, int handle, size_t length, int64_t offset);
int print_counts(fakevideo *machine, int node, char *text, size_t size);
/// Makes a uniform gray JPEG with space for a number, padded to a size.
uint8_t *make_gray_jpeg(
  uint32_t width, uint32_t height, uint32_t bytes, uint32_t *length, uint32_t *number);

static inline uint64_t next_random(uint64_t *state) {
  // SplitMix64 (Steele, Lea, Flood 2014).
  uint64_t value = (*state += 0x9E3779B97F4A7C15u);
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

static inline double random_share(uint64_t *state) {
  return (double)(next_random(state) >> 11) * 0x1p-53;
}

#endif
