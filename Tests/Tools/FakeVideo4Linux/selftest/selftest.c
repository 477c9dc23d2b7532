// SPDX-License-Identifier: Apache-2.0
// The self-test of the simulated driver: a million frames through its calls, each checked against
// the log, and the time per frame.
#include "selftest.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <string.h>
#include <time.h>

enum { BUFFERS = 8 };

typedef struct {
  fakevideo *machine;
  int handle;
  uint8_t *memory[BUFFERS];
  int64_t logged, fates[7], misplaced;
} Camera;

static void note(void *context, const fakevideo_truth *truth) {
  Camera *camera = context;
  if (truth->period != camera->logged++) camera->misplaced++;
  camera->fates[truth->fate]++;
}

static void request(Camera *camera, unsigned long number, void *argument, const char *name) {
  int result = fakevideo_ioctl(camera->machine, camera->handle, number, argument);
  CHECK(result >= 0, "%s: %d", name, result);
}

static struct v4l2_buffer buffer_number(uint32_t index) {
  return (struct v4l2_buffer){
    .index = index, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
}

static void start(Camera *camera, const char *configuration) {
  char error[256] = "";
  *camera = (Camera){.machine = fakevideo_create(configuration, true, error, sizeof error)};
  CHECK(camera->machine != NULL, "%s", error);
  camera->handle = fakevideo_open(camera->machine, fakevideo_node_path(camera->machine, 0), 2);
  CHECK(camera->handle >= 0, "%d", camera->handle);
  fakevideo_set_truth(camera->machine, 0, note, camera);
  struct v4l2_requestbuffers buffers = {
    .count = BUFFERS, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
  request(camera, VIDIOC_REQBUFS, &buffers, "REQBUFS");
  for (uint32_t index = 0; index < BUFFERS; index++) {
    struct v4l2_buffer buffer = buffer_number(index);
    request(camera, VIDIOC_QUERYBUF, &buffer, "QUERYBUF");
    int why = 0;
    camera->memory[index] =
      fakevideo_map(camera->machine, camera->handle, buffer.length, buffer.m.offset, &why);
    CHECK(camera->memory[index] != NULL, "map: %d", why);
    request(camera, VIDIOC_QBUF, &buffer, "QBUF");
  }
  request(camera, VIDIOC_STREAMON, &buffers.type, "STREAMON");
}

static void stop(Camera *camera) {
  int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  request(camera, VIDIOC_STREAMOFF, &type, "STREAMOFF");
  fakevideo_close(camera->machine, camera->handle);
  fakevideo_destroy(camera->machine);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/// Dequeues frames; each must carry a later period than the one before.
static void take(Camera *camera, int64_t count) {
  int64_t last = -1;
  for (int64_t frame = 0; frame < count; frame++) {
    int events = fakevideo_poll(camera->machine, camera->handle, POLLIN, 1000);
    CHECK(events & POLLIN, "frame %lld: events %d", (long long)frame, events);
    struct v4l2_buffer buffer = buffer_number(0);
    request(camera, VIDIOC_DQBUF, &buffer, "DQBUF");
    int64_t period;
    memcpy(&period, camera->memory[buffer.index], sizeof period);
    CHECK(period > last, "period %lld after %lld", (long long)period, (long long)last);
    last = period;
    request(camera, VIDIOC_QBUF, &buffer, "QBUF");
  }
}

static void run(const char *configuration, int64_t count) {
  Camera camera;
  start(&camera, configuration);
  double begin = seconds();
  take(&camera, count);
  double cost = (seconds() - begin) * 1e9 / (double)count;
  int64_t arrived = camera.fates[FAKEVIDEO_DELIVERED] + camera.fates[FAKEVIDEO_CORRUPT_FLAG]
    + camera.fates[FAKEVIDEO_SHORT] + camera.fates[FAKEVIDEO_TRUNCATED];
  CHECK(camera.misplaced == 0, "%lld periods out of order", (long long)camera.misplaced);
  // Frames still in a buffer at the stream end are logged but were never dequeued.
  CHECK(
    arrived >= count && arrived <= count + BUFFERS, "%lld logged, %lld taken", (long long)arrived,
    (long long)count);
  printf(
    "%-32s %.0f ns a frame; %lld periods, lost: start %lld, device %lld, kernel %lld\n",
    configuration, cost, (long long)camera.logged, (long long)camera.fates[FAKEVIDEO_LOST_START],
    (long long)camera.fates[FAKEVIDEO_LOST_DEVICE],
    (long long)camera.fates[FAKEVIDEO_LOST_KERNEL]);
  stop(&camera);
}

static void check_log(void) {
  Camera camera;
  start(&camera, "tiny at=10:loss*3;20:parity,30:double,40:reset;50:error,60:short log=100");
  take(&camera, 90);
  fakevideo_truth truth, next;
  const struct {
    int64_t period;
    uint32_t sequence;
    uint8_t fate, anomaly;
  } expected[] = {
    {9, 9, FAKEVIDEO_DELIVERED, 0}, {10, 10, FAKEVIDEO_LOST_DEVICE, 0},
    {12, 12, FAKEVIDEO_LOST_DEVICE, 0}, {13, 13, FAKEVIDEO_DELIVERED, 0},
    {20, 20, FAKEVIDEO_LOST_DEVICE, FAKEVIDEO_SILENT},
    {21, 20, FAKEVIDEO_LOST_DEVICE, FAKEVIDEO_SILENT}, {22, 20, FAKEVIDEO_DELIVERED, 0},
    {30, 29, FAKEVIDEO_DELIVERED, FAKEVIDEO_DOUBLE_COUNT},
    {40, 0, FAKEVIDEO_DELIVERED, FAKEVIDEO_RESET}, {50, 10, FAKEVIDEO_CORRUPT_FLAG, 0},
    {60, 20, FAKEVIDEO_SHORT, 0}, {61, 21, FAKEVIDEO_DELIVERED, 0},
  };
  for (size_t index = 0; index < sizeof expected / sizeof *expected; index++) {
    int64_t period = expected[index].period;
    CHECK(fakevideo_truth_at(camera.machine, 0, period, &truth) == 0, "%d", (int)period);
    CHECK(truth.period == period, "%d", (int)truth.period);
    CHECK(truth.sequence == expected[index].sequence, "%d: %u", (int)period, truth.sequence);
    CHECK(truth.fate == expected[index].fate, "%d: %u", (int)period, truth.fate);
    CHECK(truth.anomaly == expected[index].anomaly, "%d: %u", (int)period, truth.anomaly);
    CHECK(fakevideo_truth_at(camera.machine, 0, period + 1, &next) == 0, "after %d", (int)period);
    int64_t step = next.microseconds - truth.microseconds;
    CHECK(step == 8333 || step == 8334, "%d: %d us", (int)period, (int)step);
  }
  fakevideo_counts counts = fakevideo_truth_counts(camera.machine, 0);
  CHECK(counts.periods == 95 && counts.dequeued == 90, "%d", (int)counts.periods);
  CHECK(counts.lost_device == 5, "%d", (int)counts.lost_device);
  stop(&camera);
}

static void check_clocks(void) {
  const struct {
    const char *configuration;
    int64_t wrap;
  } clocks[] = {
    {"tiny stampwrap=32 wrapafter=0.2", (int64_t)1 << 32},
    {"tiny stampwrap=63 wrapafter=0.2", INT64_MAX / 1000},
  };
  for (int index = 0; index < 2; index++) {
    Camera camera;
    start(&camera, clocks[index].configuration);
    take(&camera, 60);
    fakevideo_truth first, truth, wrapped = {0};
    CHECK(fakevideo_truth_at(camera.machine, 0, 0, &first) == 0, "no log");
    int64_t left = clocks[index].wrap - first.microseconds;
    CHECK(left > 190000 && left <= 200000, "%lld us to the wrap", (long long)left);
    for (int64_t period = 0; period < 60; period++) {
      CHECK(fakevideo_truth_at(camera.machine, 0, period, &truth) == 0, "no log");
      if (truth.anomaly & FAKEVIDEO_CLOCK_WRAP) wrapped = truth;
    }
    CHECK(wrapped.period >= 23 && wrapped.period <= 25, "%lld", (long long)wrapped.period);
    CHECK(wrapped.microseconds < 10000, "%lld", (long long)wrapped.microseconds);
    stop(&camera);
  }
}

static void check_breakdown(void) {
  Camera camera;
  start(&camera, "tiny at=20:eio");
  take(&camera, 20);
  CHECK(fakevideo_poll(camera.machine, camera.handle, POLLIN, 1000) == POLLERR, "no error");
  struct v4l2_buffer buffer = buffer_number(0);
  int result = fakevideo_ioctl(camera.machine, camera.handle, VIDIOC_DQBUF, &buffer);
  CHECK(result == -EIO, "%d", result);
  stop(&camera);
}

int main(int count, char **arguments) {
  check_features();
  check_log();
  check_clocks();
  check_breakdown();
  int64_t frames = count > 1 ? atoll(arguments[1]) : 1000000;
  run("tiny", frames);
  run("tiny seed=7 faults=0.2% jitter=0.2", frames);
  run("tiny seed=9 start=3 loss=2% stall=0.01%", frames);
  return 0;
}
