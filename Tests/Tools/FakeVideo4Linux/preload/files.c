// SPDX-License-Identifier: Apache-2.0
// File information for device nodes: stat(2) and related calls, and the /sys file by which v4l2-ctl
// recognizes a video node.
#define _GNU_SOURCE
#include "preload.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { VIDEO_MAJOR = 81, FIRST_MINOR = 200 };

static int node_of_descriptor(int descriptor) {
  int handle = handle_of(descriptor);
  return handle < 0 ? -1 : the_machine()->handles[handle].node;
}

static int describe(int node, struct stat *status) {
  memset(status, 0, sizeof *status);
  status->st_mode = S_IFCHR | 0660;
  status->st_nlink = 1;
  status->st_ino = (ino_t)(1000 + node);
  status->st_rdev = makedev(VIDEO_MAJOR, (unsigned)(FIRST_MINOR + node));
  status->st_blksize = 4096;
  return 0;
}

FRONT int stat(const char *restrict path, struct stat *restrict status) {
  int node = node_of_path(path);
  return node < 0 ? BEHIND(stat)(path, status) : describe(node, status);
}

FRONT int lstat(const char *restrict path, struct stat *restrict status) {
  int node = node_of_path(path);
  return node < 0 ? BEHIND(lstat)(path, status) : describe(node, status);
}

FRONT int fstat(int descriptor, struct stat *status) {
  int node = node_of_descriptor(descriptor);
  return node < 0 ? BEHIND(fstat)(descriptor, status) : describe(node, status);
}

/// The node of a path, or of the descriptor where the path is empty.
static int node_at(int directory, const char *path, int flags) {
  if (flags & AT_EMPTY_PATH && (path == NULL || *path == 0)) return node_of_descriptor(directory);
  return node_of_path(path);
}

FRONT int fstatat(
  int directory, const char *restrict path, struct stat *restrict status, int flags
) {
  int node = node_at(directory, path, flags);
  return node < 0 ? BEHIND(fstatat)(directory, path, status, flags) : describe(node, status);
}

// On 64-bit machines, struct stat64 equals struct stat.
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one structure for both");

FRONT int stat64(const char *restrict path, struct stat64 *restrict status) {
  int node = node_of_path(path);
  return node < 0 ? BEHIND(stat64)(path, status) : describe(node, (struct stat *)status);
}

FRONT int lstat64(const char *restrict path, struct stat64 *restrict status) {
  int node = node_of_path(path);
  return node < 0 ? BEHIND(lstat64)(path, status) : describe(node, (struct stat *)status);
}

FRONT int fstat64(int descriptor, struct stat64 *status) {
  int node = node_of_descriptor(descriptor);
  return node < 0 ? BEHIND(fstat64)(descriptor, status) : describe(node, (struct stat *)status);
}

FRONT int fstatat64(
  int directory, const char *restrict path, struct stat64 *restrict status, int flags
) {
  int node = node_at(directory, path, flags);
  return node < 0 ? BEHIND(fstatat64)(directory, path, status, flags)
                  : describe(node, (struct stat *)status);
}

FRONT int statx(
  int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict status
) {
  int node = node_at(directory, path, flags);
  if (node < 0) return BEHIND(statx)(directory, path, flags, mask, status);
  memset(status, 0, sizeof *status);
  status->stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO;
  status->stx_mode = S_IFCHR | 0660;
  status->stx_nlink = 1;
  status->stx_ino = (uint64_t)(1000 + node);
  status->stx_rdev_major = VIDEO_MAJOR;
  status->stx_rdev_minor = (uint32_t)(FIRST_MINOR + node);
  return 0;
}

FRONT int access(const char *path, int mode) {
  if (node_of_path(path) < 0) return BEHIND(access)(path, mode);
  return mode & X_OK ? answer(-EACCES) : 0;
}

static char *copy_path(const char *path, char *result) {
  if (result == NULL) return strdup(path);
  return strcpy(result, path);  // The buffer of realpath(3) fits any path.
}

FRONT char *realpath(const char *restrict path, char *restrict result) {
  return node_of_path(path) < 0 ? BEHIND(realpath)(path, result) : copy_path(path, result);
}

char *__realpath_chk(const char *path, char *result, size_t size);

FRONT char *__realpath_chk(const char *path, char *result, size_t size) {
  return node_of_path(path) < 0 ? BEHIND(__realpath_chk)(path, result, size)
                                : copy_path(path, result);
}

FRONT char *canonicalize_file_name(const char *path) {
  return node_of_path(path) < 0 ? BEHIND(canonicalize_file_name)(path) : strdup(path);
}

/// Whether the path is the given /sys file of a simulated node; also returns the minor number.
static bool is_of_sys(const char *path, const char *name, unsigned *number) {
  char rest[32] = "";
  if (strncmp(path, "/sys/dev/char/", 14) != 0) return false;
  if (sscanf(path + 14, "81:%u/%31s", number, rest) != 2 || strcmp(rest, name) != 0) return false;
  return *number >= FIRST_MINOR
    && *number < (unsigned)(FIRST_MINOR + fakevideo_node_count(the_machine()));
}

/// v4l2-compliance searches this directory for a media controller and requires that it exists.
FRONT DIR *opendir(const char *path) {
  unsigned number;
  return BEHIND(opendir)(is_of_sys(path, "device", &number) ? "/proc/self/task" : path);
}

/// Opens the simulated /sys file of a node; -1 for other paths. The file needs its own descriptor,
/// because C++ streams read from it.
static int open_uevent(const char *path) {
  unsigned minor_number;
  if (!is_of_sys(path, "uevent", &minor_number)) return -1;
  int file = memfd_create("uevent", MFD_CLOEXEC);
  if (file < 0) return -1;
  dprintf(file, "MAJOR=81\nMINOR=%u\nDEVNAME=video%u\n", minor_number, minor_number);
  lseek(file, 0, SEEK_SET);
  return file;
}

FRONT FILE *fopen(const char *restrict path, const char *restrict mode) {
  int file = open_uevent(path);
  return file >= 0 ? fdopen(file, mode) : BEHIND(fopen)(path, mode);
}

FRONT FILE *fopen64(const char *restrict path, const char *restrict mode) {
  int file = open_uevent(path);
  return file >= 0 ? fdopen(file, mode) : BEHIND(fopen64)(path, mode);
}
