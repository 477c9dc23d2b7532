// SPDX-License-Identifier: Apache-2.0
// Video4Linux and libv4l2, with shims for what Swift cannot import. Each shim returns a value or a
// negative errno, so that Swift never reads errno itself.
#ifndef CVIDEO4LINUX_SHIM_H
#define CVIDEO4LINUX_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <libv4l2.h>
#include <linux/media.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/// Constants for the request numbers, which are macros with casts.
#define CVIDEO4LINUX_REQUEST(name) static const unsigned long CVideo4Linux_##name = name
CVIDEO4LINUX_REQUEST(VIDIOC_QUERYCAP);
CVIDEO4LINUX_REQUEST(VIDIOC_ENUM_FMT);
CVIDEO4LINUX_REQUEST(VIDIOC_ENUM_FRAMESIZES);
CVIDEO4LINUX_REQUEST(VIDIOC_ENUM_FRAMEINTERVALS);
CVIDEO4LINUX_REQUEST(VIDIOC_G_FMT);
CVIDEO4LINUX_REQUEST(VIDIOC_S_FMT);
CVIDEO4LINUX_REQUEST(VIDIOC_G_PARM);
CVIDEO4LINUX_REQUEST(VIDIOC_S_PARM);
CVIDEO4LINUX_REQUEST(VIDIOC_G_SELECTION);
CVIDEO4LINUX_REQUEST(VIDIOC_S_SELECTION);
CVIDEO4LINUX_REQUEST(VIDIOC_REQBUFS);
CVIDEO4LINUX_REQUEST(VIDIOC_QUERYBUF);
CVIDEO4LINUX_REQUEST(VIDIOC_EXPBUF);
CVIDEO4LINUX_REQUEST(VIDIOC_QBUF);
CVIDEO4LINUX_REQUEST(VIDIOC_DQBUF);
CVIDEO4LINUX_REQUEST(VIDIOC_STREAMON);
CVIDEO4LINUX_REQUEST(VIDIOC_STREAMOFF);
CVIDEO4LINUX_REQUEST(VIDIOC_ENUMINPUT);
CVIDEO4LINUX_REQUEST(VIDIOC_G_INPUT);
CVIDEO4LINUX_REQUEST(VIDIOC_S_INPUT);
CVIDEO4LINUX_REQUEST(VIDIOC_G_STD);
CVIDEO4LINUX_REQUEST(VIDIOC_ENUM_DV_TIMINGS);
CVIDEO4LINUX_REQUEST(VIDIOC_QUERY_DV_TIMINGS);
CVIDEO4LINUX_REQUEST(VIDIOC_G_DV_TIMINGS);
CVIDEO4LINUX_REQUEST(VIDIOC_S_DV_TIMINGS);
CVIDEO4LINUX_REQUEST(VIDIOC_DV_TIMINGS_CAP);
CVIDEO4LINUX_REQUEST(VIDIOC_QUERY_EXT_CTRL);
CVIDEO4LINUX_REQUEST(VIDIOC_QUERYCTRL);
CVIDEO4LINUX_REQUEST(VIDIOC_QUERYMENU);
CVIDEO4LINUX_REQUEST(VIDIOC_G_EXT_CTRLS);
CVIDEO4LINUX_REQUEST(VIDIOC_S_EXT_CTRLS);
CVIDEO4LINUX_REQUEST(VIDIOC_G_CTRL);
CVIDEO4LINUX_REQUEST(VIDIOC_S_CTRL);
CVIDEO4LINUX_REQUEST(VIDIOC_SUBSCRIBE_EVENT);
CVIDEO4LINUX_REQUEST(VIDIOC_UNSUBSCRIBE_EVENT);
CVIDEO4LINUX_REQUEST(VIDIOC_DQEVENT);
CVIDEO4LINUX_REQUEST(VIDIOC_G_PRIORITY);
CVIDEO4LINUX_REQUEST(VIDIOC_S_PRIORITY);
#undef CVIDEO4LINUX_REQUEST

/// Constants that kernel headers before Linux 6.15 lack (Debian 12 has 6.1). From
/// <linux/videodev2.h>: V4L2_CTRL_TYPE_RECT, V4L2_CTRL_WHICH_MIN_VAL and _MAX_VAL. From
/// <linux/v4l2-controls.h>: V4L2_CID_USER_UVC_BASE. From <linux/uvcvideo.h>:
/// V4L2_CID_UVC_REGION_OF_INTEREST_…. Older kernels return EINVAL for them.
static const unsigned int CVideo4Linux_CTRL_TYPE_RECT = 0x0107;
static const unsigned int CVideo4Linux_CTRL_WHICH_MIN_VAL = 0x0f020000;
static const unsigned int CVideo4Linux_CTRL_WHICH_MAX_VAL = 0x0f030000;
static const unsigned int CVideo4Linux_CID_UVC_REGION_OF_INTEREST_RECT =
    V4L2_CID_USER_BASE + 0x11e0 + 1;
static const unsigned int CVideo4Linux_CID_UVC_REGION_OF_INTEREST_AUTO =
    V4L2_CID_USER_BASE + 0x11e0 + 2;

/// Nonvariadic v4l2_ioctl(3) or ioctl(2). A call interrupted by a signal is repeated.
static inline int CVideo4Linux_ioctl(
    int descriptor, unsigned long request, void *argument, bool throughLibrary) {
  int result;
  do {
    result = throughLibrary ? v4l2_ioctl(descriptor, request, argument)
                            : ioctl(descriptor, request, argument);
  } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : result;
}

/// Nonvariadic open(2). libv4l2 is attached separately, by CVideo4Linux_attach.
static inline int CVideo4Linux_open(const char *path, int flags) {
  int result;
  do {
    result = open(path, flags);
  } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : result;
}

/// Redirects libv4l2's log from stderr, which belongs to the command, to /dev/null. libv4l2 logs
/// "error dequeuing buf" whenever no frame is ready, and every rejected request. The log stays
/// where the user set LIBV4L2_LOG_FILENAME. v4l2_log_file is a global variable: call this function
/// once, before any other call.
static inline void CVideo4Linux_silence(void) {
  if (v4l2_log_file == NULL && getenv("LIBV4L2_LOG_FILENAME") == NULL)
    v4l2_log_file = fopen("/dev/null", "we");
}

/// v4l2_fd_open(3) with conversion disabled. Plugins stay active. The converting mode is avoided,
/// because it holds a lock that requeueing needs and drops damaged frames.
static inline int CVideo4Linux_attach(int descriptor) {
  int result = v4l2_fd_open(descriptor, V4L2_DISABLE_CONVERSION);
  return result < 0 ? -errno : result;
}

/// Whether a libv4l2 plugin is loaded. libv4l2 unloads plugins that do not claim a device at once.
/// True where /proc/self/maps is not readable.
static inline bool CVideo4Linux_hasPlugin(void) {
  FILE *mappings = fopen("/proc/self/maps", "re");
  if (mappings == NULL) return true;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, mappings) != NULL)
    found = strstr(line, "/libv4l/plugins") != NULL;
  fclose(mappings);
  return found;
}

/// Constants for MEDIA_ENT_F_FLASH and MEDIA_ENT_F_IO_V4L, which are nested macros.
static const unsigned int CVideo4Linux_ENTITY_FLASH = MEDIA_ENT_F_FLASH;
static const unsigned int CVideo4Linux_ENTITY_VIDEO = MEDIA_ENT_F_IO_V4L;

/// The device numbers (major, minor) of a media device's entities with one function. At most
/// `capacity` pairs are stored. Returns the number of pairs, or -errno.
static inline int CVideo4Linux_entityNodes(
    const char *path, unsigned int function, unsigned int *numbers, int capacity) {
  int descriptor = CVideo4Linux_open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return descriptor;
  struct media_entity_desc entity = {.id = 0};
  int count = 0;
  // A limit on the number of entities, against drivers whose enumeration never ends.
  for (int index = 0; index < 1024 && count < capacity; index++) {
    entity.id |= MEDIA_ENT_ID_FLAG_NEXT;
    if (ioctl(descriptor, MEDIA_IOC_ENUM_ENTITIES, &entity) < 0) break;
    if (entity.type != function) continue;
    numbers[2 * count] = entity.dev.major;
    numbers[2 * count + 1] = entity.dev.minor;
    count++;
  }
  close(descriptor);
  return count;
}

/// v4l2_close(3) with -errno as error. Also closes descriptors unknown to libv4l2.
static inline int CVideo4Linux_close(int descriptor) {
  int result = v4l2_close(descriptor);
  return result < 0 ? -errno : result;
}

/// v4l2_mmap(3). On failure the result is NULL and *error is set (MAP_FAILED is a cast macro).
static inline void *CVideo4Linux_map(int descriptor, size_t length, int64_t offset, int *error) {
  void *memory = v4l2_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset);
  *error = memory == MAP_FAILED ? -errno : 0;
  return memory == MAP_FAILED ? NULL : memory;
}

/// poll(2) on one descriptor. Returns the events, 0 after the timeout, or -errno.
static inline int CVideo4Linux_poll(int descriptor, short events, int milliseconds) {
  struct pollfd entry = {.fd = descriptor, .events = events, .revents = 0};
  int result = poll(&entry, 1, milliseconds);
  if (result < 0) return errno == EINTR ? 0 : -errno;
  return result == 0 ? 0 : entry.revents;
}

#endif
