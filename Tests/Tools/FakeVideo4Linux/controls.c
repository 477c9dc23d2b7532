// SPDX-License-Identifier: Apache-2.0
// Controls: queries, and reading and setting of one or several values.
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const description_control *controls_of(const device_node *node) {
  static const description_control none[] = {{0}};
  return node->kind->controls != NULL ? node->kind->controls : none;
}

static bool is_compound(const description_control *control) { return control->type == TYPE_RECT; }

/// The index of a driver-private control, by its position (the V4L2_CID_PRIVATE_BASE scheme).
static int private_index(const device_node *node, uint32_t place) {
  const description_control *controls = controls_of(node);
  for (int index = 0; controls[index].id != 0; index++) {
    if (!V4L2_CTRL_DRIVER_PRIV(controls[index].id) || is_compound(&controls[index])) continue;
    if (place-- == 0) return index;
  }
  return -1;
}

static int index_of(const device_node *node, uint32_t id) {
  const description_control *controls = controls_of(node);
  if (id >= V4L2_CID_PRIVATE_BASE && id < V4L2_CID_PRIVATE_BASE + MAX_CONTROLS)
    return private_index(node, id - V4L2_CID_PRIVATE_BASE);
  for (int index = 0; controls[index].id != 0; index++)
    if (controls[index].id == id) return index;
  return -1;
}

int64_t control_value(const device_node *node, uint32_t id, int64_t missing) {
  int index = index_of(node, id);
  return index < 0 ? missing : node->values[index];
}

void print_controls(const device_node *node, char *text, size_t size) {
  const description_control *controls = controls_of(node);
  size_t length = 0;
  text[0] = 0;
  for (int index = 0; controls[index].id != 0; index++) {
    if (controls[index].type == V4L2_CTRL_TYPE_CTRL_CLASS) continue;
    if (is_compound(&controls[index])) continue;
    int more = snprintf(
      text + length, size - length, "%s\"%s\":%" PRId64, length == 0 ? "" : ",",
      controls[index].name, node->values[index]);
    if (more < 0 || (size_t)more >= size - length) {
      text[length] = 0;  // Controls beyond the buffer's capacity are omitted.
      return;
    }
    length += (size_t)more;
  }
}

static const struct v4l2_rect whole = {0, 0, 1920, 1080};

void set_default_controls(device_node *node) {
  const description_control *controls = controls_of(node);
  for (int index = 0; controls[index].id != 0; index++)
    node->values[index] = controls[index].value;
  node->region = whole;
}

/// The index of the control with this ID, or of the next one for an enumeration.
static int find(const device_node *node, uint32_t id) {
  const uint32_t next = V4L2_CTRL_FLAG_NEXT_CTRL | V4L2_CTRL_FLAG_NEXT_COMPOUND;
  if ((id & next) == 0) return index_of(node, id);
  uint32_t after = id & V4L2_CTRL_ID_MASK;
  int best = -1;
  const description_control *controls = controls_of(node);
  for (int index = 0; controls[index].id != 0; index++) {
    uint32_t wanted = is_compound(&controls[index]) ? V4L2_CTRL_FLAG_NEXT_COMPOUND
                                                    : V4L2_CTRL_FLAG_NEXT_CTRL;
    if ((id & wanted) == 0 || controls[index].id <= after) continue;
    if (best < 0 || controls[index].id < controls[best].id) best = index;
  }
  return best;
}

// MARK: - Descriptions

static int64_t maximum(const device_node *node, const description_control *control) {
  if (control->id != V4L2_CID_EXPOSURE_ABSOLUTE || !node->kind->exposure_follows_rate)
    return control->maximum;
  int64_t frame = (int64_t)node->interval.numerator * 10000 / node->interval.denominator;
  return frame < control->maximum ? frame : control->maximum;
}

/// The automatic mode control that governs a control; 0 for none.
static uint32_t automatic_of(uint32_t id) {
  switch (id) {
  case V4L2_CID_EXPOSURE_ABSOLUTE: return V4L2_CID_EXPOSURE_AUTO;
  case V4L2_CID_FOCUS_ABSOLUTE: return V4L2_CID_FOCUS_AUTO;
  case V4L2_CID_WHITE_BALANCE_TEMPERATURE: return V4L2_CID_AUTO_WHITE_BALANCE;
  default: return 0;
  }
}

/// The present flags: an active automatic mode makes the governed controls inactive.
static uint32_t flags(const device_node *node, const description_control *control) {
  uint32_t flags = control->flags;
  if (is_compound(control)) flags |= V4L2_CTRL_FLAG_HAS_PAYLOAD;
  uint32_t automatic = automatic_of(control->id);
  if (automatic == 0) return flags;
  bool is_off = control_value(node, automatic, 0) != 0;
  if (automatic == V4L2_CID_EXPOSURE_AUTO) {
    int64_t mode = control_value(node, automatic, V4L2_EXPOSURE_MANUAL);
    is_off = mode != V4L2_EXPOSURE_MANUAL && mode != V4L2_EXPOSURE_SHUTTER_PRIORITY;
  }
  return is_off ? flags | V4L2_CTRL_FLAG_INACTIVE : flags;
}

static uint32_t element_size(const description_control *control) {
  switch (control->type) {
  case V4L2_CTRL_TYPE_INTEGER64: return 8;
  case V4L2_CTRL_TYPE_BUTTON:
  case V4L2_CTRL_TYPE_CTRL_CLASS: return 0;
  default: return is_compound(control) ? sizeof(struct v4l2_rect) : 4;
  }
}

static int query_ext(const device_node *node, struct v4l2_query_ext_ctrl *query) {
  int index = find(node, query->id);
  if (index < 0) return -EINVAL;
  const description_control *control = &controls_of(node)[index];
  uint32_t requested = query->id;
  memset(query, 0, sizeof *query);
  bool is_by_index = requested >= V4L2_CID_PRIVATE_BASE && requested < V4L2_CTRL_FLAG_NEXT_COMPOUND;
  query->id = is_by_index ? requested : control->id;
  query->type = control->type;
  // The list begins with the name of a class.
  const char *name = index == 1 ? given_name(control->name) : control->name;
  strncpy(query->name, name, sizeof query->name - 1);
  query->minimum = control->minimum;
  query->maximum = maximum(node, control);
  query->step = (uint64_t)control->step;
  query->default_value = control->value;
  query->flags = flags(node, control);
  query->elem_size = element_size(control);
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
  query->flags = ext.flags;
  // v4l2_queryctrl has no fields for the limits of compound controls.
  if (ext.flags & V4L2_CTRL_FLAG_HAS_PAYLOAD) return 0;
  query->minimum = (int32_t)ext.minimum;
  query->maximum = (int32_t)ext.maximum;
  query->step = (int32_t)ext.step;
  query->default_value = (int32_t)ext.default_value;
  return 0;
}

static bool is_menu(const description_control *control) {
  return control->type == V4L2_CTRL_TYPE_MENU || control->type == V4L2_CTRL_TYPE_INTEGER_MENU;
}

/// The text of a menu item; NULL for a missing item.
static const char *item(const description_control *control, int64_t place) {
  if (place < control->minimum || place > control->maximum || place >= MENU_ITEMS) return NULL;
  return control->items[place];
}

static int query_menu(const device_node *node, struct v4l2_querymenu *query) {
  int index = index_of(node, query->id);
  if (index < 0 || !is_menu(&controls_of(node)[index])) return -EINVAL;
  const description_control *control = &controls_of(node)[index];
  const char *text = item(control, query->index);
  if (text == NULL) return -EINVAL;
  if (control->type == V4L2_CTRL_TYPE_INTEGER_MENU) {
    query->value = strtoll(text, NULL, 10);
    return 0;
  }
  memset(query->name, 0, sizeof query->name);
  strncpy((char *)query->name, text, sizeof query->name - 1);
  return 0;
}

// MARK: - Values

/// Clamps a value to the control's range; an error for a value that cannot be set.
static int fit(const device_node *node, const description_control *control, int64_t *value) {
  if (control->type == V4L2_CTRL_TYPE_CTRL_CLASS || control->flags & V4L2_CTRL_FLAG_READ_ONLY)
    return -EACCES;
  if (is_menu(control)) {
    if (*value < control->minimum || *value > control->maximum) return -ERANGE;
    return item(control, *value) == NULL ? -EINVAL : 0;
  }
  int64_t highest = maximum(node, control);
  if (control->type == V4L2_CTRL_TYPE_BITMASK) {
    *value &= control->maximum;
    return 0;
  }
  if (control->type == V4L2_CTRL_TYPE_BOOLEAN) *value = *value != 0;
  if (*value < control->minimum) *value = control->minimum;
  if (*value > highest) *value = highest;
  *value -= (*value - control->minimum) % (control->step > 0 ? control->step : 1);
  return 0;
}

/// Posts events for the new value, and for controls that it activates or deactivates.
static void post_events(device_node *node, int handle, uint32_t id) {
  post_control(node, handle, id, V4L2_EVENT_CTRL_CH_VALUE);
  const description_control *controls = controls_of(node);
  for (int index = 0; controls[index].id != 0; index++)
    if (automatic_of(controls[index].id) == id)
      post_control(node, -1, controls[index].id, V4L2_EVENT_CTRL_CH_FLAGS);
}

static int set_value(device_node *node, int handle, uint32_t id, int64_t *value, bool is_trial) {
  int index = index_of(node, id);
  if (index < 0) return -EINVAL;
  const description_control *control = &controls_of(node)[index];
  if (is_compound(control)) return -EINVAL;
  int result = fit(node, control, value);
  if (result < 0 || is_trial) return result;
  // Like a UVC camera: a control governed by an active automatic mode cannot be set.
  if (flags(node, control) & V4L2_CTRL_FLAG_INACTIVE) return -EIO;
  generate(node);
  if (control->type == V4L2_CTRL_TYPE_BUTTON) return 0;
  bool is_new = node->values[index] != *value;
  node->values[index] = *value;
  node->is_rate_stale = true;
  if (is_new) post_events(node, handle, id);
  return 0;
}

static int get_value(const device_node *node, uint32_t id, uint32_t which, int64_t *value) {
  int index = index_of(node, id);
  if (index < 0) return -EINVAL;
  const description_control *control = &controls_of(node)[index];
  if (control->flags & V4L2_CTRL_FLAG_WRITE_ONLY) return -EACCES;
  switch (which) {
  case V4L2_CTRL_WHICH_DEF_VAL: *value = control->value; break;
  case WHICH_MINIMUM: *value = control->minimum; break;
  case WHICH_MAXIMUM: *value = maximum(node, control); break;
  default: *value = node->values[index]; break;
  }
  return 0;
}

// MARK: - The region of interest

static struct v4l2_rect fit_region(struct v4l2_rect wish) {
  if (wish.width < 16) wish.width = 16;
  if (wish.height < 16) wish.height = 16;
  if (wish.width > whole.width) wish.width = whole.width;
  if (wish.height > whole.height) wish.height = whole.height;
  int right = (int)(whole.width - wish.width), bottom = (int)(whole.height - wish.height);
  wish.left = wish.left < 0 ? 0 : wish.left > right ? right : wish.left;
  wish.top = wish.top < 0 ? 0 : wish.top > bottom ? bottom : wish.top;
  return wish;
}

static int exchange_region(
  device_node *node, int handle, unsigned long request, uint32_t which,
  struct v4l2_ext_control *control
) {
  if (control->size < sizeof node->region) {
    control->size = sizeof node->region;
    return -ENOSPC;
  }
  struct v4l2_rect *answer = control->ptr;
  if (answer == NULL) return -EFAULT;
  if (request != VIDIOC_G_EXT_CTRLS) {
    *answer = fit_region(*answer);
    if (request == VIDIOC_TRY_EXT_CTRLS) return 0;
    node->region = *answer;
    post_control(node, handle, control->id, V4L2_EVENT_CTRL_CH_VALUE);
    return 0;
  }
  switch (which) {
  case WHICH_MINIMUM: *answer = (struct v4l2_rect){0, 0, 16, 16}; break;
  case WHICH_MAXIMUM:
  case V4L2_CTRL_WHICH_DEF_VAL: *answer = whole; break;
  default: *answer = node->region; break;
  }
  return 0;
}

// MARK: - Several at once

static int exchange_one(
  device_node *node, int handle, unsigned long request, uint32_t which,
  struct v4l2_ext_control *control
) {
  int index = index_of(node, control->id);
  if (index < 0) return -EINVAL;
  const description_control *kind = &controls_of(node)[index];
  if (is_compound(kind)) return exchange_region(node, handle, request, which, control);
  bool is_wide = kind->type == V4L2_CTRL_TYPE_INTEGER64;
  int64_t value = is_wide ? control->value64 : control->value;
  int result = request == VIDIOC_G_EXT_CTRLS
    ? get_value(node, control->id, which, &value)
    : set_value(node, handle, control->id, &value, request == VIDIOC_TRY_EXT_CTRLS);
  if (result < 0) return result;
  if (is_wide) control->value64 = value;
  else control->value = (int32_t)value;
  return 0;
}

/// Whether a request for a control class includes this control.
static bool is_meant(uint32_t which, uint32_t id) {
  if (which == V4L2_CTRL_WHICH_CUR_VAL || which >= V4L2_CTRL_WHICH_DEF_VAL) return true;
  return V4L2_CTRL_ID2WHICH(id) == which;
}

/// Whether a control can be read or set at all.
static int check_one(
  const device_node *node, unsigned long request, uint32_t which,
  const struct v4l2_ext_control *wish
) {
  int index = index_of(node, wish->id);
  if (index < 0 || !is_meant(which, wish->id)) return -EINVAL;
  const description_control *control = &controls_of(node)[index];
  if (request == VIDIOC_G_EXT_CTRLS)
    return control->flags & V4L2_CTRL_FLAG_WRITE_ONLY ? -EACCES : 0;
  if (is_compound(control)) return 0;
  int64_t value = control->type == V4L2_CTRL_TYPE_INTEGER64 ? wish->value64 : wish->value;
  return fit(node, control, &value);
}

static int exchange(
  device_node *node, int handle, unsigned long request, struct v4l2_ext_controls *controls
) {
  uint32_t which = controls->which;
  bool is_special =
    which == V4L2_CTRL_WHICH_DEF_VAL || which == WHICH_MINIMUM || which == WHICH_MAXIMUM;
  if (which == V4L2_CTRL_WHICH_REQUEST_VAL) return -EINVAL;
  if (is_special && request != VIDIOC_G_EXT_CTRLS) return -EINVAL;
  controls->error_idx = controls->count;
  // All controls are checked before the first is set. Only VIDIOC_TRY_EXT_CTRLS reports the index.
  for (uint32_t index = 0; index < controls->count; index++) {
    int result = check_one(node, request, which, &controls->controls[index]);
    if (result == 0) continue;
    if (request == VIDIOC_TRY_EXT_CTRLS) controls->error_idx = index;
    return result;
  }
  for (uint32_t index = 0; index < controls->count; index++) {
    int result = exchange_one(node, handle, request, which, &controls->controls[index]);
    if (result == 0) continue;
    controls->error_idx = index;
    return result;
  }
  return 0;
}

int control_request(device_node *node, int handle, unsigned long request, void *argument) {
  if (controls_of(node)[0].id == 0) return -ENOTTY;
  struct v4l2_control *control = argument;
  int64_t value = 0;
  int result;
  switch (request) {
  case VIDIOC_QUERY_EXT_CTRL: return query_ext(node, argument);
  case VIDIOC_QUERYCTRL: return query_plain(node, argument);
  case VIDIOC_QUERYMENU: return query_menu(node, argument);
  case VIDIOC_G_CTRL:
    result = get_value(node, control->id, V4L2_CTRL_WHICH_CUR_VAL, &value);
    if (result == 0) control->value = (int32_t)value;
    return result;
  case VIDIOC_S_CTRL:
    value = control->value;
    result = set_value(node, handle, control->id, &value, false);
    if (result == 0) control->value = (int32_t)value;
    return result;
  case VIDIOC_G_EXT_CTRLS:
  case VIDIOC_S_EXT_CTRLS:
  case VIDIOC_TRY_EXT_CTRLS: return exchange(node, handle, request, argument);
  default: return -ENOTTY;
  }
}
