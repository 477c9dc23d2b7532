// SPDX-License-Identifier: Apache-2.0
// Capabilities, formats, sizes and frame rates.
#include "model.h"

#include <errno.h>
#include <string.h>

uint32_t buffer_type(const device_node *node) {
  uint32_t flags = node->kind->capabilities;
  if (flags & V4L2_CAP_VIDEO_CAPTURE_MPLANE) return V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE;
  if (flags & V4L2_CAP_VIDEO_OUTPUT) return V4L2_BUF_TYPE_VIDEO_OUTPUT;
  if (flags & V4L2_CAP_META_CAPTURE) return V4L2_BUF_TYPE_META_CAPTURE;
  return V4L2_BUF_TYPE_VIDEO_CAPTURE;
}

static int format_count(const description *kind) {
  int count = 0;
  while (kind->formats != NULL && kind->formats[count].fourcc != 0) count++;
  return count;
}

static const description_format *find_format(const description *kind, uint32_t fourcc) {
  for (int index = 0; index < format_count(kind); index++)
    if (kind->formats[index].fourcc == fourcc) return &kind->formats[index];
  return NULL;
}

const description_size *sizes_of(const device_node *node, const description_format *format) {
  return follows_signal(node) ? node->signal_sizes : format->list;
}

int query_request(device_node *node, int handle, unsigned long request, void *argument) {
  (void)handle;
  switch (request) {
  case VIDIOC_QUERYCAP: {
    struct v4l2_capability *answer = argument;
    memset(answer, 0, sizeof *answer);
    strncpy((char *)answer->driver, node->kind->driver, sizeof answer->driver - 1);
    // A name may fill its field without a terminating zero.
    const char *card = given_name(node->kind->card);
    size_t length = strlen(card);
    memcpy(answer->card, card, length < sizeof answer->card ? length : 32);
    strncpy((char *)answer->bus_info, given_name(node->kind->bus), sizeof answer->bus_info - 1);
    answer->version = 0x060100;
    answer->device_caps = node->kind->capabilities | V4L2_CAP_EXT_PIX_FORMAT;
    answer->capabilities = answer->device_caps | V4L2_CAP_DEVICE_CAPS;
    return 0;
  }
  default: return -ENOTTY;
  }
}

static int enumerate_format(const device_node *node, struct v4l2_fmtdesc *entry) {
  if (entry->type != buffer_type(node)) return -EINVAL;
  if (entry->index >= (uint32_t)format_count(node->kind)) return -EINVAL;
  // The mbus_code filter is not supported, so it is cleared.
  entry->mbus_code = 0;
  const description_format *format = &node->kind->formats[entry->index];
  entry->flags = format->flags;
  entry->pixelformat = format->fourcc;
  memset(entry->description, 0, sizeof entry->description);
  strncpy((char *)entry->description, format->name, sizeof entry->description - 1);
  return 0;
}

static int enumerate_size(const device_node *node, struct v4l2_frmsizeenum *entry) {
  const description_format *format = find_format(node->kind, entry->pixel_format);
  if (format == NULL) return -EINVAL;
  if (format->sizes != DISCRETE) {
    if (entry->index > 0) return -EINVAL;
    entry->type =
      format->sizes == STEPWISE ? V4L2_FRMSIZE_TYPE_STEPWISE : V4L2_FRMSIZE_TYPE_CONTINUOUS;
    entry->stepwise = (struct v4l2_frmsize_stepwise){
      format->list[0].width, format->list[1].width, format->step_width, format->list[0].height,
      format->list[1].height, format->step_height,
    };
    return 0;
  }
  const description_size *list = sizes_of(node, format);
  uint32_t place = node->kind->is_endless ? 0 : entry->index;
  for (uint32_t index = 0; index <= place; index++)
    if (list[index].intervals[0].denominator == 0 && list[index].width == 0) return -EINVAL;
  entry->type = V4L2_FRMSIZE_TYPE_DISCRETE;
  entry->discrete.width = list[place].width;
  entry->discrete.height = list[place].height;
  return 0;
}

static bool is_in_range(const description_format *format, uint32_t width, uint32_t height) {
  const description_size *low = &format->list[0], *high = &format->list[1];
  return width >= low->width && width <= high->width && height >= low->height
    && height <= high->height && (width - low->width) % format->step_width == 0
    && (height - low->height) % format->step_height == 0;
}

/// The shortest frame duration at a size, limited by the pixel rate.
static struct v4l2_fract shortest(
  const description_format *format, uint32_t width, uint32_t height
) {
  uint64_t rate = format->pixel_rate / ((uint64_t)width * height);
  return (struct v4l2_fract){1, rate < 1 ? 1 : rate > 1000 ? 1000 : (uint32_t)rate};
}

static int enumerate_interval(const device_node *node, struct v4l2_frmivalenum *entry) {
  const description_format *format = find_format(node->kind, entry->pixel_format);
  if (format == NULL) return -EINVAL;
  if (format->intervals != DISCRETE) {
    if (entry->index > 0) return -EINVAL;
    if (format->sizes != DISCRETE && !is_in_range(format, entry->width, entry->height))
      return -EINVAL;
    bool has_steps = format->intervals == STEPWISE;
    entry->type = has_steps ? V4L2_FRMIVAL_TYPE_STEPWISE : V4L2_FRMIVAL_TYPE_CONTINUOUS;
    entry->stepwise = (struct v4l2_frmival_stepwise){
      shortest(format, entry->width, entry->height), {1, 1}, {1, has_steps ? 10000 : 1},
    };
    return 0;
  }
  // A size may be listed several times, each time with other rates.
  uint32_t left = node->kind->is_endless ? 0 : entry->index;
  for (const description_size *size = sizes_of(node, format); size->width != 0; size++) {
    if (size->width != entry->width || size->height != entry->height) continue;
    for (int index = 0; index < 8 && size->intervals[index].denominator != 0; index++) {
      if (left-- > 0) continue;
      entry->type = V4L2_FRMIVAL_TYPE_DISCRETE;
      entry->discrete = size->intervals[index];
      return 0;
    }
  }
  return -EINVAL;
}

static void choose_size(
  const device_node *node, uint32_t width, uint32_t height, uint32_t *chosen_width,
  uint32_t *chosen_height
) {
  const description_format *format = node->format;
  const description_size *list = sizes_of(node, format);
  if (format->sizes != DISCRETE) {
    uint32_t w = width < list[0].width ? list[0].width : width;
    uint32_t h = height < list[0].height ? list[0].height : height;
    if (w > list[1].width) w = list[1].width;
    if (h > list[1].height) h = list[1].height;
    *chosen_width = w - (w - list[0].width) % format->step_width;
    *chosen_height = h - (h - list[0].height) % format->step_height;
    return;
  }
  uint64_t best = UINT64_MAX;
  for (; list->width != 0; list++) {
    uint64_t apart = (uint64_t)(list->width > width ? list->width - width : width - list->width)
      + (list->height > height ? list->height - height : height - list->height);
    if (apart >= best) continue;
    best = apart;
    *chosen_width = list->width;
    *chosen_height = list->height;
  }
}

static uint32_t image_size(const device_node *node, uint32_t *bytes_per_line) {
  uint64_t pixels = (uint64_t)node->width * node->height;
  *bytes_per_line = 0;
  switch (node->format->fourcc) {
  case V4L2_PIX_FMT_YUYV:
  case V4L2_PIX_FMT_UYVY:
    *bytes_per_line = node->width * 2;
    return (uint32_t)(pixels * 2);
  case V4L2_PIX_FMT_RGB24:
    *bytes_per_line = node->width * 3;
    return (uint32_t)(pixels * 3);
  case V4L2_PIX_FMT_GREY:
    *bytes_per_line = node->width;
    return (uint32_t)pixels;
  case V4L2_PIX_FMT_NV12:
  case V4L2_PIX_FMT_NV12M:
    *bytes_per_line = node->width;
    return (uint32_t)(pixels * 3 / 2);
  default: break;
  }
  uint64_t most = pixels * 2 > node->options.mjpeg_bytes ? pixels * 2 : node->options.mjpeg_bytes;
  return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

static void take_format(device_node *node, uint32_t fourcc, uint32_t width, uint32_t height) {
  const description_format *format = find_format(node->kind, fourcc);
  node->format = format != NULL ? format : node->kind->formats;
  choose_size(node, width, height, &node->width, &node->height);
  node->size_image = image_size(node, &node->bytes_per_line);
  node->is_rate_stale = true;
  node->crop = (struct v4l2_rect){0, 0, 0, 0};
  // As with UVC, a new format resets the frame rate.
  set_default_interval(node);
}

void set_default_format(device_node *node) {
  if (node->kind->formats == NULL) return;
  const description_size *first = sizes_of(node, node->kind->formats);
  take_format(node, node->kind->formats->fourcc, first->width, first->height);
}

/// The supported frame duration closest to a requested one, in seconds.
static struct v4l2_fract nearest_interval(const device_node *node, double wish) {
  if (node->format->intervals != DISCRETE) {
    struct v4l2_fract limit = shortest(node->format, node->width, node->height);
    double low = (double)limit.numerator / limit.denominator;
    if (wish <= low) return limit;
    if (wish > 1) return (struct v4l2_fract){1, 1};
    // Rounded to 100 ns units, as in UVC.
    return (struct v4l2_fract){(uint32_t)(wish * 1e7 + 0.5), 10000000};
  }
  struct v4l2_fract best = {1, 30};
  double apart = 1e9;
  for (const description_size *size = sizes_of(node, node->format); size->width != 0; size++) {
    if (size->width != node->width || size->height != node->height) continue;
    for (int index = 0; index < 8 && size->intervals[index].denominator != 0; index++) {
      struct v4l2_fract one = size->intervals[index];
      double distance = (double)one.numerator / one.denominator - wish;
      if (distance < 0) distance = -distance;
      if (distance >= apart) continue;
      apart = distance;
      best = one;
    }
  }
  return best;
}

void set_default_interval(device_node *node) { node->interval = nearest_interval(node, 1.0 / 30); }

uint32_t plane_count(const device_node *node) {
  return node->format->planes > 1 ? node->format->planes : 1;
}

uint32_t plane_bytes(const device_node *node, uint32_t plane) {
  if (plane_count(node) == 1) return node->size_image + node->options.data_offset;
  // The luma plane, then the chroma plane with half the lines.
  uint32_t chroma = node->size_image / 3;
  return (plane == 0 ? node->size_image - chroma : chroma) + node->options.data_offset;
}

uint32_t field_of(const device_node *node) {
  // Analog TV is interlaced.
  return node->standard != 0 ? V4L2_FIELD_INTERLACED : V4L2_FIELD_NONE;
}

static void report_format(const device_node *node, struct v4l2_format *answer) {
  if (buffer_type(node) == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE) {
    struct v4l2_pix_format_mplane *pixels = &answer->fmt.pix_mp;
    memset(pixels, 0, sizeof *pixels);
    pixels->width = node->width;
    pixels->height = node->height;
    pixels->pixelformat = node->format->fourcc;
    pixels->field = V4L2_FIELD_NONE;
    pixels->colorspace = V4L2_COLORSPACE_SRGB;
    pixels->num_planes = (uint8_t)plane_count(node);
    for (uint32_t plane = 0; plane < plane_count(node); plane++) {
      pixels->plane_fmt[plane].sizeimage = plane_bytes(node, plane);
      pixels->plane_fmt[plane].bytesperline = node->bytes_per_line;
    }
    return;
  }
  struct v4l2_pix_format *pixels = &answer->fmt.pix;
  memset(pixels, 0, sizeof *pixels);
  pixels->width = node->width;
  pixels->height = node->height;
  pixels->pixelformat = node->format->fourcc;
  pixels->field = field_of(node);
  pixels->bytesperline = node->bytes_per_line;
  pixels->sizeimage = node->size_image;
  pixels->colorspace = V4L2_COLORSPACE_SRGB;
}

static int exchange_format(
  device_node *node, unsigned long request, struct v4l2_format *format
) {
  if (format->type != buffer_type(node) || node->format == NULL) return -EINVAL;
  bool isMany = format->type == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE;
  uint32_t fourcc = isMany ? format->fmt.pix_mp.pixelformat : format->fmt.pix.pixelformat;
  uint32_t width = isMany ? format->fmt.pix_mp.width : format->fmt.pix.width;
  uint32_t height = isMany ? format->fmt.pix_mp.height : format->fmt.pix.height;
  if (request == VIDIOC_TRY_FMT) {
    device_node other = *node;
    take_format(&other, fourcc, width, height);
    report_format(&other, format);
    return 0;
  }
  if (request == VIDIOC_S_FMT) {
    if (node->buffer_count > 0 || node->options.busy) return -EBUSY;
    take_format(node, fourcc, width, height);
  }
  report_format(node, format);
  return 0;
}

static int exchange_rate(device_node *node, unsigned long request, struct v4l2_streamparm *rate) {
  if (rate->type != buffer_type(node) || node->format == NULL) return -EINVAL;
  if (request == VIDIOC_S_PARM && node->kind->fixed_rate) return -ENOTTY;
  if (request == VIDIOC_S_PARM) {
    if (node->is_streaming) return -EBUSY;
    struct v4l2_fract before = node->interval;
    node->is_rate_stale = true;
    struct v4l2_fract wish = rate->parm.capture.timeperframe;
    if (wish.numerator == 0 || wish.denominator == 0) {
      set_default_interval(node);
    } else {
      node->interval = nearest_interval(node, (double)wish.numerator / wish.denominator);
    }
    if (node->kind->exposure_follows_rate && memcmp(&before, &node->interval, sizeof before) != 0)
      post_control(node, -1, V4L2_CID_EXPOSURE_ABSOLUTE, V4L2_EVENT_CTRL_CH_RANGE);
  }
  memset(&rate->parm, 0, sizeof rate->parm);
  rate->parm.capture.capability = node->kind->fixed_rate ? 0 : V4L2_CAP_TIMEPERFRAME;
  rate->parm.capture.timeperframe = node->interval;
  return 0;
}

int format_request(device_node *node, int handle, unsigned long request, void *argument) {
  (void)handle;
  switch (request) {
  case VIDIOC_ENUM_FMT: return enumerate_format(node, argument);
  case VIDIOC_ENUM_FRAMESIZES: return enumerate_size(node, argument);
  case VIDIOC_ENUM_FRAMEINTERVALS: return enumerate_interval(node, argument);
  case VIDIOC_G_FMT:
  case VIDIOC_S_FMT:
  case VIDIOC_TRY_FMT: return exchange_format(node, request, argument);
  case VIDIOC_G_PARM:
  case VIDIOC_S_PARM: return exchange_rate(node, request, argument);
  default: return -ENOTTY;
  }
}
