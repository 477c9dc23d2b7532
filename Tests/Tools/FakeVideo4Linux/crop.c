// SPDX-License-Identifier: Apache-2.0
// Cropping of the sensor's image.
#include "model.h"

#include <errno.h>

static struct v4l2_rect whole(const device_node *node) {
  return (struct v4l2_rect){0, 0, node->width, node->height};
}

/// The nearest granted part: widths in steps of 8 pixels and heights of 2, inside the sensor.
static struct v4l2_rect nearest(const device_node *node, struct v4l2_rect wanted) {
  struct v4l2_rect all = whole(node);
  wanted.width = (wanted.width + 4) / 8 * 8;
  wanted.height = (wanted.height + 1) / 2 * 2;
  if (wanted.width < 8) wanted.width = 8;
  if (wanted.height < 2) wanted.height = 2;
  if (wanted.width > all.width) wanted.width = all.width;
  if (wanted.height > all.height) wanted.height = all.height;
  int32_t right = (int32_t)(all.width - wanted.width);
  int32_t bottom = (int32_t)(all.height - wanted.height);
  if (wanted.left < 0) wanted.left = 0;
  if (wanted.top < 0) wanted.top = 0;
  if (wanted.left > right) wanted.left = right;
  if (wanted.top > bottom) wanted.top = bottom;
  return wanted;
}

int crop_request(device_node *node, int handle, unsigned long request, void *argument) {
  (void)handle;
  struct v4l2_selection *selection = argument;
  if (request != VIDIOC_G_SELECTION && request != VIDIOC_S_SELECTION) return -ENOTTY;
  if (node->options.crop == 0) return -ENOTTY;
  if (selection->type != V4L2_BUF_TYPE_VIDEO_CAPTURE) return -EINVAL;
  bool is_cropped = node->crop.width != 0;
  switch (selection->target) {
  case V4L2_SEL_TGT_CROP: break;
  case V4L2_SEL_TGT_CROP_BOUNDS:
  case V4L2_SEL_TGT_CROP_DEFAULT:
    if (request == VIDIOC_S_SELECTION) return -EINVAL;
    selection->r = whole(node);
    return 0;
  default: return -EINVAL;
  }
  if (request == VIDIOC_G_SELECTION) {
    selection->r = is_cropped ? node->crop : whole(node);
    return 0;
  }
  switch (node->options.crop) {
  case 2:
    // Without a scaler, frames have the size of the crop, which buffers in use do not allow.
    if (node->buffer_count > 0) return -EBUSY;
    break;
  case 3: selection->r = whole(node); break;
  }
  node->crop = nearest(node, selection->r);
  selection->r = node->crop;
  return 0;
}
