// SPDX-License-Identifier: Apache-2.0
// What the parts of the preloaded library share.
#ifndef PRELOAD_H
#define PRELOAD_H

#include "../model.h"

#include <dlfcn.h>
#include <errno.h>

/// Makes a function stand in front of libc's.
#define FRONT __attribute__((visibility("default")))

/// Looks the function up that ours stands in front of, once.
#define BEHIND(name) \
  ({ \
    static __typeof__(&name) function; \
    if (function == NULL) function = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    function; \
  })

/// The machine that FAKEVIDEO describes, made when first needed.
fakevideo *the_machine(void);
/// The node behind a path, or -1 where none of ours is.
int node_of_path(const char *path);
/// The machine's handle behind a descriptor, or -1.
int handle_of(int descriptor);

/// The calls; each answers as libc's does.
int fake_open(const char *path, int node, int flags);
/// A second descriptor for the same handle; the last one that closes closes it.
void fake_duplicate(int descriptor, int handle);
void fake_close(int descriptor, int handle);
int fake_ioctl(int descriptor, int handle, unsigned long request, void *argument);
void *fake_mmap(
  void *place, size_t length, int protection, int flags, int handle, int64_t offset);
/// Has the descriptor wake its readers when the next frame is due.
void set_alarm(int descriptor, int handle);

/// The kernel, whatever stands in front of libc.
long kernel(
  long number, long first, long second, long third, long fourth, long fifth, long sixth);

/// Turns a negative errno into -1 and errno.
static inline int answer(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

#endif
