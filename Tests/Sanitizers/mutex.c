// SPDX-License-Identifier: Apache-2.0
// Preloaded under the thread sanitizer, so that it sees every lock of Swift's Mutex.
//
// The quick way through a Mutex is compiled into whoever uses it, and is seen. Where two threads
// meet at it, the rest happens in libswiftSynchronization, which is not built for the sanitizer:
// it would then take properly locked data for a race. These stand in front of those two calls,
// say what happens, and pass the call on. Nothing is suppressed.
#define _GNU_SOURCE  // RTLD_NEXT
#include <dlfcn.h>
#include <stdint.h>

// Of the sanitizer in the program; null in a program without.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

// Synchronization._MutexHandle._lockSlow(UInt32) and ._unlockSlow(). The lock's word, which the
// quick way exchanges, is all there is in a handle.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SELF __attribute__((swift_context)) void *self
typedef __attribute__((swiftcall)) void lock_function(uint32_t thread, SELF);
typedef __attribute__((swiftcall)) void unlock_function(SELF);

lock_function lock_slowly __asm__(LOCK);
unlock_function unlock_slowly __asm__(UNLOCK);

static lock_function *next_lock;
static unlock_function *next_unlock;

__attribute__((constructor)) static void find_next(void) {
  next_lock = (lock_function *)dlsym(RTLD_NEXT, LOCK);
  next_unlock = (unlock_function *)dlsym(RTLD_NEXT, UNLOCK);
}

__attribute__((swiftcall)) void lock_slowly(uint32_t thread, SELF) {
  next_lock(thread, self);
  if (__tsan_acquire) __tsan_acquire(self);
}

__attribute__((swiftcall)) void unlock_slowly(SELF) {
  if (__tsan_release) __tsan_release(self);
  next_unlock(self);
}
