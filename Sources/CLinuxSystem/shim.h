// SPDX-License-Identifier: Apache-2.0
// System calls that the module of the C library leaves out. They answer with 0 or a negative errno.
#ifndef CLINUXSYSTEM_SHIM_H
#define CLINUXSYSTEM_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

/// renameat2(2) with RENAME_NOREPLACE: renames a file unless the new name is taken.
static inline int CLinuxSystem_claim(const char *from, const char *to) {
  return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ? 0 : -errno;
}

/// renameat2(2) with RENAME_EXCHANGE: swaps the names of two files in one step.
static inline int CLinuxSystem_exchange(const char *one, const char *other) {
  return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0 ? 0 : -errno;
}

#endif
