// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLibraryGuard.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(void (*)(void)) ending;

void lg_end_without_threads(void (*end)(void)) { atomic_store(&ending, end); }

// The sanitizers have functions of their own in the place of pthread_create.
#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)

// A limit may be reached for moments only, as the threads of others end.
enum { attempts = 10, pauseMicroseconds = 100000 };

typedef int Create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static int is_detached(const pthread_attr_t *attributes) {
  int state = PTHREAD_CREATE_JOINABLE;
  return attributes && pthread_attr_getdetachstate(attributes, &state) == 0 &&
         state == PTHREAD_CREATE_DETACHED;
}

__attribute__((visibility("default"))) int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  static _Atomic(Create *) next;
  Create *create = atomic_load(&next);
  if (!create) {
    create = (Create *)dlsym(RTLD_NEXT, "pthread_create");
    if (!create) return EAGAIN;
    atomic_store(&next, create);
  }
  int result = create(thread, attributes, body, argument);
  void (*end)(void) = atomic_load(&ending);
  if (result != EAGAIN || !end || !is_detached(attributes)) return result;
  for (int attempt = 0; attempt < attempts && result == EAGAIN; attempt++) {
    usleep(pauseMicroseconds);
    result = create(thread, attributes, body, argument);
  }
  if (result == EAGAIN) end();
  return result;
}

#endif
