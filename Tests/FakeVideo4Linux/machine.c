// SPDX-License-Identifier: Apache-2.0
// The machine: its devices, its clock, and the calls by which they are reached.
#include "model.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int64_t machine_now(const fakevideo *machine) {
  if (machine->own_clock) return machine->now;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool add_node(
  fakevideo *machine, const description *kind, const device_options *options, char *error,
  size_t size
) {
  if (machine->node_count == MAX_NODES) {
    snprintf(error, size, "no machine has more than %d nodes", MAX_NODES);
    return false;
  }
  device_node *node = &machine->nodes[machine->node_count];
  node->machine = machine;
  snprintf(node->path, sizeof node->path, "/dev/fakevideo%d", machine->node_count++);
  node->kind = kind;
  node->options = *options;
  node->buffer_owner = -1;
  for (int index = 0; kind->controls != NULL && kind->controls[index].id != 0; index++)
    node->values[index] = kind->controls[index].value;
  set_default_format(node);
  return true;
}

static bool add_line(fakevideo *machine, const char *line, size_t length, char *error, size_t size) {
  while (length > 0 && (*line == ' ' || *line == '\t')) line++, length--;
  size_t name = strcspn(line, " \t\n;");
  if (name > length) name = length;
  if (name == 0) return true;
  const description *kind = find_description(line, name);
  if (kind == NULL) {
    snprintf(error, size, "there is no description \"%.*s\"", (int)name, line);
    return false;
  }
  device_options options;
  if (!parse_options(line + name, length - name, &options, error, size)) return false;
  return add_node(machine, kind, &options, error, size);
}

fakevideo *fakevideo_create(
  const char *configuration, bool ownClock, char *error, size_t errorSize
) {
  fakevideo *machine = calloc(1, sizeof *machine);
  if (machine == NULL) return NULL;
  pthread_mutex_init(&machine->lock, NULL);
  machine->own_clock = ownClock;
  machine->now = 1000000000000;
  bool isGood = true;
  if (configuration == NULL || configuration[strspn(configuration, " \n;")] == 0) {
    for (const description *kind = fake_descriptions; kind->name != NULL && isGood; kind++)
      isGood = add_line(machine, kind->name, strlen(kind->name), error, errorSize);
  } else {
    while (isGood && *configuration != 0) {
      size_t length = strcspn(configuration, "\n;");
      isGood = add_line(machine, configuration, length, error, errorSize);
      configuration += length;
      configuration += strspn(configuration, "\n;");
    }
  }
  if (isGood) return machine;
  fakevideo_destroy(machine);
  return NULL;
}

void fakevideo_destroy(fakevideo *machine) {
  for (int index = 0; index < machine->node_count; index++) release_buffers(&machine->nodes[index]);
  pthread_mutex_destroy(&machine->lock);
  free(machine);
}

int fakevideo_node_count(fakevideo *machine) { return machine->node_count; }

const char *fakevideo_node_path(fakevideo *machine, int index) {
  return index >= 0 && index < machine->node_count ? machine->nodes[index].path : NULL;
}

int fakevideo_open(fakevideo *machine, const char *path, int flags) {
  (void)flags;
  pthread_mutex_lock(&machine->lock);
  int result = -ENOENT;
  for (int index = 0; index < machine->node_count; index++) {
    if (strcmp(machine->nodes[index].path, path) != 0) continue;
    result = machine->nodes[index].is_gone ? -ENODEV : -EMFILE;
    for (int handle = 0; handle < MAX_HANDLES && result == -EMFILE; handle++) {
      if (machine->handles[handle].is_open) continue;
      machine->handles[handle].is_open = true;
      machine->handles[handle].node = index;
      machine->handles[handle].priority = V4L2_PRIORITY_DEFAULT;
      machine->nodes[index].was_opened = true;
      result = handle;
    }
  }
  pthread_mutex_unlock(&machine->lock);
  return result;
}

/// The node behind a handle, or NULL.
static device_node *node_of(fakevideo *machine, int handle) {
  if (handle < 0 || handle >= MAX_HANDLES || !machine->handles[handle].is_open) return NULL;
  return &machine->nodes[machine->handles[handle].node];
}

int fakevideo_close(fakevideo *machine, int handle) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_of(machine, handle);
  if (node != NULL && node->buffer_owner == handle) {
    generate(node);
    node->is_streaming = false;
    release_buffers(node);
  }
  if (node != NULL) machine->handles[handle].is_open = false;
  pthread_mutex_unlock(&machine->lock);
  return node == NULL ? -EBADF : 0;
}

/// Whether a handle may change what others rely on: the highest priority goes first.
static bool may_change(const fakevideo *machine, int handle) {
  for (int other = 0; other < MAX_HANDLES; other++)
    if (machine->handles[other].is_open && other != handle
        && machine->handles[other].node == machine->handles[handle].node
        && machine->handles[other].priority > machine->handles[handle].priority)
      return false;
  return true;
}

static bool is_change(unsigned long request) {
  switch (request) {
  case VIDIOC_S_FMT:
  case VIDIOC_S_PARM:
  case VIDIOC_S_CTRL:
  case VIDIOC_S_EXT_CTRLS:
  case VIDIOC_S_INPUT:
  case VIDIOC_REQBUFS:
  case VIDIOC_STREAMON: return true;
  default: return false;
  }
}

static int priority_request(fakevideo *machine, int handle, unsigned long request, uint32_t *value) {
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

static int make_request(
  fakevideo *machine, device_node *node, int handle, unsigned long request, void *argument
) {
  if (node->is_gone && request != VIDIOC_DQBUF) return -ENODEV;
  if (request == VIDIOC_G_PRIORITY || request == VIDIOC_S_PRIORITY)
    return priority_request(machine, handle, request, argument);
  if (is_change(request) && !may_change(machine, handle)) return -EBUSY;
  int (*const plain[])(device_node *, unsigned long, void *) = {query_request, control_request};
  int (*const owned[])(device_node *, int, unsigned long, void *) = {
    stream_request, format_request};
  int result = -ENOTTY;
  for (int index = 0; index < 2 && result == -ENOTTY; index++)
    result = owned[index](node, handle, request, argument);
  for (int index = 0; index < 2 && result == -ENOTTY; index++)
    result = plain[index](node, request, argument);
  return result;
}

int fakevideo_ioctl(fakevideo *machine, int handle, unsigned long request, void *argument) {
  pthread_mutex_lock(&machine->lock);
  machine->calls[_IOC_NR(request) & 255]++;
  machine->call_count++;
  device_node *node = node_of(machine, handle);
  int result = -EBADF;
  if (node != NULL) {
    result = node->options.abort_call != 0 && machine->call_count == node->options.abort_call
      ? -EIO
      : make_request(machine, node, handle, (unsigned int)request, argument);
  }
  pthread_mutex_unlock(&machine->lock);
  return result;
}

/// The events that are there now.
static int ready(device_node *node) {
  generate(node);
  if (node->done_count > 0) return POLLIN | POLLRDNORM;
  if (node->is_gone) return POLLERR | POLLHUP;
  return node->is_streaming ? 0 : POLLERR;
}

int fakevideo_poll(fakevideo *machine, int handle, short events, int milliseconds) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_of(machine, handle);
  int result = node == NULL ? -EBADF : ready(node);
  int64_t deadline = milliseconds < 0 ? INT64_MAX
                                      : machine_now(machine) + (int64_t)milliseconds * 1000000;
  while (result == 0 && machine_now(machine) < deadline) {
    int64_t due = next_due(node);
    if (due > deadline) due = deadline;
    if (machine->own_clock) {
      machine->now = due;
    } else {
      pthread_mutex_unlock(&machine->lock);
      struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
      pthread_mutex_lock(&machine->lock);
    }
    result = ready(node);
  }
  pthread_mutex_unlock(&machine->lock);
  return result < 0 ? result : result & (events | POLLERR | POLLHUP);
}

/// Whether a part of the buffers' memory is one whole buffer, or its beginning.
static bool is_buffer(const device_node *node, size_t length, int64_t offset) {
  return node->buffer_count > 0 && offset >= 0 && offset % node->buffer_length == 0
    && offset / node->buffer_length < node->buffer_count && length <= node->buffer_length;
}

void *fakevideo_map(fakevideo *machine, int handle, size_t length, int64_t offset, int *error) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_of(machine, handle);
  void *memory = NULL;
  *error = -EINVAL;
  if (node != NULL && is_buffer(node, length, offset)) {
    memory = node->buffers[offset / node->buffer_length].memory;
    *error = 0;
  }
  pthread_mutex_unlock(&machine->lock);
  return memory;
}

// The memory is the machine's until the buffers are released.
int fakevideo_unmap(fakevideo *machine, void *start, size_t length) {
  (void)machine;
  (void)length;
  return start == NULL ? -EINVAL : 0;
}

int64_t fakevideo_now(fakevideo *machine) {
  if (!machine->own_clock) return machine_now(machine);
  pthread_mutex_lock(&machine->lock);
  int64_t now = machine->now;
  pthread_mutex_unlock(&machine->lock);
  return now;
}

void fakevideo_advance(fakevideo *machine, int64_t nanoseconds) {
  pthread_mutex_lock(&machine->lock);
  if (nanoseconds > 0) machine->now += nanoseconds;
  pthread_mutex_unlock(&machine->lock);
}

int64_t fakevideo_call_count(fakevideo *machine, unsigned long request) {
  pthread_mutex_lock(&machine->lock);
  int64_t count = machine->calls[_IOC_NR(request) & 255];
  pthread_mutex_unlock(&machine->lock);
  return count;
}

int64_t fakevideo_control(fakevideo *machine, int node, uint32_t id, int64_t missing) {
  pthread_mutex_lock(&machine->lock);
  int64_t value = node >= 0 && node < machine->node_count
    ? control_value(&machine->nodes[node], id, missing)
    : missing;
  pthread_mutex_unlock(&machine->lock);
  return value;
}

void fakevideo_set_truth(
  fakevideo *machine, int node, void (*note)(void *context, const fakevideo_truth *truth),
  void *context
) {
  pthread_mutex_lock(&machine->lock);
  if (node >= 0 && node < machine->node_count) {
    machine->nodes[node].note = note;
    machine->nodes[node].context = context;
  }
  pthread_mutex_unlock(&machine->lock);
}
