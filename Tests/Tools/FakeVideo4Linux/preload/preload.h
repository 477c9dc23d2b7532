// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the parts of the preloaded library.
#ifndef PRELOAD_H
#define PRELOAD_H

#include "../model.h"

#include <dlfcn.h>
#include <errno.h>

/// Exports a function as a replacement of libc's.
#define FRONT __attribute__((visibility("default")))

/// The next definition of a replaced function (libc's), looked up once.
#define BEHIND(name) \
  ({ \
    static __typeof__(&name) function; \
    if (function == NULL) function = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    function; \
  })

/// The machine described by FAKEVIDEO, made on first use.
fakevideo *the_machine(void);
/// The node of a path; -1 for other paths.
int node_of_path(const char *path);
/// The machine's handle of a descriptor; -1 for other descriptors.
int handle_of(int descriptor);

/// The device calls; each returns like libc's call.
int fake_open(const char *path, int node, int flags);
/// Adds a second descriptor to a handle. Closing the last descriptor closes the handle.
void fake_duplicate(int descriptor, int handle);
void fake_close(int descriptor, int handle);
int fake_ioctl(int descriptor, int handle, unsigned long request, void *argument);
void *fake_mmap(
  void *place, size_t length, int protection, int flags, int handle, int64_t offset);
/// Sets the timer so that the descriptor becomes readable when the next frame is due.
void set_alarm(int descriptor, int handle);

/// A system call that bypasses all replacements.
long kernel(
  long number, long first, long second, long third, long fourth, long fifth, long sixth);

/// Converts a negative errno into -1 with errno set.
static inline int answer(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

#endif
