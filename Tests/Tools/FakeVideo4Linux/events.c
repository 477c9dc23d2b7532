// SPDX-License-Identifier: Apache-2.0
// Events: control changes and signal changes.
#include "model.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static event_queue *queue_of(device_node *node, int handle) {
  return &node->machine->handles[handle].events;
}

static int find(const event_queue *queue, uint32_t type, uint32_t id) {
  for (int index = 0; index < queue->subscription_count; index++)
    if (queue->subscriptions[index].type == type && queue->subscriptions[index].id == id)
      return index;
  return -1;
}

static void enqueue(device_node *node, event_queue *queue, const struct v4l2_event *event) {
  // A full queue drops its oldest event; the gap in the sequence numbers shows the loss.
  if (queue->event_count == MAX_EVENTS) {
    queue->event_count--;
    memmove(
      &queue->events[0], &queue->events[1], (size_t)queue->event_count * sizeof queue->events[0]);
  }
  struct v4l2_event *place = &queue->events[queue->event_count++];
  *place = *event;
  place->sequence = queue->sequence++;
  int64_t now = machine_now(node->machine);
  place->timestamp.tv_sec = now / 1000000000;
  place->timestamp.tv_nsec = now % 1000000000;
}

void post_event(device_node *node, int cause, const struct v4l2_event *event) {
  fakevideo *machine = node->machine;
  for (int handle = 0; handle < MAX_HANDLES; handle++) {
    if (!machine->handles[handle].is_open || &machine->nodes[machine->handles[handle].node] != node)
      continue;
    event_queue *queue = queue_of(node, handle);
    // A source change event is identified by its input.
    int index = find(queue, event->type, event->id);
    if (index < 0) continue;
    bool hears_itself =
      (queue->subscriptions[index].flags & V4L2_EVENT_SUB_FL_ALLOW_FEEDBACK) != 0;
    if (handle != cause || hears_itself) enqueue(node, queue, event);
  }
}

static struct v4l2_event control_event(device_node *node, uint32_t id, uint32_t changes) {
  struct v4l2_query_ext_ctrl query = {.id = id};
  control_request(node, -1, VIDIOC_QUERY_EXT_CTRL, &query);
  struct v4l2_event event = {.type = V4L2_EVENT_CTRL, .id = id};
  event.u.ctrl.changes = changes;
  event.u.ctrl.type = query.type;
  event.u.ctrl.value64 = control_value(node, id, 0);
  event.u.ctrl.flags = query.flags;
  event.u.ctrl.minimum = (int32_t)query.minimum;
  event.u.ctrl.maximum = (int32_t)query.maximum;
  event.u.ctrl.step = (int32_t)query.step;
  event.u.ctrl.default_value = (int32_t)query.default_value;
  return event;
}

void post_control(device_node *node, int cause, uint32_t id, uint32_t changes) {
  struct v4l2_event event = control_event(node, id, changes);
  post_event(node, cause, &event);
}

static int subscribe(
  device_node *node, event_queue *queue, const struct v4l2_event_subscription *wish
) {
  struct v4l2_query_ext_ctrl query = {.id = wish->id};
  switch (wish->type) {
  case V4L2_EVENT_CTRL:
    if (control_request(node, -1, VIDIOC_QUERY_EXT_CTRL, &query) < 0) return -EINVAL;
    break;
  case V4L2_EVENT_SOURCE_CHANGE:
    if (node->kind->timings == NULL) return -EINVAL;
    break;
  case V4L2_EVENT_EOS: break;
  default: return -EINVAL;
  }
  if (find(queue, wish->type, wish->id) >= 0) return 0;
  if (queue->subscription_count == MAX_EVENTS) return -ENOMEM;
  queue->subscriptions[queue->subscription_count++] = *wish;
  bool has_value = query.type != V4L2_CTRL_TYPE_CTRL_CLASS;
  if (wish->type == V4L2_EVENT_CTRL && has_value && wish->flags & V4L2_EVENT_SUB_FL_SEND_INITIAL) {
    struct v4l2_event event =
      control_event(node, wish->id, V4L2_EVENT_CTRL_CH_VALUE | V4L2_EVENT_CTRL_CH_FLAGS);
    enqueue(node, queue, &event);
  }
  return 0;
}

static int unsubscribe(event_queue *queue, const struct v4l2_event_subscription *wish) {
  int kept = 0, events = 0;
  bool is_all = wish->type == V4L2_EVENT_ALL;
  for (int index = 0; index < queue->subscription_count; index++) {
    struct v4l2_event_subscription one = queue->subscriptions[index];
    if (!is_all && (one.type != wish->type || one.id != wish->id))
      queue->subscriptions[kept++] = one;
  }
  queue->subscription_count = kept;
  for (int index = 0; index < queue->event_count; index++)
    if (find(queue, queue->events[index].type, queue->events[index].id) >= 0)
      queue->events[events++] = queue->events[index];
  queue->event_count = events;
  return 0;
}

static int dequeue(event_queue *queue, struct v4l2_event *answer) {
  if (queue->event_count == 0) return -ENOENT;
  *answer = queue->events[0];
  answer->pending = (uint32_t)--queue->event_count;
  memmove(
    &queue->events[0], &queue->events[1], (size_t)queue->event_count * sizeof queue->events[0]);
  return 0;
}

int event_request(device_node *node, int handle, unsigned long request, void *argument) {
  event_queue *queue = queue_of(node, handle);
  switch (request) {
  case VIDIOC_SUBSCRIBE_EVENT: return subscribe(node, queue, argument);
  case VIDIOC_UNSUBSCRIBE_EVENT: return unsubscribe(queue, argument);
  case VIDIOC_DQEVENT: return dequeue(queue, argument);
  default: return -ENOTTY;
  }
}
