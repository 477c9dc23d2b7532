// SPDX-License-Identifier: Apache-2.0
// Replacements of libc's device calls. Calls on other files are passed on to libc unchanged.
#define _GNU_SOURCE
#include "preload.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/// The mode argument of open(2), present only with flags that can create a file.
#define MODE(flags) \
  ({ \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
      va_list list; \
      va_start(list, flags); \
      mode = va_arg(list, mode_t); \
      va_end(list); \
    } \
    mode; \
  })

FRONT int open(const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  int node = node_of_path(path);
  return node < 0 ? BEHIND(open)(path, flags, mode) : fake_open(path, node, flags);
}

FRONT int open64(const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  int node = node_of_path(path);
  return node < 0 ? BEHIND(open64)(path, flags, mode) : fake_open(path, node, flags);
}

FRONT int openat(int directory, const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  int node = node_of_path(path);
  return node < 0 ? BEHIND(openat)(directory, path, flags, mode) : fake_open(path, node, flags);
}

FRONT int openat64(int directory, const char *path, int flags, ...) {
  mode_t mode = MODE(flags);
  int node = node_of_path(path);
  return node < 0 ? BEHIND(openat64)(directory, path, flags, mode) : fake_open(path, node, flags);
}

// The _FORTIFY_SOURCE variants of open(2) without a mode.
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

FRONT int __open_2(const char *path, int flags) {
  int node = node_of_path(path);
  return node < 0 ? BEHIND(__open_2)(path, flags) : fake_open(path, node, flags);
}

FRONT int __open64_2(const char *path, int flags) {
  int node = node_of_path(path);
  return node < 0 ? BEHIND(__open64_2)(path, flags) : fake_open(path, node, flags);
}

FRONT int close(int descriptor) {
  int handle = handle_of(descriptor);
  if (handle >= 0) fake_close(descriptor, handle);
  return BEHIND(close)(descriptor);
}

FRONT int ioctl(int descriptor, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void *argument = va_arg(list, void *);
  va_end(list);
  int handle = handle_of(descriptor);
  return handle < 0 ? BEHIND(ioctl)(descriptor, request, argument)
                    : fake_ioctl(descriptor, handle, request, argument);
}

FRONT void *mmap(void *place, size_t length, int protection, int flags, int file, off_t offset) {
  int handle = flags & MAP_ANONYMOUS ? -1 : handle_of(file);
  return handle < 0 ? BEHIND(mmap)(place, length, protection, flags, file, offset)
                    : fake_mmap(place, length, protection, flags, handle, offset);
}

FRONT void *mmap64(
  void *place, size_t length, int protection, int flags, int file, off64_t offset
) {
  int handle = flags & MAP_ANONYMOUS ? -1 : handle_of(file);
  return handle < 0 ? BEHIND(mmap64)(place, length, protection, flags, file, offset)
                    : fake_mmap(place, length, protection, flags, handle, offset);
}

/// Replaces syscall(2), because libv4l2 makes its calls by number.
FRONT long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int index = 0; index < 6; index++) a[index] = va_arg(list, long);
  va_end(list);
  int handle = -1;
  switch (number) {
  case SYS_openat:
    if (node_of_path((const char *)a[1]) < 0) break;
    return fake_open((const char *)a[1], 0, (int)a[2]);
#ifdef SYS_open
  case SYS_open:
    if (node_of_path((const char *)a[0]) < 0) break;
    return fake_open((const char *)a[0], 0, (int)a[1]);
#endif
  case SYS_close:
    if ((handle = handle_of((int)a[0])) >= 0) fake_close((int)a[0], handle);
    break;
  case SYS_ioctl:
    if ((handle = handle_of((int)a[0])) < 0) break;
    return fake_ioctl((int)a[0], handle, (unsigned long)a[1], (void *)a[2]);
  case SYS_mmap:
    if (a[3] & MAP_ANONYMOUS || (handle = handle_of((int)a[4])) < 0) break;
    return (long)fake_mmap((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], handle, a[5]);
  default: break;
  }
  return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/// Polls the simulated descriptors in a list. The timer behind a descriptor covers only frames, not
/// errors and events, and it may fire for a lost frame.
static int look(struct pollfd *entries, nfds_t count) {
  int found = 0;
  for (nfds_t index = 0; index < count; index++) {
    int handle = handle_of(entries[index].fd);
    if (handle < 0) {
      if (entries[index].revents != 0) found++;
      continue;
    }
    entries[index].revents =
      (short)fakevideo_poll(the_machine(), handle, entries[index].events, 0);
    if (entries[index].revents != 0) found++;
    else set_alarm(entries[index].fd, handle);
  }
  return found;
}

static nfds_t count_ours(const struct pollfd *entries, nfds_t count) {
  nfds_t found = 0;
  for (nfds_t index = 0; index < count; index++) found += handle_of(entries[index].fd) >= 0;
  return found;
}

static bool has_ours(const struct pollfd *entries, nfds_t count) {
  return count_ours(entries, count) > 0;
}

static int64_t monotonic(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/// ppoll(2) for a list with simulated descriptors; `limit` in nanoseconds, negative for no limit.
static int poll_ours(
  struct pollfd *entries, nfds_t count, int64_t limit, const sigset_t *signals
) {
  int64_t end = limit < 0 ? INT64_MAX : monotonic() + limit;
  struct timespec none = {0, 0};
  // The first poll finds pending events of other descriptors without waiting. Without others, it
  // is left out, because a real device needs only one call for a frame.
  int result =
    count_ours(entries, count) < count ? BEHIND(ppoll)(entries, count, &none, NULL) : 0;
  for (;;) {
    if (result < 0) return result;
    result = look(entries, count);
    int64_t left = end == INT64_MAX ? INT64_MAX : end - monotonic();
    if (result > 0 || left <= 0) return result;
    struct timespec wait = {left / 1000000000, left % 1000000000};
    result = BEHIND(ppoll)(entries, count, limit < 0 ? NULL : &wait, signals);
  }
}

FRONT int poll(struct pollfd *entries, nfds_t count, int milliseconds) {
  if (!has_ours(entries, count)) return BEHIND(poll)(entries, count, milliseconds);
  int64_t limit = milliseconds < 0 ? -1 : (int64_t)milliseconds * 1000000;
  return poll_ours(entries, count, limit, NULL);
}

FRONT int ppoll(
  struct pollfd *entries, nfds_t count, const struct timespec *limit, const sigset_t *signals
) {
  if (!has_ours(entries, count)) return BEHIND(ppoll)(entries, count, limit, signals);
  int64_t nanoseconds = limit == NULL ? -1 : (int64_t)limit->tv_sec * 1000000000 + limit->tv_nsec;
  return poll_ours(entries, count, nanoseconds, signals);
}

// MARK: - select(2)

/// The poll events that correspond to the three sets of select(2).
static const short kinds[3] = {
  POLLIN | POLLRDNORM | POLLHUP | POLLERR, POLLOUT | POLLWRNORM | POLLERR, POLLPRI};

static int read_sets(int count, fd_set *const sets[3], struct pollfd *entries) {
  int length = 0;
  for (int descriptor = 0; descriptor < count; descriptor++) {
    short events = 0;
    for (int kind = 0; kind < 3; kind++)
      if (sets[kind] != NULL && FD_ISSET(descriptor, sets[kind]))
        events |= (short)(kinds[kind] & ~(POLLERR | POLLHUP));
    if (events != 0) entries[length++] = (struct pollfd){.fd = descriptor, .events = events};
  }
  return length;
}

static int write_sets(fd_set *const sets[3], const struct pollfd *entries, int length) {
  int found = 0;
  for (int index = 0; index < length; index++) {
    for (int kind = 0; kind < 3; kind++) {
      int descriptor = entries[index].fd;
      if (sets[kind] == NULL || !FD_ISSET(descriptor, sets[kind])) continue;
      if (entries[index].revents & kinds[kind]) found++;
      else FD_CLR(descriptor, sets[kind]);
    }
  }
  return found;
}

/// select(2) by polling, because the timers do not cover the events of the third set.
FRONT int select(
  int count, fd_set *restrict readable, fd_set *restrict writable, fd_set *restrict special,
  struct timeval *restrict limit
) {
  fd_set *const sets[3] = {readable, writable, special};
  struct pollfd entries[FD_SETSIZE];
  int length = count <= FD_SETSIZE ? read_sets(count, sets, entries) : 0;
  if (!has_ours(entries, (nfds_t)length))
    return BEHIND(select)(count, readable, writable, special, limit);
  int64_t nanoseconds =
    limit == NULL ? -1 : (int64_t)limit->tv_sec * 1000000000 + limit->tv_usec * 1000;
  int result = poll_ours(entries, (nfds_t)length, nanoseconds, NULL);
  return result < 0 ? result : write_sets(sets, entries, length);
}
