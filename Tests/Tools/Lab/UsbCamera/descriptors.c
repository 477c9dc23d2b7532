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

/// The packet sizes of the alternate settings; bits 11 and 12 are the further packets a microframe.
const uint16_t alternates[ALTERNATES] = {192, 512, 1024, 0x0C00, 0x1400};

uint32_t bytes_of(uint16_t packet_size) {
  return (packet_size & 0x7FFu) * (1u + (packet_size >> 11 & 3u));
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

/// Writes an endpoint, with the companion that super speed requires.
static void put_endpoint(
  writer *out, const options *options, uint8_t address, uint8_t kind, uint16_t size, uint8_t interval
) {
  bool is_super = options->is_super_speed;
  uint32_t bytes = bytes_of(size);
  PUT(out, 7, 5, address, kind, TWO(is_super && kind != 3 ? (bytes < 1024 ? bytes : 1024) : size), interval);
  if (!is_super) return;
  bool is_periodic = kind != 2;
  uint8_t burst = kind == 5 && bytes > 1024 ? (uint8_t)(bytes / 1024 - 1) : 0;
  PUT(out, 6, 0x30, burst, 0, TWO(is_periodic ? bytes : 0));
}

static void put_format(writer *out, const options *options) {
  uint32_t size = options->width * options->height * 2;
  PUT(out, 11, 0x24, 0x06, FORMAT_MJPEG, 1, 1, 1, 0, 0, 0, 0);
  PUT(out, 26 + 4 * RATES, 0x24, 0x07, 1, 0, TWO(options->width), TWO(options->height),
    FOUR(size * 8), FOUR(size * 8 * 30), FOUR(size), FOUR(intervals[RATES - 1]), RATES);
  for (int index = 0; index < RATES; index++) PUT(out, FOUR(intervals[index]));
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

uint32_t configuration_descriptor(const options *options, uint8_t *to) {
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
  uint16_t formats = 11 + 26 + 4 * RATES + 6;
  PUT(&out, 14, 0x24, 0x01, 1, TWO(14 + formats), 0x80 | VIDEO_ENDPOINT, 0, OUTPUT_TERMINAL, 0, 0, 0, 1, 0);
  put_format(&out, options);
  if (options->is_bulk) {
    put_endpoint(&out, options, 0x80 | VIDEO_ENDPOINT, 2, options->is_super_speed ? 1024 : BULK_PACKET, 0);
  } else {
    for (uint8_t index = 0; index < ALTERNATES; index++) {
      PUT(&out, 9, 4, STREAM_INTERFACE, index + 1, 1, 0x0E, 2, 0, 0);
      put_endpoint(&out, options, 0x80 | VIDEO_ENDPOINT, 5, alternates[index], 1);
    }
  }
  put_microphone(&out, options);
  to[2] = (uint8_t)out.count;
  to[3] = (uint8_t)(out.count >> 8);
  return out.count;
}
