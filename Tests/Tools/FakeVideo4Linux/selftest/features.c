// SPDX-License-Identifier: Apache-2.0
// Tests of the simulated driver apart from streaming.
#include "selftest.h"

#include <errno.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <string.h>

static fakevideo *make(const char *configuration) {
  char error[256] = "";
  fakevideo *machine = fakevideo_create(configuration, true, error, sizeof error);
  CHECK(machine != NULL, "\"%s\": %s", configuration, error);
  return machine;
}

static int open_first(fakevideo *machine) {
  int handle = fakevideo_open(machine, "/dev/fakevideo0", 2);
  CHECK(handle >= 0, "%d", handle);
  return handle;
}

static void check_configurations(void) {
  const char *const bad[] = {
    "nothing", "tiny speed=3", "tiny seed", "tiny at=5:nothing", "tiny at=x", "tiny fail=QBUF",
    "tiny fail=QBUF:EWHAT", "tiny signal=loud", "tiny loss=much",
  };
  for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
    char error[256] = "";
    fakevideo *machine = fakevideo_create(bad[index], true, error, sizeof error);
    CHECK(machine == NULL && error[0] != 0, "\"%s\" was accepted", bad[index]);
  }
  fakevideo *machine = make("tiny at=5:loss;7:reset;uvc-webcam\nhfr-usb");
  CHECK(fakevideo_node_count(machine) == 4, "%d", fakevideo_node_count(machine));
  fakevideo_destroy(machine);
  machine = make("");
  CHECK(fakevideo_node_count(machine) > 16, "%d", fakevideo_node_count(machine));
  fakevideo_destroy(machine);
}

static void check_timings(void) {
  fakevideo *machine = make("hdmi-card");
  int handle = open_first(machine), input = 1;
  struct v4l2_dv_timings timings;
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_S_INPUT, &input) == 0, "S_INPUT");
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_QUERY_DV_TIMINGS, &timings) == 0, "QUERY");
  CHECK(timings.bt.width == 640, "%u", timings.bt.width);
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_S_DV_TIMINGS, &timings) == 0, "S_DV_TIMINGS");
  struct v4l2_format format = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_G_FMT, &format) == 0, "G_FMT");
  CHECK(format.fmt.pix.width == 640 && format.fmt.pix.height == 480, "not the signal's size");
  input = 2;
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_S_INPUT, &input) == 0, "S_INPUT");
  int result = fakevideo_ioctl(machine, handle, VIDIOC_QUERY_DV_TIMINGS, &timings);
  CHECK(result == -ENOLINK, "%d", result);
  fakevideo_destroy(machine);
}

static void check_events(void) {
  fakevideo *machine = make("uvc-webcam");
  int listener = open_first(machine), other = open_first(machine);
  struct v4l2_event_subscription wish = {.type = V4L2_EVENT_CTRL, .id = V4L2_CID_BRIGHTNESS};
  CHECK(fakevideo_ioctl(machine, listener, VIDIOC_SUBSCRIBE_EVENT, &wish) == 0, "SUBSCRIBE");
  CHECK(fakevideo_poll(machine, listener, POLLPRI, 10) == 0, "an event before any change");
  struct v4l2_control control = {.id = V4L2_CID_BRIGHTNESS, .value = 7};
  CHECK(fakevideo_ioctl(machine, other, VIDIOC_S_CTRL, &control) == 0, "S_CTRL");
  CHECK(fakevideo_poll(machine, listener, POLLPRI, 10) == POLLPRI, "no event");
  struct v4l2_event event;
  CHECK(fakevideo_ioctl(machine, listener, VIDIOC_DQEVENT, &event) == 0, "DQEVENT");
  CHECK(event.id == V4L2_CID_BRIGHTNESS && event.u.ctrl.value == 7, "%d", event.u.ctrl.value);
  CHECK(fakevideo_ioctl(machine, listener, VIDIOC_DQEVENT, &event) == -ENOENT, "another one");
  control.value = 8;
  CHECK(fakevideo_ioctl(machine, listener, VIDIOC_S_CTRL, &control) == 0, "S_CTRL");
  CHECK(fakevideo_poll(machine, listener, POLLPRI, 10) == 0, "an event for its own change");
  fakevideo_destroy(machine);
}

static void check_ownership(void) {
  fakevideo *machine = make("hfr-usb fail=G_PARM:EIO@2*2");
  int first = open_first(machine), second = open_first(machine);
  struct v4l2_streamparm rate = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
  const int expected[] = {0, -EIO, -EIO, 0};
  for (int call = 0; call < 4; call++) {
    int result = fakevideo_ioctl(machine, first, VIDIOC_G_PARM, &rate);
    CHECK(result == expected[call], "call %d: %d", call, result);
  }
  CHECK(fakevideo_ioctl(machine, first, VIDIOC_S_PARM, &rate) == 0, "S_PARM");
  int result = fakevideo_ioctl(machine, second, VIDIOC_S_PARM, &rate);
  CHECK(result == -EBUSY, "a second opener of a UVC camera: %d", result);
  fakevideo_close(machine, first);
  CHECK(fakevideo_ioctl(machine, second, VIDIOC_S_PARM, &rate) == 0, "S_PARM");
  CHECK(fakevideo_call_count(machine, VIDIOC_G_PARM) == 4, "calls");
  fakevideo_destroy(machine);
}

/// Mapped memory stays valid after buffers are released and the device is unplugged.
static void check_unplugging(void) {
  fakevideo *machine = make("tiny unplug=5 replug=2");
  int handle = open_first(machine), error = 0;
  struct v4l2_requestbuffers buffers = {
    .count = 2, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_REQBUFS, &buffers) == 0, "REQBUFS");
  uint8_t *memory = fakevideo_map(machine, handle, 128, 0, &error);
  CHECK(memory != NULL, "%d", error);
  CHECK(fakevideo_ioctl(machine, handle, VIDIOC_STREAMON, &buffers.type) == 0, "STREAMON");
  fakevideo_advance(machine, 1000000000);
  int events = fakevideo_poll(machine, handle, POLLIN, 1000);
  CHECK(events & POLLHUP, "%d", events);
  CHECK(fakevideo_open(machine, "/dev/fakevideo0", 2) == -ENODEV, "the unplugged device still opens");
  fakevideo_advance(machine, 2500000000);
  int again = open_first(machine);
  int result = fakevideo_ioctl(machine, handle, VIDIOC_STREAMOFF, &buffers.type);
  CHECK(result == -ENODEV, "%d", result);
  memory[0] = 1;
  CHECK(fakevideo_unmap(machine, memory, 128) == 0, "unmap");
  CHECK(fakevideo_unmap(machine, memory, 128) == -EINVAL, "unmapped twice");
  CHECK(fakevideo_ioctl(machine, again, VIDIOC_REQBUFS, &buffers) == 0, "REQBUFS");
  fakevideo_destroy(machine);
}

void check_features(void) {
  check_configurations();
  check_timings();
  check_events();
  check_ownership();
  check_unplugging();
}
