// SPDX-License-Identifier: Apache-2.0
// Requests and errors by their names in a configuration, and the kernel's preparation of request
// arguments.
#include "model.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST(name) {#name, VIDIOC_##name, 0}
/// The bytes after this field are zeroed.
#define CLEARED(name, type, field) \
  {#name, VIDIOC_##name, offsetof(struct type, field) + sizeof(((struct type *)NULL)->field)}

static const struct {
  const char *name;
  unsigned long number;
  size_t kept;
} requests[] = {
  REQUEST(QUERYCAP), CLEARED(ENUM_FMT, v4l2_fmtdesc, type),
  CLEARED(ENUM_FRAMESIZES, v4l2_frmsizeenum, pixel_format),
  CLEARED(ENUM_FRAMEINTERVALS, v4l2_frmivalenum, height), CLEARED(G_FMT, v4l2_format, type),
  REQUEST(G_SELECTION), REQUEST(S_SELECTION), REQUEST(S_FMT), REQUEST(TRY_FMT), CLEARED(G_PARM, v4l2_streamparm, type), REQUEST(S_PARM),
  CLEARED(REQBUFS, v4l2_requestbuffers, memory), REQUEST(QUERYBUF), REQUEST(QBUF), REQUEST(DQBUF),
  REQUEST(STREAMON), REQUEST(STREAMOFF), CLEARED(ENUMINPUT, v4l2_input, index), REQUEST(G_INPUT),
  REQUEST(S_INPUT), REQUEST(QUERY_DV_TIMINGS), REQUEST(G_DV_TIMINGS), REQUEST(S_DV_TIMINGS),
  CLEARED(ENUM_DV_TIMINGS, v4l2_enum_dv_timings, pad),
  CLEARED(DV_TIMINGS_CAP, v4l2_dv_timings_cap, pad), REQUEST(G_STD), REQUEST(S_STD),
  CLEARED(QUERYCTRL, v4l2_queryctrl, id), CLEARED(QUERY_EXT_CTRL, v4l2_query_ext_ctrl, id),
  CLEARED(QUERYMENU, v4l2_querymenu, index), REQUEST(G_CTRL), REQUEST(S_CTRL),
  REQUEST(G_EXT_CTRLS), REQUEST(S_EXT_CTRLS), REQUEST(TRY_EXT_CTRLS),
  CLEARED(SUBSCRIBE_EVENT, v4l2_event_subscription, flags), REQUEST(UNSUBSCRIBE_EVENT),
  REQUEST(DQEVENT), REQUEST(G_PRIORITY), REQUEST(S_PRIORITY), REQUEST(QUERYSTD),
  REQUEST(ENUMSTD), REQUEST(G_TUNER), REQUEST(S_TUNER),
  REQUEST(G_FREQUENCY), REQUEST(S_FREQUENCY), REQUEST(ENUM_FREQ_BANDS),
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

const char *given_name(const char *name) {
  const char *given = getenv("FAKEVIDEO_NAME");
  return given != NULL ? given : name;
}

static bool is_name(const char *text, size_t length, const char *name) {
  return strlen(name) == length && memcmp(text, name, length) == 0;
}

int take_argument(unsigned long request, void *argument) {
  size_t index = 0, count = sizeof requests / sizeof *requests;
  while (index < count && (unsigned int)requests[index].number != request) index++;
  if (index == count) return -ENOTTY;
  if ((uintptr_t)argument < 4096) return -EFAULT;
  size_t kept = requests[index].kept, size = _IOC_SIZE(request);
  if (kept != 0 && kept < size) memset((char *)argument + kept, 0, size - kept);
  return 0;
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
