// SPDX-License-Identifier: Apache-2.0
// Replaces the C library's allocator in the whole program. Swift's runtime, FFmpeg and libv4l2 call
// these functions, because the linker finds them first.
#include "AllocationCounter.h"

#include <errno.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#ifdef IS_SANITIZED
int64_t allocation_count(void) { return -1; }
int64_t allocation_total(void) { return -1; }
#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

// The initial-exec model keeps this counter in static TLS, so that counting allocates nothing.
static _Thread_local int64_t count __attribute__((tls_model("initial-exec")));

static _Atomic int64_t total;

int64_t allocation_count(void) { return count; }
int64_t allocation_total(void) { return total; }

static void note(void) {
  count++;
  total++;
}

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  note();
  return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
  note();
  return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  void *made = memalign(alignment, size);
  if (made == NULL) return ENOMEM;
  *memory = made;
  return 0;
}

#endif
