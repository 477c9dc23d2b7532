// SPDX-License-Identifier: Apache-2.0
// Requests and errors by their names, as a configuration writes them.
#include "model.h"

#include <errno.h>
#include <string.h>

#define REQUEST(name) {#name, VIDIOC_##name}

static const struct {
  const char *name;
  unsigned long number;
} requests[] = {
  REQUEST(QUERYCAP), REQUEST(ENUM_FMT), REQUEST(ENUM_FRAMESIZES), REQUEST(ENUM_FRAMEINTERVALS),
  REQUEST(G_FMT), REQUEST(S_FMT), REQUEST(TRY_FMT), REQUEST(G_PARM), REQUEST(S_PARM),
  REQUEST(REQBUFS), REQUEST(QUERYBUF), REQUEST(QBUF), REQUEST(DQBUF), REQUEST(STREAMON),
  REQUEST(STREAMOFF), REQUEST(ENUMINPUT), REQUEST(G_INPUT), REQUEST(S_INPUT),
  REQUEST(QUERY_DV_TIMINGS), REQUEST(G_DV_TIMINGS), REQUEST(S_DV_TIMINGS),
  REQUEST(ENUM_DV_TIMINGS), REQUEST(DV_TIMINGS_CAP), REQUEST(G_STD), REQUEST(S_STD),
  REQUEST(QUERYCTRL), REQUEST(QUERY_EXT_CTRL), REQUEST(QUERYMENU), REQUEST(G_CTRL),
  REQUEST(S_CTRL), REQUEST(G_EXT_CTRLS), REQUEST(S_EXT_CTRLS), REQUEST(TRY_EXT_CTRLS),
  REQUEST(SUBSCRIBE_EVENT), REQUEST(UNSUBSCRIBE_EVENT), REQUEST(DQEVENT), REQUEST(G_PRIORITY),
  REQUEST(S_PRIORITY),
};

#define ERROR(name) {#name, name}

static const struct {
  const char *name;
  int number;
} errors[] = {
  ERROR(EACCES), ERROR(EAGAIN), ERROR(EBADF), ERROR(EBUSY), ERROR(EFAULT), ERROR(EINVAL),
  ERROR(EIO), ERROR(ENODATA), ERROR(ENODEV), ERROR(ENOLCK), ERROR(ENOLINK), ERROR(ENOMEM),
  ERROR(ENOSPC), ERROR(ENOTTY), ERROR(EPERM), ERROR(EPIPE), ERROR(EPROTO), ERROR(ERANGE),
  ERROR(ETIMEDOUT), ERROR(EINTR), ERROR(ENXIO), ERROR(EOPNOTSUPP),
};

static bool is_name(const char *text, size_t length, const char *name) {
  return strlen(name) == length && memcmp(text, name, length) == 0;
}

unsigned long request_named(const char *name, size_t length) {
  for (size_t index = 0; index < sizeof requests / sizeof *requests; index++)
    if (is_name(name, length, requests[index].name)) return (unsigned int)requests[index].number;
  return 0;
}

int error_named(const char *name, size_t length) {
  for (size_t index = 0; index < sizeof errors / sizeof *errors; index++)
    if (is_name(name, length, errors[index].name)) return errors[index].number;
  return 0;
}
