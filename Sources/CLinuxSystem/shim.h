// SPDX-License-Identifier: Apache-2.0
// System calls that the module of the C library leaves out. They answer with 0 or a negative errno.
#ifndef CLINUXSYSTEM_SHIM_H
#define CLINUXSYSTEM_SHIM_H

#include <errno.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

// AT_FDCWD. This header must not include <fcntl.h>: that would define `struct stat` a second time,
// and Swift would see it in one module or the other, by the order in which they are built.
enum { CLinuxSystem_workingDirectory = -100 };

/// renameat2(2) with RENAME_NOREPLACE: renames a file unless the new name is taken.
static inline int CLinuxSystem_claim(const char *from, const char *to) {
  return syscall(SYS_renameat2, CLinuxSystem_workingDirectory, from, CLinuxSystem_workingDirectory, to, RENAME_NOREPLACE) == 0 ? 0 : -errno;
}

/// renameat2(2) with RENAME_EXCHANGE: swaps the names of two files in one step.
static inline int CLinuxSystem_exchange(const char *one, const char *other) {
  return syscall(SYS_renameat2, CLinuxSystem_workingDirectory, one, CLinuxSystem_workingDirectory, other, RENAME_EXCHANGE) == 0 ? 0 : -errno;
}

/// fallocate(2), which the module of the C library leaves out: reserves room for a file, also behind
/// its end, which stays where it is.
static inline int CLinuxSystem_reserve(int descriptor, int64_t start, int64_t count) {
  return syscall(SYS_fallocate, descriptor, FALLOC_FL_KEEP_SIZE, start, count) == 0 ? 0 : -errno;
}

/// fstatfs(2), likewise: whether a file lies in memory.
static inline int CLinuxSystem_isInMemory(int descriptor) {
  struct statfs system;
  return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/// mallopt(3), which the module of the C library leaves out: freed buffers of up to 32 MiB are kept
/// for the next request, up to 256 MiB in all.
static inline void CLinuxSystem_keepLargeBuffers(void) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

#endif
