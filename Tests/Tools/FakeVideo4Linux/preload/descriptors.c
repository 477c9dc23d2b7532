// SPDX-License-Identifier: Apache-2.0
// The machine inside the program's process. Each open node is a timer descriptor that becomes
// readable when a frame is due, so poll(2), select(2) and epoll(7) work on it.
#define _GNU_SOURCE
#include "preload.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536 };

// The handle of each descriptor, plus one; the number of descriptors of each handle, and the time
// that their timer is set to.
static _Atomic int handles[DESCRIPTORS];
static _Atomic int references[MAX_HANDLES];
static _Atomic int64_t alarms[MAX_HANDLES];

static fakevideo *machine;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_machine(void) {
  char error[256] = "";
  machine = fakevideo_create(getenv("FAKEVIDEO"), false, error, sizeof error);
  if (machine == NULL) {
    fprintf(stderr, "FAKEVIDEO: %s\n", error);
    _exit(127);
  }
  machine->shares_memory = true;
}

fakevideo *the_machine(void) {
  pthread_once(&made, make_machine);
  return machine;
}

int node_of_path(const char *path) {
  static const char prefix[] = "/dev/fakevideo";
  if (path == NULL || strncmp(path, prefix, sizeof prefix - 1) != 0) return -1;
  for (int node = 0; node < fakevideo_node_count(the_machine()); node++)
    if (strcmp(path, fakevideo_node_path(the_machine(), node)) == 0) return node;
  return -1;
}

int handle_of(int descriptor) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS) return -1;
  return atomic_load_explicit(&handles[descriptor], memory_order_acquire) - 1;
}

long kernel(
  long number, long first, long second, long third, long fourth, long fifth, long sixth
) {
  return BEHIND(syscall)(number, first, second, third, fourth, fifth, sixth);
}

/// Writes the totals and the control values to the file in FAKEVIDEO_TRUTH. This happens at each
/// close as well, because a program may exit without running destructors.
static void write_truth(void) {
  const char *path = getenv("FAKEVIDEO_TRUTH");
  if (path == NULL || machine == NULL) return;
  char text[32768];
  size_t length = 0;
  for (int node = 0; node < fakevideo_node_count(machine); node++) {
    int more = print_counts(machine, node, text + length, sizeof text - length);
    if (more < 0 || (size_t)more >= sizeof text - length) break;
    length += (size_t)more;
  }
  if (length == 0) return;
  long file = kernel(
    SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644, 0, 0);
  if (file < 0) return;
  if (kernel(SYS_write, file, (long)text, (long)length, 0, 0, 0) < 0) perror("FAKEVIDEO_TRUTH");
  kernel(SYS_close, file, 0, 0, 0, 0, 0);
}

__attribute__((destructor)) static void end(void) { write_truth(); }

void set_alarm(int descriptor, int handle) {
  int64_t time = wake_time(machine, handle);
  if (atomic_exchange(&alarms[handle], time) == time) return;
  // A past time makes the timer readable at once; a time of 0 would disarm it.
  struct itimerspec value = {.it_value = {.tv_nsec = 1}};
  if (time != 0) value.it_value = (struct timespec){time / 1000000000, time % 1000000000};
  if (time == INT64_MAX) value.it_value = (struct timespec){0, 0};
  timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &value, NULL);
}

int fake_open(const char *path, int node, int flags) {
  (void)node;
  int handle = fakevideo_open(the_machine(), path, flags);
  if (handle < 0) return answer(handle);
  int timer = timerfd_create(
    CLOCK_MONOTONIC,
    (flags & O_CLOEXEC ? TFD_CLOEXEC : 0) | (flags & O_NONBLOCK ? TFD_NONBLOCK : 0));
  if (timer < 0 || timer >= DESCRIPTORS) {
    fakevideo_close(machine, handle);
    if (timer < 0) return -1;
    kernel(SYS_close, timer, 0, 0, 0, 0, 0);
    return answer(-EMFILE);
  }
  atomic_store(&alarms[handle], -1);
  atomic_store(&references[handle], 1);
  atomic_store_explicit(&handles[timer], handle + 1, memory_order_release);
  set_alarm(timer, handle);
  return timer;
}

void fake_duplicate(int descriptor, int handle) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS) return;
  atomic_fetch_add(&references[handle], 1);
  atomic_store_explicit(&handles[descriptor], handle + 1, memory_order_release);
}

void fake_close(int descriptor, int handle) {
  atomic_store(&handles[descriptor], 0);
  if (atomic_fetch_sub(&references[handle], 1) > 1) return;
  fakevideo_close(machine, handle);
  write_truth();
}

/// VIDIOC_DQBUF for a node opened in blocking mode.
static int wait_for_buffer(int descriptor, int handle, void *argument) {
  int result = -EAGAIN;
  while (result == -EAGAIN && !(fcntl(descriptor, F_GETFL) & O_NONBLOCK)) {
    // The wait is limited, because another thread may queue the buffer that the next frame needs.
    fakevideo_poll(machine, handle, 1, 20);
    result = fakevideo_ioctl(machine, handle, VIDIOC_DQBUF, argument);
  }
  return result;
}

int fake_ioctl(int descriptor, int handle, unsigned long request, void *argument) {
  request = (unsigned int)request;  // Some programs pass the request as a negative int.
  int result = fakevideo_ioctl(machine, handle, request, argument);
  if (result == -EAGAIN && request == VIDIOC_DQBUF)
    result = wait_for_buffer(descriptor, handle, argument);
  set_alarm(descriptor, handle);
  return answer(result);
}

void *fake_mmap(
  void *place, size_t length, int protection, int flags, int handle, int64_t offset
) {
  int file = memory_file(machine, handle, length, offset);
  if (file < 0) {
    errno = -file;
    return (void *)-1;
  }
  return (void *)kernel(
    SYS_mmap, (long)place, (long)length, protection, flags, file, (long)offset);
}
