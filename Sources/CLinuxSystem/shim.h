// SPDX-License-Identifier: Apache-2.0
// System calls that Swift's Glibc module lacks. Each returns 0 or a negative errno.
#ifndef CLINUXSYSTEM_SHIM_H
#define CLINUXSYSTEM_SHIM_H

#include <errno.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

// AT_FDCWD. This header must not include <fcntl.h>: that would define `struct stat` a second time,
// and Swift would see it in one module or the other, by the order in which they are built.
enum { CLinuxSystem_workingDirectory = -100 };

/// renameat2(2) with RENAME_NOREPLACE: renames a file, and fails where the new name is taken.
static inline int CLinuxSystem_claim(const char *from, const char *to) {
  const int here = CLinuxSystem_workingDirectory;
  return syscall(SYS_renameat2, here, from, here, to, RENAME_NOREPLACE) == 0 ? 0 : -errno;
}

/// renameat2(2) with RENAME_EXCHANGE: swaps the names of two files atomically.
static inline int CLinuxSystem_exchange(const char *one, const char *other) {
  const int here = CLinuxSystem_workingDirectory;
  return syscall(SYS_renameat2, here, one, here, other, RENAME_EXCHANGE) == 0 ? 0 : -errno;
}

/// fallocate(2) with FALLOC_FL_KEEP_SIZE: reserves disk space, also beyond the end of the file,
/// without changing the file's size.
static inline int CLinuxSystem_reserve(int descriptor, int64_t start, int64_t count) {
  return syscall(SYS_fallocate, descriptor, FALLOC_FL_KEEP_SIZE, start, count) == 0 ? 0 : -errno;
}

/// fstatfs(2): whether a file is on a memory file system (tmpfs).
static inline int CLinuxSystem_isInMemory(int descriptor) {
  struct statfs system;
  return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/// copy_file_range(2): copies bytes between two files inside the kernel. Returns the number of
/// copied bytes, 0 at the end of the source, or a negative errno.
static inline int64_t CLinuxSystem_copyRange(
    int source, int64_t start, int target, int64_t position, int64_t count) {
  const long copied =
      syscall(SYS_copy_file_range, source, &start, target, &position, (size_t)count, 0);
  return copied >= 0 ? copied : -errno;
}

/// ioctl_ficlonerange(2): lets a file share the blocks of another file at the same offsets.
static inline int CLinuxSystem_share(int source, int target, int64_t count) {
  struct file_clone_range range = {source, 0, (uint64_t)count, 0};
  return ioctl(target, FICLONERANGE, &range) == 0 ? 0 : -errno;
}

/// vmsplice(2): puts memory into a pipe without a copy. Returns the number of bytes, or a negative
/// errno.
static inline int64_t CLinuxSystem_splice(int pipe, const void *bytes, int64_t count) {
  // struct iovec, which <sys/uio.h> would define a second time.
  const uintptr_t part[2] = {(uintptr_t)bytes, (uintptr_t)count};
  const long spliced = syscall(SYS_vmsplice, pipe, part, 1, 0);
  return spliced >= 0 ? spliced : -errno;
}

/// mallopt(3): keeps freed buffers of up to 32 MiB for reuse, up to 256 MiB in total.
static inline void CLinuxSystem_keepLargeBuffers(void) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

/// mallopt(3): lets all threads share one heap.
static inline void CLinuxSystem_shareOneHeap(void) { mallopt(M_ARENA_MAX, 1); }

#endif
