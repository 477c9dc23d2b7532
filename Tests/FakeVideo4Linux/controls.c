// SPDX-License-Identifier: Apache-2.0
// Controls: QUERYCTRL, QUERY_EXT_CTRL, QUERYMENU, and reading and setting them one by one.
#include "model.h"

#include <errno.h>
#include <string.h>

static int index_of(const device_node *node, uint32_t id) {
  const description_control *controls = node->kind->controls;
  for (int index = 0; controls != NULL && controls[index].id != 0; index++)
    if (controls[index].id == id) return index;
  return -1;
}

int64_t control_value(const device_node *node, uint32_t id, int64_t missing) {
  int index = index_of(node, id);
  return index < 0 ? missing : node->values[index];
}

/// The control of this id, or the one after it where the caller walks the list.
static int find(const device_node *node, uint32_t id) {
  if ((id & V4L2_CTRL_FLAG_NEXT_CTRL) == 0) return index_of(node, id);
  uint32_t after = id & 0x0FFFFFFF;
  int best = -1;
  const description_control *controls = node->kind->controls;
  for (int index = 0; controls != NULL && controls[index].id != 0; index++)
    if (controls[index].id > after && (best < 0 || controls[index].id < controls[best].id))
      best = index;
  return best;
}

static int64_t maximum(const device_node *node, const description_control *control) {
  if (control->id != V4L2_CID_EXPOSURE_ABSOLUTE || !node->kind->exposure_follows_rate)
    return control->maximum;
  int64_t frame = (int64_t)node->interval.numerator * 10000 / node->interval.denominator;
  return frame < control->maximum ? frame : control->maximum;
}

/// The flags of a control now: those of an automatic kind switch others off.
static uint32_t flags(const device_node *node, const description_control *control) {
  uint32_t flags = control->flags;
  int64_t mode = control_value(node, V4L2_CID_EXPOSURE_AUTO, V4L2_EXPOSURE_MANUAL);
  if (control->id == V4L2_CID_EXPOSURE_ABSOLUTE && mode != V4L2_EXPOSURE_MANUAL
      && mode != V4L2_EXPOSURE_SHUTTER_PRIORITY)
    flags |= V4L2_CTRL_FLAG_INACTIVE;
  if (control->id == V4L2_CID_FOCUS_ABSOLUTE && control_value(node, V4L2_CID_FOCUS_AUTO, 0) != 0)
    flags |= V4L2_CTRL_FLAG_INACTIVE;
  if (control->id == V4L2_CID_WHITE_BALANCE_TEMPERATURE
      && control_value(node, V4L2_CID_AUTO_WHITE_BALANCE, 0) != 0)
    flags |= V4L2_CTRL_FLAG_INACTIVE;
  return flags;
}

static int query_ext(const device_node *node, struct v4l2_query_ext_ctrl *query) {
  int index = find(node, query->id);
  if (index < 0) return -EINVAL;
  const description_control *control = &node->kind->controls[index];
  memset(query, 0, sizeof *query);
  query->id = control->id;
  query->type = control->type;
  strncpy(query->name, control->name, sizeof query->name - 1);
  query->minimum = control->minimum;
  query->maximum = maximum(node, control);
  query->step = (uint64_t)control->step;
  query->default_value = control->value;
  query->flags = flags(node, control);
  query->elem_size = 4;
  query->elems = 1;
  return 0;
}

static int query_plain(const device_node *node, struct v4l2_queryctrl *query) {
  struct v4l2_query_ext_ctrl ext = {.id = query->id};
  int result = query_ext(node, &ext);
  if (result < 0) return result;
  memset(query, 0, sizeof *query);
  query->id = ext.id;
  query->type = ext.type;
  memcpy(query->name, ext.name, sizeof query->name);
  query->minimum = (int32_t)ext.minimum;
  query->maximum = (int32_t)ext.maximum;
  query->step = (int32_t)ext.step;
  query->default_value = (int32_t)ext.default_value;
  query->flags = ext.flags;
  return 0;
}

static int query_menu(const device_node *node, struct v4l2_querymenu *query) {
  int index = index_of(node, query->id);
  if (index < 0 || node->kind->controls[index].type != V4L2_CTRL_TYPE_MENU) return -EINVAL;
  if (query->index >= 6 || node->kind->controls[index].items[query->index] == NULL)
    return -EINVAL;
  memset(query->name, 0, sizeof query->name);
  strncpy(
    (char *)query->name, node->kind->controls[index].items[query->index], sizeof query->name - 1);
  return 0;
}

static int set_value(device_node *node, uint32_t id, int64_t value) {
  int index = index_of(node, id);
  if (index < 0) return -EINVAL;
  const description_control *control = &node->kind->controls[index];
  if (control->flags & V4L2_CTRL_FLAG_READ_ONLY) return -EACCES;
  // As UVC cameras do: what an automatic kind has taken over cannot be set.
  if (flags(node, control) & V4L2_CTRL_FLAG_INACTIVE) return -EIO;
  if (control->type == V4L2_CTRL_TYPE_MENU
      && (value < 0 || value >= 6 || control->items[value] == NULL))
    return -EINVAL;
  int64_t highest = maximum(node, control);
  if (value < control->minimum) value = control->minimum;
  if (value > highest) value = highest;
  value -= (value - control->minimum) % (control->step > 0 ? control->step : 1);
  generate(node);
  node->values[index] = value;
  return 0;
}

static int get_value(const device_node *node, uint32_t id, int64_t *value) {
  int index = index_of(node, id);
  if (index < 0) return -EINVAL;
  *value = node->values[index];
  return 0;
}

static int exchange(device_node *node, struct v4l2_ext_controls *controls, bool is_set) {
  for (uint32_t index = 0; index < controls->count; index++) {
    struct v4l2_ext_control *control = &controls->controls[index];
    int64_t value = control->value;
    int result =
      is_set ? set_value(node, control->id, value) : get_value(node, control->id, &value);
    if (result < 0) {
      controls->error_idx = index;
      return result;
    }
    control->value = (int32_t)value;
  }
  return 0;
}

int control_request(device_node *node, unsigned long request, void *argument) {
  switch (request) {
  case VIDIOC_QUERY_EXT_CTRL: return query_ext(node, argument);
  case VIDIOC_QUERYCTRL: return query_plain(node, argument);
  case VIDIOC_QUERYMENU: return query_menu(node, argument);
  case VIDIOC_G_CTRL: {
    struct v4l2_control *control = argument;
    int64_t value;
    int result = get_value(node, control->id, &value);
    if (result == 0) control->value = (int32_t)value;
    return result;
  }
  case VIDIOC_S_CTRL: {
    const struct v4l2_control *control = argument;
    return set_value(node, control->id, control->value);
  }
  case VIDIOC_G_EXT_CTRLS: return exchange(node, argument, false);
  case VIDIOC_S_EXT_CTRLS: return exchange(node, argument, true);
  default: return -ENOTTY;
  }
}
