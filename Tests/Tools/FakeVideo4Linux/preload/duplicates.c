// SPDX-License-Identifier: Apache-2.0
// Descriptors duplicated by dup(2) and related calls, as in GStreamer's buffer pool.
#define _GNU_SOURCE
#include "preload.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

static int note_copy(int copy, int handle) {
  if (handle >= 0) fake_duplicate(copy, handle);
  return copy;
}

FRONT int dup(int descriptor) {
  return note_copy(BEHIND(dup)(descriptor), handle_of(descriptor));
}

/// Closes the descriptor that a duplicate replaces.
static void replace(int descriptor, int copy) {
  int replaced = handle_of(copy);
  if (replaced >= 0 && descriptor != copy) fake_close(copy, replaced);
}

FRONT int dup2(int descriptor, int copy) {
  replace(descriptor, copy);
  int result = BEHIND(dup2)(descriptor, copy);
  return descriptor == copy ? result : note_copy(result, handle_of(descriptor));
}

FRONT int dup3(int descriptor, int copy, int flags) {
  replace(descriptor, copy);
  return note_copy(BEHIND(dup3)(descriptor, copy, flags), handle_of(descriptor));
}

static bool is_copy(int command) { return command == F_DUPFD || command == F_DUPFD_CLOEXEC; }

FRONT int fcntl(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  int result = BEHIND(fcntl)(descriptor, command, argument);
  return is_copy(command) ? note_copy(result, handle_of(descriptor)) : result;
}

FRONT int fcntl64(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  int result = BEHIND(fcntl64)(descriptor, command, argument);
  return is_copy(command) ? note_copy(result, handle_of(descriptor)) : result;
}
