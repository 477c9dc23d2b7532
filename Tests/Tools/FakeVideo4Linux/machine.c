// SPDX-License-Identifier: Apache-2.0
// The machine: its devices, its clock, and the calls that reach them.
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
  if (!(kind->capabilities & V4L2_CAP_VIDEO_CAPTURE_MPLANE)) node->options.data_offset = 0;
  node->buffer_owner = node->holder = -1;
  set_default_input(node);
  set_default_controls(node);
  if (kind->companion == NULL) return true;
  const description *companion = find_description(kind->companion, strlen(kind->companion));
  return add_node(machine, companion, options, error, size);
}

static bool add_line(
  fakevideo *machine, const char *line, size_t length, char *error, size_t size
) {
  while (length > 0 && (*line == ' ' || *line == '\t')) line++, length--;
  size_t name = strcspn(line, " \t\n;");
  if (name > length) name = length;
  if (name == 0) return true;
  const description *kind = find_description(line, name);
  if (kind == NULL) {
    snprintf(error, size, "unknown description \"%.*s\"", (int)name, line);
    return false;
  }
  device_options options;
  if (!parse_options(line + name, length - name, &options, error, size)) return false;
  return add_node(machine, kind, &options, error, size);
}

/// The length of a line. A ';' ends a line, except before a digit, where it continues a schedule.
static size_t line_length(const char *text) {
  size_t length = 0;
  for (;;) {
    length += strcspn(text + length, "\n;");
    if (text[length] != ';' || text[length + 1] < '0' || text[length + 1] > '9') return length;
    length++;
  }
}

/// Adds one device of each kind, except companions and kinds that must be named.
static bool add_all(fakevideo *machine, char *error, size_t size) {
  const char *companion = NULL;
  for (const description *kind = fake_descriptions; kind->name != NULL; kind++) {
    bool is_there = companion != NULL && strcmp(kind->name, companion) == 0;
    companion = kind->companion;
    if (is_there || kind->by_name_only) continue;
    if (!add_line(machine, kind->name, strlen(kind->name), error, size)) return false;
  }
  return true;
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
    isGood = add_all(machine, error, errorSize);
  } else {
    while (isGood && *configuration != 0) {
      size_t length = line_length(configuration);
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
  for (int index = 0; index < machine->node_count; index++) {
    release_buffers(&machine->nodes[index]);
    free(machine->nodes[index].log);
  }
  free_blocks(machine, true);
  pthread_mutex_destroy(&machine->lock);
  free(machine);
}

int fakevideo_node_count(fakevideo *machine) { return machine->node_count; }

const char *fakevideo_node_path(fakevideo *machine, int index) {
  return index >= 0 && index < machine->node_count ? machine->nodes[index].path : NULL;
}

/// Plugs an unplugged device in again; handles opened before stay invalid.
static void plug_in(device_node *node) {
  double gone = (double)(machine_now(node->machine) - node->gone_since) * 1e-9;
  if (!node->is_gone || node->options.replug <= 0 || gone < node->options.replug) return;
  fakevideo *machine = node->machine;
  for (int handle = 0; handle < MAX_HANDLES; handle++)
    if (&machine->nodes[machine->handles[handle].node] == node)
      machine->handles[handle].is_stale = true;
  node->is_streaming = false;
  release_buffers(node);
  node->holder = -1;
  node->options.unplug = 0;
  node->options.schedule_count = 0;
  node->is_gone = false;
}

/// The errno while a suspended device does not wake and is then reset; 0 afterwards.
static int sleep_error(device_node *node) {
  if (node->options.asleep <= 0) return 0;
  int64_t now = machine_now(node->machine);
  if (node->reset_since == 0) {
    node->reset_since = now;
    return -EBUSY;
  }
  return (double)(now - node->reset_since) * 1e-9 < node->options.asleep ? -ENOENT : 0;
}

static int free_handle(const fakevideo *machine) {
  for (int handle = 0; handle < MAX_HANDLES; handle++)
    if (!machine->handles[handle].is_open) return handle;
  return -EMFILE;
}

static int open_node(fakevideo *machine, int index) {
  device_node *node = &machine->nodes[index];
  plug_in(node);
  if (node->is_gone) return -ENODEV;
  int error = sleep_error(node);
  if (error != 0) return error;
  int handle = free_handle(machine);
  if (handle < 0) return handle;
  memset(&machine->handles[handle], 0, sizeof machine->handles[handle]);
  machine->handles[handle].is_open = true;
  machine->handles[handle].node = index;
  machine->handles[handle].priority = V4L2_PRIORITY_DEFAULT;
  node->was_opened = true;
  return handle;
}

int fakevideo_open(fakevideo *machine, const char *path, int flags) {
  (void)flags;
  pthread_mutex_lock(&machine->lock);
  int result = -ENOENT;
  for (int index = 0; index < machine->node_count; index++)
    if (strcmp(machine->nodes[index].path, path) == 0) result = open_node(machine, index);
  pthread_mutex_unlock(&machine->lock);
  return result;
}

/// The node of a handle; NULL for an invalid one.
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
  if (node != NULL && node->holder == handle) node->holder = -1;
  if (node != NULL) machine->handles[handle].is_open = false;
  pthread_mutex_unlock(&machine->lock);
  return node == NULL ? -EBADF : 0;
}

int fakevideo_ioctl(fakevideo *machine, int handle, unsigned long request, void *argument) {
  pthread_mutex_lock(&machine->lock);
  machine->calls[_IOC_NR(request) & 255]++;
  machine->call_count++;
  device_node *node = node_of(machine, handle);
  bool is_frame = request == VIDIOC_QBUF || request == VIDIOC_DQBUF;
  int result = node == NULL ? -EBADF : 0;
  // The requests made for each frame need no argument preparation.
  if (result == 0 && !(is_frame && argument != NULL))
    result = take_argument((unsigned int)request, argument);
  if (result == 0) {
    result = node->options.abort_call != 0 && machine->call_count == node->options.abort_call
      ? -EIO
      : make_request(machine, node, handle, (unsigned int)request, argument);
  }
  pthread_mutex_unlock(&machine->lock);
  return result;
}

/// The pending poll events among the requested ones.
static int ready(device_node *node, int handle, short events) {
  fakevideo *machine = node->machine;
  if (machine->handles[handle].is_stale) return POLLPRI | POLLERR | POLLHUP;
  generate(node);
  int found = machine->handles[handle].events.event_count > 0 ? POLLPRI : 0;
  if (node->done_count > 0) found |= POLLIN | POLLRDNORM;
  else if (node->is_gone) found |= POLLPRI | POLLERR | POLLHUP;
  // A caller that waits only for events is not affected by the state of the stream.
  else if ((!node->is_streaming || node->is_broken) && events & (POLLIN | POLLRDNORM))
    found |= POLLERR;
  return found & (events | POLLERR | POLLHUP);
}

/// Advances the time to the next possible event, at most to the deadline.
static void wait_on(device_node *node, int64_t deadline) {
  fakevideo *machine = node->machine;
  bool is_running = node->is_streaming && !node->is_broken && !node->is_gone;
  int64_t due = is_running ? next_due(node) : INT64_MAX;
  if (due > deadline) due = deadline;
  if (machine->own_clock && due != INT64_MAX) {
    machine->now = due;
    return;
  }
  // The wait is short, because another thread may cause an event or stop the stream.
  int64_t soon = machine_now(machine) + 10000000;
  if (due > soon) due = soon;
  struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
  struct timespec moment = {.tv_nsec = 100000};
  pthread_mutex_unlock(&machine->lock);
  if (machine->own_clock) nanosleep(&moment, NULL);
  else clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  pthread_mutex_lock(&machine->lock);
}

int fakevideo_poll(fakevideo *machine, int handle, short events, int milliseconds) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_of(machine, handle);
  int result = node == NULL ? -EBADF : ready(node, handle, events);
  int64_t deadline =
    milliseconds < 0 ? INT64_MAX : machine_now(machine) + (int64_t)milliseconds * 1000000;
  while (result == 0 && machine_now(machine) < deadline) {
    wait_on(node, deadline);
    node = node_of(machine, handle);
    result = node == NULL ? -EBADF : ready(node, handle, events);
  }
  pthread_mutex_unlock(&machine->lock);
  return result;
}

/// Whether a range of the buffer memory is a plane of one buffer, or its beginning.
static bool is_buffer(const device_node *node, size_t length, int64_t offset) {
  if (node->buffer_count == 0 || offset < 0) return false;
  int64_t index = offset / node->buffer_length, place = offset % node->buffer_length;
  if (index >= node->buffer_count) return false;
  // A plane begins at the start of the buffer or after the first plane.
  if (place == 0) return length <= node->plane_length[0];
  return plane_count(node) > 1 && place == node->plane_length[0]
    && length <= node->plane_length[1];
}

void *fakevideo_map(fakevideo *machine, int handle, size_t length, int64_t offset, int *error) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_of(machine, handle);
  void *memory = NULL;
  *error = -EINVAL;
  if (node != NULL && is_buffer(node, length, offset)) {
    memory = node->memory->start + offset;
    node->memory->maps++;
    *error = 0;
  }
  pthread_mutex_unlock(&machine->lock);
  return memory;
}

int fakevideo_unmap(fakevideo *machine, void *start, size_t length) {
  (void)length;
  pthread_mutex_lock(&machine->lock);
  int result = -EINVAL;
  const uint8_t *place = start;
  for (memory_block *block = machine->memory; block != NULL && result < 0; block = block->next) {
    if (place < block->start || place >= block->start + block->length || block->maps == 0) continue;
    block->maps--;
    result = 0;
  }
  free_blocks(machine, false);
  pthread_mutex_unlock(&machine->lock);
  return result;
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
