// SPDX-License-Identifier: Apache-2.0
// Inputs and their signals: DV timings as on HDMI, and analog TV standards.
#include "model.h"

#include <errno.h>
#include <linux/v4l2-dv-timings.h>
#include <string.h>

static const description_input a_camera[] = {
  {.name = "Camera 1", .type = V4L2_INPUT_TYPE_CAMERA}, {.name = NULL}};

static const description_input *inputs_of(const device_node *node) {
  return node->kind->inputs != NULL ? node->kind->inputs : a_camera;
}

static const description_input *input_of(const device_node *node) {
  return &inputs_of(node)[node->input];
}

static uint32_t input_count(const device_node *node) {
  uint32_t count = 0;
  while (inputs_of(node)[count].name != NULL) count++;
  return count;
}

static bool has_timings(const device_node *node) {
  return (input_of(node)->capabilities & V4L2_IN_CAP_DV_TIMINGS) != 0;
}

static bool has_standards(const device_node *node) {
  return (input_of(node)->capabilities & V4L2_IN_CAP_STD) != 0;
}

bool follows_signal(const device_node *node) { return has_timings(node) || has_standards(node); }

// MARK: - Size and rate of a signal

static struct v4l2_fract reduced(uint64_t numerator, uint64_t denominator) {
  uint64_t a = numerator, b = denominator;
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  if (a == 0) a = 1;
  return (struct v4l2_fract){(uint32_t)(numerator / a), (uint32_t)(denominator / a)};
}

static void follow_signal(device_node *node) {
  description_size *size = &node->signal_sizes[0];
  memset(node->signal_sizes, 0, sizeof node->signal_sizes);
  if (has_standards(node)) {
    bool is_525 = (node->standard & V4L2_STD_525_60) != 0;
    *size = (description_size){720, is_525 ? 480 : 576, {{1, 25}}};
    if (is_525) size->intervals[0] = (struct v4l2_fract){1001, 30000};
  } else if (has_timings(node)) {
    const struct v4l2_bt_timings *bt = &node->timings.bt;
    uint64_t pixels = (uint64_t)V4L2_DV_BT_FRAME_WIDTH(bt) * V4L2_DV_BT_FRAME_HEIGHT(bt);
    *size = (description_size){bt->width, bt->height, {reduced(pixels, bt->pixelclock)}};
  }
  set_default_format(node);
}

void set_default_input(device_node *node) {
  const description_input *input = input_of(node);
  node->standard = input->standards & V4L2_STD_PAL ? V4L2_STD_PAL : input->standards;
  if (input->signal != NULL) node->signal = *input->signal;
  // After power-on, a capture card is set to the first timings of its list.
  if (node->timings.bt.width == 0 && node->kind->timings != NULL)
    node->timings = node->kind->timings[0];
  follow_signal(node);
}

void change_signal(device_node *node) {
  int count = 0, now = 0;
  const struct v4l2_dv_timings *list = node->kind->timings;
  for (; list != NULL && list[count].bt.width != 0; count++)
    if (memcmp(&list[count], &node->signal, sizeof node->signal) == 0) now = count;
  if (count > 0) node->signal = list[(now + 1) % count];
  struct v4l2_event event = {.type = V4L2_EVENT_SOURCE_CHANGE, .id = node->input};
  event.u.src_change.changes = V4L2_EVENT_SRC_CH_RESOLUTION;
  post_event(node, -1, &event);
}

// MARK: - Inputs

static int signal_error(const device_node *node, const description_input *input) {
  return node->options.signal_error != 0 ? node->options.signal_error : input->error;
}

static int enumerate_input(const device_node *node, struct v4l2_input *answer) {
  if (answer->index >= input_count(node)) return -EINVAL;
  uint32_t index = answer->index;
  const description_input *input = &inputs_of(node)[index];
  memset(answer, 0, sizeof *answer);
  answer->index = index;
  strncpy((char *)answer->name, input->name, sizeof answer->name - 1);
  answer->type = input->type;
  answer->std = input->standards;
  answer->capabilities = input->capabilities;
  // Drivers report the signal status of the current input only.
  if (index != node->input || !(input->capabilities & V4L2_IN_CAP_DV_TIMINGS)) return 0;
  int error = signal_error(node, input);
  if (error == ENOLINK) answer->status = V4L2_IN_ST_NO_SIGNAL;
  if (error == ENOLCK) answer->status = V4L2_IN_ST_NO_H_LOCK;
  return 0;
}

static int set_input(device_node *node, int wanted) {
  if (wanted < 0 || (uint32_t)wanted >= input_count(node)) return -EINVAL;
  if ((uint32_t)wanted == node->input) return 0;
  if (node->buffer_count > 0) return -EBUSY;
  node->input = (uint32_t)wanted;
  set_default_input(node);
  return 0;
}

// MARK: - Digital timings

static const struct v4l2_bt_timings_cap limits = {
  .min_width = 320, .max_width = 1920, .min_height = 200, .max_height = 1200,
  .min_pixelclock = 13500000, .max_pixelclock = 300000000,
  .standards = V4L2_DV_BT_STD_CEA861 | V4L2_DV_BT_STD_DMT | V4L2_DV_BT_STD_CVT,
  .capabilities = V4L2_DV_BT_CAP_PROGRESSIVE | V4L2_DV_BT_CAP_REDUCED_BLANKING
    | V4L2_DV_BT_CAP_CUSTOM,
};

static bool is_possible(const struct v4l2_dv_timings *timings) {
  const struct v4l2_bt_timings *bt = &timings->bt;
  return timings->type == V4L2_DV_BT_656_1120 && bt->width >= limits.min_width
    && bt->width <= limits.max_width && bt->height >= limits.min_height
    && bt->height <= limits.max_height && bt->pixelclock >= limits.min_pixelclock
    && bt->pixelclock <= limits.max_pixelclock && !bt->interlaced;
}

static int set_timings(device_node *node, struct v4l2_dv_timings *wanted) {
  if (!is_possible(wanted)) return -EINVAL;
  memset(wanted->bt.reserved, 0, sizeof wanted->bt.reserved);
  if (memcmp(wanted, &node->timings, sizeof *wanted) == 0) return 0;
  if (node->buffer_count > 0) return -EBUSY;
  node->timings = *wanted;
  follow_signal(node);
  return 0;
}

static int enumerate_timings(const device_node *node, struct v4l2_enum_dv_timings *answer) {
  uint32_t count = 0;
  while (node->kind->timings[count].bt.width != 0) count++;
  if (answer->index >= count) return -EINVAL;
  answer->timings = node->kind->timings[answer->index];
  return 0;
}

static int timings_request(device_node *node, unsigned long request, void *argument) {
  if (node->kind->timings == NULL) return -ENOTTY;
  if (!has_timings(node)) return -ENODATA;
  switch (request) {
  case VIDIOC_ENUM_DV_TIMINGS: return enumerate_timings(node, argument);
  case VIDIOC_QUERY_DV_TIMINGS: {
    int error = signal_error(node, input_of(node));
    if (error != 0) return -error;
    memcpy(argument, &node->signal, sizeof node->signal);
    return 0;
  }
  case VIDIOC_G_DV_TIMINGS: memcpy(argument, &node->timings, sizeof node->timings); return 0;
  case VIDIOC_S_DV_TIMINGS: return set_timings(node, argument);
  default: {
    struct v4l2_dv_timings_cap *answer = argument;
    answer->type = V4L2_DV_BT_656_1120;
    answer->bt = limits;
    return 0;
  }
  }
}

// MARK: - Television standards

static int enumerate_standard(const device_node *node, struct v4l2_standard *answer) {
  static const struct v4l2_standard all[] = {
    {.id = V4L2_STD_PAL, .name = "PAL", .frameperiod = {1, 25}, .framelines = 625},
    {.id = V4L2_STD_NTSC, .name = "NTSC", .frameperiod = {1001, 30000}, .framelines = 525}};
  uint32_t left = answer->index;
  for (size_t index = 0; index < sizeof all / sizeof *all; index++) {
    if (!(all[index].id & input_of(node)->standards) || left-- > 0) continue;
    uint32_t place = answer->index;
    *answer = all[index];
    answer->index = place;
    return 0;
  }
  return -EINVAL;
}

static int standard_request(device_node *node, unsigned long request, void *argument) {
  bool has_any = false;
  for (uint32_t index = 0; index < input_count(node); index++)
    has_any |= inputs_of(node)[index].standards != 0;
  if (!has_any) return -ENOTTY;
  if (!has_standards(node)) return -ENODATA;
  if (request == VIDIOC_ENUMSTD) return enumerate_standard(node, argument);
  v4l2_std_id *standard = argument;
  if (request != VIDIOC_S_STD) {
    *standard = node->standard;  // The detected standard always equals the configured one.
    return 0;
  }
  if ((*standard & input_of(node)->standards) == 0) return -EINVAL;
  if ((*standard & input_of(node)->standards) == node->standard) return 0;
  if (node->buffer_count > 0) return -EBUSY;
  node->standard = *standard & input_of(node)->standards;
  follow_signal(node);
  return 0;
}

int input_request(device_node *node, int handle, unsigned long request, void *argument) {
  (void)handle;
  switch (request) {
  case VIDIOC_ENUMINPUT: return enumerate_input(node, argument);
  case VIDIOC_G_INPUT: *(int *)argument = (int)node->input; return 0;
  case VIDIOC_S_INPUT: return set_input(node, *(int *)argument);
  case VIDIOC_ENUM_DV_TIMINGS:
  case VIDIOC_QUERY_DV_TIMINGS:
  case VIDIOC_G_DV_TIMINGS:
  case VIDIOC_S_DV_TIMINGS:
  case VIDIOC_DV_TIMINGS_CAP: return timings_request(node, request, argument);
  case VIDIOC_G_STD:
  case VIDIOC_S_STD:
  case VIDIOC_ENUMSTD:
  case VIDIOC_QUERYSTD: return standard_request(node, request, argument);
  default: return -ENOTTY;
  }
}
