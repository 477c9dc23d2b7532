// SPDX-License-Identifier: Apache-2.0
// What the parts of the fake driver share.
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

// What headers before Linux 6.15 lack.
#define TYPE_RECT 0x0107
#define WHICH_MINIMUM 0x0f020000
#define WHICH_MAXIMUM 0x0f030000
#define CID_UVC_REGION (V4L2_CID_USER_BASE + 0x11e0 + 1)
#define CID_UVC_REGION_AUTO (V4L2_CID_USER_BASE + 0x11e0 + 2)

/// How a description gives the sizes or intervals of a format.
typedef enum { DISCRETE, STEPWISE, CONTINUOUS } range_kind;

/// A size of a format with its rates; ends with a width of 0.
typedef struct {
  uint32_t width, height;
  /// Frame durations; ends with a numerator of 0.
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
  /// Pixels a second, from which a range's rates follow at each size.
  uint64_t pixel_rate;
  /// Planes of memory, where that is more than one.
  uint32_t planes;
} description_format;

typedef struct {
  uint32_t id, type;
  const char *name;
  int64_t minimum, maximum, step, value;
  uint32_t flags;
  /// Items of a menu by their value; NULL is a hole. Those of a menu of numbers are numbers.
  const char *items[MENU_ITEMS];
} description_control;

/// A socket that pictures come in by; ends with a name of NULL.
typedef struct {
  const char *name;
  uint32_t type, capabilities;
  v4l2_std_id standards;
  /// What comes in, where that is a digital signal; and what the driver says of it (0: the truth).
  const struct v4l2_dv_timings *signal;
  int error;
} description_input;

typedef struct {
  const char *name, *driver, *card, *bus;
  uint32_t capabilities;
  const description_format *formats;
  const description_control *controls;
  /// Whether VIDIOC_S_PARM is refused.
  bool fixed_rate;
  /// Whether the longest exposure depends on the frame duration.
  bool exposure_follows_rate;
  /// NULL: one input, which is a camera.
  const description_input *inputs;
  /// What the driver lists; ends with a width of 0.
  const struct v4l2_dv_timings *timings;
  /// A node that comes with this one.
  const char *companion;
  /// Whether lists never end.
  bool is_endless;
  /// Whether a machine that has one of each has none of these.
  bool by_name_only;
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

/// The kinds of faults that come at random or at a place.
typedef enum {
  FAULT_LOSS, FAULT_SILENT, FAULT_DOUBLE, FAULT_LATE_GAP, FAULT_RESET, FAULT_REPEAT,
  FAULT_BACKWARDS, FAULT_LATE, FAULT_CLOCK_WRAP, FAULT_ERROR, FAULT_SHORT, FAULT_TRUNCATED,
  FAULT_STALL, RANDOM_FAULTS,
  // These come at a place only.
  FAULT_EIO = RANDOM_FAULTS, FAULT_UNPLUG, FAULT_RATE_SWAP, FAULT_SOURCE_CHANGE, FAULT_NONE
} fault_kind;

/// A fault at a period: "at=100:loss*3".
typedef struct {
  int64_t period;
  fault_kind kind;
  /// How many, or 0 for what is usual.
  int64_t amount;
} scheduled_fault;

/// A request that fails: "fail=STREAMON:ENOSPC", "fail=DQBUF:EIO@100*2".
typedef struct {
  unsigned long request;
  int code;
  /// The first call that fails, counted from 1, and how many do (0: all from there on).
  int64_t first, count, seen;
} scheduled_failure;

/// What a configuration says of a device.
typedef struct {
  uint64_t seed;
  double faults[RANDOM_FAULTS];
  /// Periods from one fault to the next, at least.
  int64_t apart;
  double jitter;
  uint32_t first_sequence, lost_at_start;
  /// Frames a second that the device really runs at, whatever it says; 0 where it is honest.
  double lie;
  /// Whether it is dark; 2 where the camera slows down although it was told not to.
  int dark;
  /// The period at which the device vanishes, or someone else changes its rate; 0 for never.
  int64_t unplug, rate_swap;
  /// Whether another program streams, and whether the bus is full.
  bool busy, no_bandwidth;
  /// Requests of each kind that fail, once each: REQBUFS, QBUF, DQBUF, STREAMON.
  int64_t fail_at[4];
  /// Calls after which each call fails with EIO once; 0 for never.
  int64_t abort_call;
  uint32_t mjpeg_bytes;
  scheduled_fault schedule[MAX_SCHEDULED];
  int schedule_count;
  scheduled_failure failures[MAX_FAILURES];
  int failure_count;
  /// The bits after which stamps wrap (32 of microseconds, 63 of nanoseconds; 0: never), and the
  /// seconds until they do.
  int stamp_wrap;
  double wrap_after;
  /// How many buffers the driver gives at most, and at least.
  uint32_t most_buffers, least_buffers;
  /// Bytes a second that the bus carries; 0: enough.
  double bandwidth;
  /// Seconds after which an unplugged device is there again; 0: never.
  double replug;
  /// How many entries of the log are kept.
  uint32_t log_length;
  /// Bytes before a plane's picture.
  uint32_t data_offset;
  /// What QUERY_DV_TIMINGS says instead of the truth: ENOLINK, ENOLCK, ERANGE.
  int signal_error;
} device_options;

typedef struct {
  fakevideo *machine;
  char path[32];
  const description *kind;
  device_options options;
  bool is_gone, is_broken;
  int64_t gone_since;
  /// The handle that alone may configure the device, as with uvcvideo; or -1.
  int holder;

  /// The input in force, what it is set to, and what comes in.
  uint32_t input;
  struct v4l2_dv_timings timings, signal;
  v4l2_std_id standard;
  uint32_t frequency;
  /// The only size and rate that a signal leaves.
  description_size signal_sizes[2];

  const description_format *format;
  uint32_t width, height, bytes_per_line, size_image;
  struct v4l2_fract interval;
  int64_t values[MAX_CONTROLS];
  struct v4l2_rect region;

  frame_buffer buffers[MAX_BUFFERS];
  /// A buffer's bytes, whole pages, and those of each plane of it.
  uint32_t buffer_count, buffer_length, plane_length[2];
  uint32_t queued[MAX_BUFFERS], queued_start, queued_count;
  uint32_t done[MAX_BUFFERS], done_start, done_count;
  int buffer_owner;
  bool is_streaming;

  /// The generator: periods since the stream was switched on.
  int64_t period, start, period_nanoseconds_numerator, period_nanoseconds_denominator;
  int64_t period_base;
  /// Whether what the frame duration follows from may have changed.
  bool is_rate_stale;
  uint32_t sequence, delayed_gap;
  int64_t clock_offset;
  int64_t pending_loss, next_fault;
  bool pending_is_silent;
  int next_scheduled;
  int64_t last_microseconds;
  uint64_t random;
  /// A JPEG of the mode, and where the period's number goes in it.
  uint8_t *jpeg;
  uint32_t jpeg_length, jpeg_number;

  /// The memory of the buffers, and the file it is of where programs map it themselves.
  struct memory_block *memory;
  int memory_file;

  void (*note)(void *context, const fakevideo_truth *truth);
  void *context;
  /// The last entries of the log, in a ring; and how many there have been.
  fakevideo_truth *log;
  int64_t logged;
  /// How many periods met which fate, over all streams, and how many frames were dequeued.
  int64_t fates[FATE_COUNT], dequeued;
  bool was_opened;
} device_node;

/// The memory of a node's buffers, which lives for as long as somebody has it mapped.
typedef struct memory_block {
  struct memory_block *next;
  uint8_t *start;
  size_t length;
  int64_t maps;
  bool is_released;
} memory_block;

/// What happens to a node, for a handle that asked to be told.
typedef struct {
  struct v4l2_event_subscription subscriptions[MAX_EVENTS];
  struct v4l2_event events[MAX_EVENTS];
  int subscription_count, event_count;
  uint32_t sequence;
} event_queue;

struct fakevideo {
  pthread_mutex_t lock;
  bool own_clock;
  /// Whether programs map the buffers by themselves, as the preloaded library lets them.
  bool shares_memory;
  int64_t now;
  device_node nodes[MAX_NODES];
  int node_count;
  memory_block *memory;
  struct {
    bool is_open;
    /// Opened before the device was unplugged.
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
/// What the kernel makes of an argument before a driver sees it: what the caller need not fill in
/// is zeroed. An error where the request or the argument is none.
int take_argument(unsigned long request, void *argument);
/// The number of a request by its name without VIDIOC_, or 0; and an errno by its name, or 0.
unsigned long request_named(const char *name, size_t length);
int error_named(const char *name, size_t length);

/// Makes a request of a node, as whoever opened the handle.
int make_request(
  fakevideo *machine, device_node *node, int handle, unsigned long request, void *argument);
/// The requests, by subject; each answers -ENOTTY for what it does not know.
int query_request(device_node *node, int handle, unsigned long request, void *argument);
int input_request(device_node *node, int handle, unsigned long request, void *argument);
int format_request(device_node *node, int handle, unsigned long request, void *argument);
int control_request(device_node *node, int handle, unsigned long request, void *argument);
int tuner_request(device_node *node, int handle, unsigned long request, void *argument);
int event_request(device_node *node, int handle, unsigned long request, void *argument);
int stream_request(device_node *node, int handle, unsigned long request, void *argument);

void set_default_input(device_node *node);
void set_default_format(device_node *node);
void set_default_interval(device_node *node);
/// The sizes of a format, which may follow a signal; and whether they do.
const description_size *sizes_of(const device_node *node, const description_format *format);
bool follows_signal(const device_node *node);
uint32_t buffer_type(const device_node *node);
/// The planes of a frame, and the bytes that one takes at most.
uint32_t field_of(const device_node *node);
uint32_t plane_count(const device_node *node);
uint32_t plane_bytes(const device_node *node, uint32_t plane);
int64_t control_value(const device_node *node, uint32_t id, int64_t missing);
void set_default_controls(device_node *node);
/// The controls and their values as members of a JSON object, but for headings and rectangles.
void print_controls(const device_node *node, char *text, size_t size);
/// Tells all who asked for it, but not the handle that caused it; -1 for none.
void post_event(device_node *node, int cause, const struct v4l2_event *event);
/// Tells of a control's new value, flags or range.
void post_control(device_node *node, int cause, uint32_t id, uint32_t changes);
/// Puts another signal on the input in force, and tells.
void change_signal(device_node *node);

/// Fills buffers for all periods that are over by now.
void generate(device_node *node);
/// When the next frame is due, in nanoseconds.
int64_t next_due(device_node *node);
void start_generator(device_node *node);
void release_buffers(device_node *node);
/// Frees the blocks that nobody needs; all of them where `is_end`.
void free_blocks(fakevideo *machine, bool is_end);

/// For the preloaded library: when to look at a handle again (0: now, INT64_MAX: not by itself),
/// the file that a handle's buffers lie in (or -errno), and a line of JSON on a node's log.
int64_t wake_time(fakevideo *machine, int handle);
int memory_file(fakevideo *machine, int handle, size_t length, int64_t offset);
int print_counts(fakevideo *machine, int node, char *text, size_t size);
/// Makes a JPEG of one grey, with room for a number, padded to a size.
uint8_t *make_grey_jpeg(
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
