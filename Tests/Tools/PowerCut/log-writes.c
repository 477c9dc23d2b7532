// SPDX-License-Identifier: Apache-2.0
// A preloaded library that logs all operations on one file in order: writes with their bytes,
// syncs, truncations. Tests/Tools/PowerCut/power-cut.py derives from the log what a disk would
// contain after a power failure.
//
// LOGGED_FILE is the path of the file and WRITE_LOG the path of the log. FRAME_COUNTER is a file
// whose first eight bytes are logged with each entry. An entry has six 64-bit numbers (kind,
// offset, count, frames, nanoseconds, number of following bytes), then the bytes. A sync has two
// entries, for its start and its end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WRITE = 1, SYNC_BEGINS, SYNC_DONE, CUT };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_descriptor = -1;
static volatile int64_t *counter;
static dev_t device;
static ino_t inode;
static int is_known;

static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*next_write)(int, const void *, size_t);
static int (*next_fdatasync)(int);
static int (*next_ftruncate)(int, off_t);

__attribute__((constructor)) static void begin(void) {
  next_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  next_write = dlsym(RTLD_NEXT, "write");
  next_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  next_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  const char *log = getenv("WRITE_LOG");
  if (log) log_descriptor = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const char *path = getenv("FRAME_COUNTER");
  int descriptor = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
  if (descriptor >= 0 && ftruncate(descriptor, 8) == 0) {
    void *memory = mmap(NULL, 8, PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory != MAP_FAILED) counter = memory;
  }
}

static void note(int64_t kind, int64_t place, int64_t count, const void *bytes, int64_t stored) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t entry[6] = {
      kind, place, count, counter ? *counter : 0, now.tv_sec * 1000000000LL + now.tv_nsec, stored};
  if (next_write(log_descriptor, entry, sizeof entry) < 0) abort();
  const char *rest = bytes;
  while (stored > 0) {
    ssize_t done = next_write(log_descriptor, rest, stored);
    if (done <= 0) abort();
    rest += done;
    stored -= done;
  }
}

// Logs the file's contents when it receives its name, since it was written under another name.
static void note_contents(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  char bytes[4096];
  off_t place = 0;
  ssize_t count;
  while ((count = pread(descriptor, bytes, sizeof bytes, place)) > 0) {
    note(WRITE, place, count, bytes, count);
    place += count;
  }
  close(descriptor);
  note(SYNC_BEGINS, 0, 0, NULL, 0);
  note(SYNC_DONE, 0, 0, NULL, 0);
}

static int is_logged(int descriptor) {
  if (log_descriptor < 0 || descriptor == log_descriptor) return 0;
  struct stat status;
  pthread_mutex_lock(&lock);
  if (!is_known) {
    const char *path = getenv("LOGGED_FILE");
    if (path && stat(path, &status) == 0) {
      device = status.st_dev;
      inode = status.st_ino;
      note_contents(path);
      is_known = 1;
    }
  }
  int known = is_known;
  pthread_mutex_unlock(&lock);
  return known && fstat(descriptor, &status) == 0 && status.st_dev == device &&
         status.st_ino == inode;
}

static ssize_t logged_pwrite(int descriptor, const void *bytes, size_t count, off_t place) {
  if (!is_logged(descriptor)) return next_pwrite(descriptor, bytes, count, place);
  pthread_mutex_lock(&lock);
  ssize_t done = next_pwrite(descriptor, bytes, count, place);
  int reason = errno;
  if (done > 0) note(WRITE, place, done, bytes, done);
  pthread_mutex_unlock(&lock);
  errno = reason;
  return done;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t place) {
  return logged_pwrite(descriptor, bytes, count, place);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t place) {
  return logged_pwrite(descriptor, bytes, count, place);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  if (!is_logged(descriptor)) return next_write(descriptor, bytes, count);
  pthread_mutex_lock(&lock);
  off_t place = lseek(descriptor, 0, SEEK_CUR);
  ssize_t done = next_write(descriptor, bytes, count);
  int reason = errno;
  if (done > 0) note(WRITE, place, done, bytes, done);
  pthread_mutex_unlock(&lock);
  errno = reason;
  return done;
}

int fdatasync(int descriptor) {
  if (!is_logged(descriptor)) return next_fdatasync(descriptor);
  pthread_mutex_lock(&lock);
  note(SYNC_BEGINS, 0, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  int result = next_fdatasync(descriptor);
  int reason = errno;
  pthread_mutex_lock(&lock);
  if (result == 0) note(SYNC_DONE, 0, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = reason;
  return result;
}

static int logged_ftruncate(int descriptor, off_t count) {
  if (!is_logged(descriptor)) return next_ftruncate(descriptor, count);
  pthread_mutex_lock(&lock);
  int result = next_ftruncate(descriptor, count);
  int reason = errno;
  if (result == 0) note(CUT, count, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = reason;
  return result;
}

int ftruncate(int descriptor, off_t count) { return logged_ftruncate(descriptor, count); }

int ftruncate64(int descriptor, off64_t count) { return logged_ftruncate(descriptor, count); }
