// SPDX-License-Identifier: Apache-2.0
// The frames: an image with its number in each format, or the frames of an H.264 stream in order.
#include "model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint8_t *make_gray_jpeg(
  uint32_t width, uint32_t height, uint32_t bytes, uint32_t *length, uint32_t *number);

/// The digits of a frame number.
enum { DIGITS = 8 };

bool read_h264(camera *camera, const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return false;
  long size = ftell(file);
  rewind(file);
  camera->h264 = malloc((size_t)size + 1);
  camera->h264_offsets = calloc((size_t)size / 6 + 2, sizeof(uint32_t));
  if (camera->h264 == NULL || camera->h264_offsets == NULL) return false;
  uint32_t length = (uint32_t)fread(camera->h264, 1, (size_t)size, file);
  fclose(file);
  for (uint32_t at = 0; at + 6 <= length; at++) {
    // Each frame begins with a delimiter.
    if (memcmp(camera->h264 + at, "\0\0\0\1\x09", 5) != 0) continue;
    camera->h264_offsets[camera->h264_count++] = at;
  }
  camera->h264_offsets[camera->h264_count] = length;
  return camera->h264_count > 0;
}

uint32_t largest_image(const camera *camera, mode mode) {
  uint32_t pixels = mode.width * mode.height, largest = 0;
  switch (mode.format) {
  case FORMAT_MJPEG: return camera->options.bytes;
  case FORMAT_YUYV: return pixels * 2;
  case FORMAT_BAYER: return pixels;
  case FORMAT_H264:
    for (uint32_t index = 0; index < camera->h264_count; index++) {
      uint32_t length = camera->h264_offsets[index + 1] - camera->h264_offsets[index];
      if (length > largest) largest = length;
    }
  }
  return largest;
}

void begin_images(camera *camera) {
  mode mode = camera->mode;
  bool is_same = camera->image != NULL && camera->image_mode.format == mode.format
    && camera->image_mode.width == mode.width;
  if (is_same || mode.format == FORMAT_H264) return;
  camera->image_mode = mode;
  free(camera->image);
  if (mode.format == FORMAT_MJPEG) {
    camera->image = make_gray_jpeg(
      mode.width, mode.height, camera->options.bytes, &camera->image_length, &camera->image_number);
  } else {
    camera->image_length = largest_image(camera, mode);
    camera->image_number = 0;
    camera->image = malloc(camera->image_length);
    if (camera->image != NULL) memset(camera->image, 0x80, camera->image_length);
  }
  if (camera->image == NULL) abort();
}

void number_image(camera *camera, frame *frame) {
  if (camera->mode.format == FORMAT_H264) {
    // Each stream starts with the first frame, which is a key frame.
    uint32_t index = (uint32_t)((frame->number - camera->first_number) % camera->h264_count);
    frame->bytes = camera->h264 + camera->h264_offsets[index];
    frame->image_length = camera->h264_offsets[index + 1] - camera->h264_offsets[index];
    return;
  }
  char digits[DIGITS + 1];
  snprintf(digits, sizeof digits, "%0*" PRId64, DIGITS, frame->number);
  // In YUYV, the digits are the first samples of luma.
  uint32_t step = camera->mode.format == FORMAT_YUYV ? 2 : 1;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    camera->image[camera->image_number + digit * step] = (uint8_t)digits[digit];
  }
  frame->bytes = camera->image;
  frame->image_length = camera->image_length;
}
