// SPDX-License-Identifier: Apache-2.0
// Preloaded under the thread sanitizer. It reports every lock of Swift's Mutex and every result of
// a continuation to the sanitizer. Nothing is suppressed.
//
// The fast path of Mutex is inlined into its users and is visible to the sanitizer. The slow path,
// for contention, is in libswiftSynchronization, which is not built with the sanitizer. The
// sanitizer would report a race for correctly locked data. The functions below replace the slow
// path: they report the operation and forward the call.
//
// The Swift runtime reports a resumed continuation to the sanitizer, except where the continuation
// was resumed before its task began to wait.
#define _GNU_SOURCE  // RTLD_NEXT
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

// Functions of the sanitizer in the program; null without a sanitizer.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

// Synchronization._MutexHandle._lockSlow(UInt32), ._tryLockSlow() and ._unlockSlow(). A handle
// consists only of the lock word, which the fast path exchanges.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SELF __attribute__((swift_context)) void *self
typedef __attribute__((swiftcall)) void lock_function(uint32_t thread, SELF);
typedef __attribute__((swiftcall)) bool try_lock_function(SELF);
typedef __attribute__((swiftcall)) void unlock_function(SELF);

lock_function lock_slowly __asm__(LOCK);
try_lock_function try_lock_slowly __asm__(TRY_LOCK);
unlock_function unlock_slowly __asm__(UNLOCK);

static lock_function *next_lock;
static try_lock_function *next_try_lock;
static unlock_function *next_unlock;

__attribute__((constructor)) static void find_next(void) {
  next_lock = (lock_function *)dlsym(RTLD_NEXT, LOCK);
  next_try_lock = (try_lock_function *)dlsym(RTLD_NEXT, TRY_LOCK);
  next_unlock = (unlock_function *)dlsym(RTLD_NEXT, UNLOCK);
}

__attribute__((swiftcall)) void lock_slowly(uint32_t thread, SELF) {
  next_lock(thread, self);
  if (__tsan_acquire) __tsan_acquire(self);
}

// Called where the previous owner has just unlocked, and the kernel holds the lock word.
__attribute__((swiftcall)) bool try_lock_slowly(SELF) {
  bool has_it = next_try_lock(self);
  if (has_it && __tsan_acquire) __tsan_acquire(self);
  return has_it;
}

__attribute__((swiftcall)) void unlock_slowly(SELF) {
  if (__tsan_release) __tsan_release(self);
  next_unlock(self);
}

// The runtime releases the task to the sanitizer before it marks the continuation as resumed. If
// that happens before the task is suspended, the runtime continues at once on this thread, through
// the continuation's own resume pointer. That pointer is replaced here, to acquire the task. A
// suspended task continues through its own pointer, which the runtime reports.
// (swift_task_getCurrent returns an AsyncTask *.)
#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context)) void *context
typedef ASYNC void await_function(CONTEXT, void *continuation);
typedef ASYNC void resume_function(CONTEXT);
typedef __attribute__((swiftcall)) void dealloc_function(void *memory);
__attribute__((swiftcall)) void *swift_task_getCurrent(void) __attribute__((weak));
await_function swift_continuation_await;
dealloc_function swift_task_dealloc;

// The layout of the start of every AsyncContext, including a continuation's.
struct async_context {
  void *parent;
  resume_function *resume;
};

static await_function *next_await;
static dealloc_function *next_dealloc;
static __thread void *waiting_task;
static __thread resume_function *next_resume;

__attribute__((constructor)) static void find_await(void) {
  next_await = (await_function *)dlsym(RTLD_NEXT, "swift_continuation_await");
  next_dealloc = (dealloc_function *)dlsym(RTLD_NEXT, "swift_task_dealloc");
}

static ASYNC void resume_at_once(CONTEXT) {
  __tsan_acquire(waiting_task);
  __attribute__((musttail)) return next_resume(context);
}

ASYNC void swift_continuation_await(CONTEXT, void *continuation) {
  if (__tsan_acquire && swift_task_getCurrent) {
    struct async_context *own = continuation;
    waiting_task = swift_task_getCurrent();
    next_resume = own->resume;
    own->resume = resume_at_once;
  }
  __attribute__((musttail)) return next_await(context, continuation);
}

// If withCheckedContinuation was not inlined, the runtime waits internally and bypasses the
// function above. Its caller then frees the call's memory before anything else, so the task is
// acquired here.
__attribute__((swiftcall)) void swift_task_dealloc(void *memory) {
  next_dealloc(memory);
  if (__tsan_acquire && swift_task_getCurrent) __tsan_acquire(swift_task_getCurrent());
}
