// SPDX-License-Identifier: Apache-2.0
// What the parts of the fake driver share.
#ifndef MODEL_H
#define MODEL_H

#include "include/FakeVideo4Linux.h"

#include <linux/videodev2.h>
#include <pthread.h>

#define MAX_BUFFERS 32
#define MAX_HANDLES 64
#define MAX_NODES 32
#define MAX_CONTROLS 24
#define FATE_COUNT 7

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
} description_format;

typedef struct {
  uint32_t id, type;
  const char *name;
  int64_t minimum, maximum, step, value;
  uint32_t flags;
  /// Items of a menu by their value; NULL is a hole.
  const char *items[6];
} description_control;

typedef struct {
  const char *name, *driver, *card, *bus;
  uint32_t capabilities;
  const description_format *formats;
  const description_control *controls;
  /// Whether VIDIOC_S_PARM is refused.
  bool fixed_rate;
  /// Whether the longest exposure depends on the frame duration.
  bool exposure_follows_rate;
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
  FAULT_STALL, FAULT_COUNT
} fault_kind;

/// What a configuration says of a device.
typedef struct {
  uint64_t seed;
  double faults[FAULT_COUNT];
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
} device_options;

typedef struct {
  fakevideo *machine;
  char path[32];
  const description *kind;
  device_options options;
  bool is_gone;

  const description_format *format;
  uint32_t width, height, bytes_per_line, size_image;
  struct v4l2_fract interval;
  int64_t values[MAX_CONTROLS];

  frame_buffer buffers[MAX_BUFFERS];
  uint32_t buffer_count, buffer_length;
  uint32_t queued[MAX_BUFFERS], queued_start, queued_count;
  uint32_t done[MAX_BUFFERS], done_start, done_count;
  int buffer_owner;
  bool is_streaming;

  /// The generator: periods since the stream was switched on.
  int64_t period, start, period_nanoseconds_numerator, period_nanoseconds_denominator;
  int64_t period_base;
  uint32_t sequence, delayed_gap;
  int64_t clock_offset;
  int64_t pending_loss, next_fault;
  bool pending_is_silent;
  uint64_t random;
  /// A JPEG of the mode, and where the period's number goes in it.
  uint8_t *jpeg;
  uint32_t jpeg_length, jpeg_number;

  /// The memory of the buffers: how much, and the file it is of where programs map it themselves.
  size_t memory_length;
  int memory_file;

  void (*note)(void *context, const fakevideo_truth *truth);
  void *context;
  /// How many periods met which fate, over all streams, and how many frames were dequeued.
  int64_t fates[FATE_COUNT], dequeued;
  bool was_opened;
} device_node;

struct fakevideo {
  pthread_mutex_t lock;
  bool own_clock;
  /// Whether programs map the buffers by themselves, as the preloaded library lets them.
  bool shares_memory;
  int64_t now;
  device_node nodes[MAX_NODES];
  int node_count;
  struct {
    bool is_open;
    int node;
    uint32_t priority;
  } handles[MAX_HANDLES];
  int64_t calls[256];
  int64_t call_count;
};

int64_t machine_now(const fakevideo *machine);
bool parse_options(const char *text, size_t length, device_options *options, char *error, size_t size);

/// The requests, by subject; each answers -ENOTTY for what it does not know.
int query_request(device_node *node, unsigned long request, void *argument);
int format_request(device_node *node, int handle, unsigned long request, void *argument);
int control_request(device_node *node, unsigned long request, void *argument);
int stream_request(device_node *node, int handle, unsigned long request, void *argument);

void set_default_format(device_node *node);
void set_default_interval(device_node *node);
uint32_t buffer_type(const device_node *node);
int64_t control_value(const device_node *node, uint32_t id, int64_t missing);

/// Fills buffers for all periods that are over by now.
void generate(device_node *node);
/// When the next frame is due, in nanoseconds.
int64_t next_due(device_node *node);
void start_generator(device_node *node);
void release_buffers(device_node *node);

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
