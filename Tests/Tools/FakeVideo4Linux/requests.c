// SPDX-License-Identifier: Apache-2.0
// The common part of all requests: priorities, privileges, and configured failures.
#include "model.h"

#include <errno.h>
#include <string.h>

/// Whether a handle may change settings: no other handle has a higher priority.
static bool may_change(const fakevideo *machine, int handle) {
  for (int other = 0; other < MAX_HANDLES; other++)
    // A device that was plugged in again has lost the priorities and locks of its earlier handles.
    if (machine->handles[other].is_open && other != handle && !machine->handles[other].is_stale
        && machine->handles[other].node == machine->handles[handle].node
        && machine->handles[other].priority > machine->handles[handle].priority)
      return false;
  return true;
}

static bool is_change(unsigned long request) {
  switch (request) {
  case VIDIOC_S_FMT:
  case VIDIOC_S_PARM:
  case VIDIOC_S_SELECTION:
  case VIDIOC_S_CTRL:
  case VIDIOC_S_EXT_CTRLS:
  case VIDIOC_S_INPUT:
  case VIDIOC_S_STD:
  case VIDIOC_S_DV_TIMINGS:
  case VIDIOC_REQBUFS:
  case VIDIOC_STREAMON:
  case VIDIOC_STREAMOFF: return true;
  default: return false;
  }
}

static int priority_request(
  fakevideo *machine, int handle, unsigned long request, uint32_t *value
) {
  if (request == VIDIOC_G_PRIORITY) {
    uint32_t highest = V4L2_PRIORITY_UNSET;
    for (int other = 0; other < MAX_HANDLES; other++)
      if (machine->handles[other].is_open
          && machine->handles[other].node == machine->handles[handle].node
          && machine->handles[other].priority > highest)
        highest = machine->handles[other].priority;
    *value = highest;
    return 0;
  }
  if (*value < V4L2_PRIORITY_BACKGROUND || *value > V4L2_PRIORITY_RECORD) return -EINVAL;
  if (!may_change(machine, handle)) return -EBUSY;
  machine->handles[handle].priority = *value;
  return 0;
}

/// The errno of a configured failure of this call; 0 for none.
static int planned_failure(device_node *node, unsigned long request) {
  for (int index = 0; index < node->options.failure_count; index++) {
    scheduled_failure *failure = &node->options.failures[index];
    if (failure->request != request) continue;
    int64_t call = ++failure->seen;
    bool is_over = failure->count != 0 && call >= failure->first + failure->count;
    if (call >= failure->first && !is_over) return failure->code;
  }
  return 0;
}

/// Whether uvcvideo grants this request to only one handle until it is closed.
static bool needs_privilege(const device_node *node, unsigned long request) {
  switch (request) {
  case VIDIOC_S_FMT:
  case VIDIOC_S_PARM:
  case VIDIOC_S_INPUT:
  case VIDIOC_REQBUFS:
  case VIDIOC_STREAMON: return strcmp(node->kind->driver, "uvcvideo") == 0;
  default: return false;
  }
}

static int answer_request(device_node *node, int handle, unsigned long request, void *argument) {
  static int (*const subjects[])(device_node *, int, unsigned long, void *) = {
    stream_request, format_request, control_request, query_request, input_request, event_request,
    crop_request, tuner_request,
  };
  int result = -ENOTTY;
  for (size_t index = 0; index < sizeof subjects / sizeof *subjects && result == -ENOTTY; index++)
    result = subjects[index](node, handle, request, argument);
  return result;
}

int make_request(
  fakevideo *machine, device_node *node, int handle, unsigned long request, void *argument
) {
  if (machine->handles[handle].is_stale) return -ENODEV;
  if (node->is_gone && request != VIDIOC_DQBUF) return -ENODEV;
  int failure = planned_failure(node, request);
  if (failure != 0) return -failure;
  if (request == VIDIOC_G_PRIORITY || request == VIDIOC_S_PRIORITY)
    return priority_request(machine, handle, request, argument);
  if (is_change(request) && !may_change(machine, handle)) return -EBUSY;
  bool is_private = needs_privilege(node, request);
  if (is_private && node->holder >= 0 && node->holder != handle) return -EBUSY;
  int result = answer_request(node, handle, request, argument);
  if (is_private && result >= 0) {
    bool is_done =
      request == VIDIOC_REQBUFS && ((struct v4l2_requestbuffers *)argument)->count == 0;
    node->holder = is_done ? -1 : handle;
  }
  return result;
}
