// SPDX-License-Identifier: Apache-2.0
// The descriptors of the camera: USB 2.0 or 3.0, and USB Video Class 1.10.
#include "model.h"

#include <string.h>

/// The frame durations in units of 100 ns: 480, 330, 300, 260, 250, 240, 210, 200, 187, 150, 120, 100,
/// 90, 60, 50 and 30 fps.
const uint32_t intervals[RATES] = {
  20833, 30303, 33333, 38462, 40000, 41667, 47619, 50000,
  53476, 66667, 83333, 100000, 111111, 166667, 200000, 333333,
};

uint32_t alternate_bytes(const options *options, int index) {
  static const uint32_t high[ALTERNATES] = {192, 512, 1024, 2048, 3072};
  static const uint32_t super[ALTERNATES] = {1024, 4096, 16384, 32768, 49152};
  return options->is_super_speed ? super[index] : high[index];
}

/// A size of a format. The rates are those from the given one on, of a high-speed and a super-speed bus.
typedef struct {
  uint8_t format, number;
  uint16_t width, height;
  uint8_t first_rate, first_super_rate;
} frame_size;

static const frame_size frame_sizes[] = {
  {FORMAT_MJPEG, 1, 640, 480, 0, 0},
  {FORMAT_MJPEG, 2, 320, 240, 0, 0},
  // A bus carries 30 or 60 of these frames in a second, and 120 or 200 of the small ones.
  {FORMAT_YUYV, 1, 640, 480, 15, 13},
  {FORMAT_YUYV, 2, 320, 240, 10, 7},
  {FORMAT_H264, 1, 640, 480, 0, 0},
};
enum { SIZES = sizeof frame_sizes / sizeof *frame_sizes };

static int first_rate(const options *options, const frame_size *size) {
  return options->is_super_speed ? size->first_super_rate : size->first_rate;
}

/// The number of formats; H.264 is the last one.
static uint8_t format_count(const camera *camera) {
  return camera->h264_count > 0 ? FORMAT_H264 : FORMAT_YUYV;
}

mode find_mode(const camera *camera, uint8_t format, uint8_t frame, uint32_t interval) {
  const frame_size *size = &frame_sizes[0];
  for (int index = 0; index < SIZES; index++) {
    const frame_size *other = &frame_sizes[index];
    if (other->format != format || format > format_count(camera)) continue;
    if (size->format != format || other->number == frame) size = other;
  }
  uint32_t nearest = intervals[RATES - 1];
  for (int index = first_rate(&camera->options, size); index < RATES; index++) {
    int64_t distance = (int64_t)intervals[index] - interval, best = (int64_t)nearest - interval;
    if (distance * distance < best * best) nearest = intervals[index];
  }
  return (mode){(format_kind)size->format, size->width, size->height, nearest};
}

typedef struct {
  uint8_t *bytes;
  uint32_t count;
} writer;

static void put(writer *writer, const uint8_t *bytes, uint32_t count) {
  memcpy(writer->bytes + writer->count, bytes, count);
  writer->count += count;
}

#define PUT(writer, ...) put(writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define TWO(value) (uint8_t)(value), (uint8_t)((value) >> 8)
#define FOUR(value) TWO((uint32_t)(value)), TWO((uint32_t)(value) >> 16)

uint32_t device_descriptor(const options *options, uint8_t *to) {
  writer out = {to, 0};
  if (options->is_ps3_eye) {
    PUT(&out, 18, 1, TWO(0x0200), 0, 0, 0, 64, TWO(0x1415), TWO(0x2000), TWO(0x0200), 1, 2, 0, 1);
    return out.count;
  }
  PUT(&out, 18, 1, 0, options->is_super_speed ? 3 : 2, 0xEF, 2, 1, options->is_super_speed ? 9 : 64,
    TWO(0x1209), TWO(0x0001), TWO(0x0100), 1, 2, options->serial[0] != 0 ? 3 : 0, 1);
  return out.count;
}

uint32_t string_descriptor(const options *options, uint8_t index, uint8_t *to) {
  const char *const texts[] = {NULL, "Overcrank", "Emulated Camera", options->serial};
  writer out = {to, 0};
  if (index == 0) {
    PUT(&out, 4, 3, 0x09, 0x04);
    return out.count;
  }
  if (index >= sizeof texts / sizeof *texts) return 0;
  PUT(&out, (uint8_t)(2 + 2 * strlen(texts[index])), 3);
  for (const char *at = texts[index]; *at != 0; at++) PUT(&out, (uint8_t)*at, 0);
  return out.count;
}

uint32_t bos_descriptor(uint8_t *to) {
  writer out = {to, 0};
  PUT(&out, 5, 15, TWO(22), 2);
  PUT(&out, 7, 16, 2, FOUR(2));
  PUT(&out, 10, 16, 3, 0, TWO(0x0E), 3, 0, TWO(0));
  return out.count;
}

/// Writes an endpoint of so many bytes a packet or microframe, with the companion of super speed.
static void put_endpoint(
  writer *out, const options *options, uint8_t address, uint8_t kind, uint32_t bytes, uint8_t interval
) {
  // The packets of a microframe: up to 3 at high speed, and up to 3 bursts of 16 at super speed.
  uint32_t size = bytes < 1024 ? bytes : 1024, packets = bytes / size;
  bool is_super = options->is_super_speed;
  if (!is_super) size |= (packets - 1) << 11;
  PUT(out, 7, 5, address, kind, TWO(size), interval);
  if (!is_super) return;
  uint32_t bursts = (packets + 15) / 16;
  PUT(out, 6, 0x30, (uint8_t)(packets / bursts - 1), (uint8_t)(bursts - 1), TWO(kind != 2 ? bytes : 0));
}

/// Writes a format with its sizes.
static void put_format(writer *out, const camera *camera, uint8_t format) {
  uint8_t sizes = 0;
  for (int index = 0; index < SIZES; index++) sizes += frame_sizes[index].format == format;
  if (format == FORMAT_MJPEG) {
    PUT(out, 11, 0x24, 0x06, format, sizes, 1, 1, 0, 0, 0, 0);
  } else {
    bool is_h264 = format == FORMAT_H264;
    PUT(out, is_h264 ? 28 : 27, 0x24, is_h264 ? 0x10 : 0x04, format, sizes);
    put(out, (const uint8_t *)(is_h264 ? "H264" : "YUY2"), 4);
    PUT(out, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71, 16, 1, 0, 0, 0, 0);
    if (is_h264) PUT(out, 1);
  }
  for (int index = 0; index < SIZES; index++) {
    const frame_size *size = &frame_sizes[index];
    if (size->format != format) continue;
    int first = first_rate(&camera->options, size);
    uint32_t bytes = size->width * size->height * 2u;
    uint8_t kind = format == FORMAT_MJPEG ? 0x07 : format == FORMAT_YUYV ? 0x05 : 0x11;
    PUT(out, (uint8_t)(26 + 4 * (RATES - first)), 0x24, kind, size->number, 0, TWO(size->width),
      TWO(size->height), FOUR(bytes * 8), FOUR(bytes * 8 * 30));
    // A frame of H.264 has no greatest size here; the number of bytes of a row is 0 instead.
    if (format != FORMAT_H264) PUT(out, FOUR(bytes));
    PUT(out, FOUR(intervals[RATES - 1]), (uint8_t)(RATES - first));
    if (format == FORMAT_H264) PUT(out, FOUR(0));
    for (int rate = first; rate < RATES; rate++) PUT(out, FOUR(intervals[rate]));
  }
  PUT(out, 6, 0x24, 0x0D, 1, 1, 4);
}

/// Writes the interfaces of the microphone: USB Audio Class 1.0 with 44100 or 48000 samples per second.
static void put_microphone(writer *out, const options *options) {
  PUT(out, 8, 0x0B, AUDIO_CONTROL_INTERFACE, 2, 0x01, 1, 0, 0);
  PUT(out, 9, 4, AUDIO_CONTROL_INTERFACE, 0, 0, 0x01, 1, 0, 0);
  PUT(out, 9, 0x24, 0x01, TWO(0x0100), TWO(9 + 12 + 10 + 9), 1, AUDIO_STREAM_INTERFACE);
  PUT(out, 12, 0x24, 0x02, MICROPHONE_TERMINAL, TWO(0x0201), 0, 2, TWO(3), 0, 0);
  PUT(out, 10, 0x24, 0x06, FEATURE_UNIT, MICROPHONE_TERMINAL, 1, 0x03, 0, 0, 0);
  PUT(out, 9, 0x24, 0x03, AUDIO_OUTPUT_TERMINAL, TWO(0x0101), 0, FEATURE_UNIT, 0);
  PUT(out, 9, 4, AUDIO_STREAM_INTERFACE, 0, 0, 0x01, 2, 0, 0);
  PUT(out, 9, 4, AUDIO_STREAM_INTERFACE, 1, 1, 0x01, 2, 0, 0);
  PUT(out, 7, 0x24, 0x01, AUDIO_OUTPUT_TERMINAL, 1, TWO(1));
  PUT(out, 14, 0x24, 0x02, 1, 2, 2, 16, 2, 0x44, 0xAC, 0x00, 0x80, 0xBB, 0x00);
  // An asynchronous isochronous endpoint with a packet in each millisecond.
  PUT(out, 9, 5, 0x80 | AUDIO_ENDPOINT, 0x05, TWO(200), 4, 0, 0);
  if (options->is_super_speed) PUT(out, 6, 0x30, 0, 0, TWO(200));
  PUT(out, 7, 0x25, 0x01, 0x01, 0, TWO(0));
}

static void put_length(uint8_t *to, uint32_t length) {
  to[0] = (uint8_t)length;
  to[1] = (uint8_t)(length >> 8);
}

uint32_t configuration_descriptor(const camera *camera, uint8_t *to) {
  const options *options = &camera->options;
  writer out = {to, 0};
  PUT(&out, 9, 2, 0, 0, 4, 1, 0, 0x80, 50);
  PUT(&out, 8, 0x0B, CONTROL_INTERFACE, 2, 0x0E, 3, 0, 2);
  PUT(&out, 9, 4, CONTROL_INTERFACE, 0, 1, 0x0E, 1, 0, 2);
  // The header's length counts all class-specific descriptors of the control interface.
  PUT(&out, 13, 0x24, 0x01, TWO(0x0110), TWO(13 + 18 + 13 + 9), FOUR(1000000), 1, STREAM_INTERFACE);
  PUT(&out, 18, 0x24, 0x02, CAMERA_TERMINAL, TWO(0x0201), 0, 0, TWO(0), TWO(0), TWO(0), 3, 0x0E, 0, 0);
  PUT(&out, 13, 0x24, 0x05, PROCESSING_UNIT, CAMERA_TERMINAL, TWO(0), 3, 0x01, 0, 0, 0, 0);
  PUT(&out, 9, 0x24, 0x03, OUTPUT_TERMINAL, TWO(0x0101), 0, PROCESSING_UNIT, 0);
  put_endpoint(&out, options, 0x80 | STATUS_ENDPOINT, 3, 16, 8);
  PUT(&out, 5, 0x25, 0x03, TWO(16));

  PUT(&out, 9, 4, STREAM_INTERFACE, 0, options->is_bulk ? 1 : 0, 0x0E, 2, 0, 0);
  uint8_t *header = to + out.count, formats = format_count(camera);
  PUT(&out, 13 + formats, 0x24, 0x01, formats, TWO(0), 0x80 | VIDEO_ENDPOINT, 0, OUTPUT_TERMINAL, 0, 0, 0, 1);
  for (uint8_t format = 1; format <= formats; format++) PUT(&out, 0);
  for (uint8_t format = 1; format <= formats; format++) put_format(&out, camera, format);
  put_length(header + 4, (uint32_t)(to + out.count - header));
  if (options->is_bulk) {
    put_endpoint(&out, options, 0x80 | VIDEO_ENDPOINT, 2, options->is_super_speed ? 1024 : BULK_PACKET, 0);
  } else {
    for (uint8_t index = 0; index < ALTERNATES; index++) {
      PUT(&out, 9, 4, STREAM_INTERFACE, index + 1, 1, 0x0E, 2, 0, 0);
      put_endpoint(&out, options, 0x80 | VIDEO_ENDPOINT, 5, alternate_bytes(options, index), 1);
    }
  }
  put_microphone(&out, options);
  put_length(to + 2, out.count);
  return out.count;
}
