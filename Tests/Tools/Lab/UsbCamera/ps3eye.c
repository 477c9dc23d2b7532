// SPDX-License-Identifier: Apache-2.0
// The PS3 Eye, with the registers of its bridge OV534 and its sensor OV7720 as far as the kernel's
// gspca_ov534 uses them. Its microphones are left out.
#include "model.h"

#include <errno.h>
#include <string.h>

enum {
  PAYLOAD = 2048, HEADER = 12,
  // Registers of the bridge.
  COLUMNS = 0xC0, ROWS = 0xC1, INPUT_FORMAT = 0xC2, STREAM = 0xE0, CLOCK = 0xE5,
  SENSOR_ADDRESS = 0xF2, SENSOR_WRITE = 0xF3, SENSOR_READ = 0xF4, OPERATION = 0xF5, STATUS = 0xF6,
  // Registers of the sensor.
  PRODUCT_HIGH = 0x0A, PRODUCT_LOW = 0x0B, DIVIDER = 0x11, MULTIPLIER = 0x0D,
};

static uint8_t bridge[256], sensor[256] = {[PRODUCT_HIGH] = 0x77, [PRODUCT_LOW] = 0x21};

uint32_t ps3_eye_configuration(uint8_t *to) {
  // One vendor-specific interface with a bulk endpoint.
  static const uint8_t bytes[] = {
    9, 2, 25, 0, 1, 1, 0, 0x80, 250, 9, 4, 0, 0, 1, 0xFF, 0, 0, 0, 7, 5, 0x80 | VIDEO_ENDPOINT, 2, 0, 2, 0,
  };
  memcpy(to, bytes, sizeof bytes);
  return sizeof bytes;
}

/// The rate of which the driver chose the registers.
static uint32_t chosen_rate(bool is_small) {
  static const struct {
    uint8_t divider, multiplier, clock, small, large;
  } rates[] = {
    {0x01, 0x81, 0x02, 187, 0}, {0x01, 0xC1, 0x04, 150, 60}, {0x02, 0xC1, 0x02, 137, 0},
    {0x02, 0x81, 0x02, 125, 0}, {0x02, 0xC1, 0x04, 100, 40}, {0x03, 0xC1, 0x04, 75, 0},
    {0x04, 0xC1, 0x04, 60, 0},  {0x02, 0x41, 0x04, 50, 0},   {0x03, 0x41, 0x04, 37, 15},
    {0x04, 0x41, 0x04, 30, 0},  {0x01, 0x41, 0x02, 0, 50},   {0x04, 0x81, 0x02, 0, 30},
  };
  for (size_t index = 0; index < sizeof rates / sizeof *rates; index++) {
    if (rates[index].divider == sensor[DIVIDER] && rates[index].multiplier == sensor[MULTIPLIER]
      && rates[index].clock == bridge[CLOCK]) {
      return is_small ? rates[index].small : rates[index].large;
    }
  }
  return 0;
}

int32_t answer_register(camera *camera, const uint8_t setup[8], uint8_t *data) {
  if (!camera->options.is_ps3_eye) return -EPIPE;
  uint8_t address = setup[4];
  if ((setup[0] & 0x80) != 0) {
    data[0] = address == STATUS ? 0 : bridge[address];
    return 1;
  }
  bridge[address] = data[0];
  if (address == OPERATION && data[0] == 0x37) sensor[bridge[SENSOR_ADDRESS]] = bridge[SENSOR_WRITE];
  if (address == OPERATION && data[0] == 0xF9) bridge[SENSOR_READ] = sensor[bridge[SENSOR_ADDRESS]];
  if (address != STREAM) return 1;
  if (data[0] != 0) {
    stop_stream(camera);
    return 1;
  }
  uint32_t width = bridge[COLUMNS] * 8u, height = bridge[ROWS] * 8u, rate = chosen_rate(width == 320);
  if (rate == 0) return -EPIPE;
  camera->mode = (mode){
    bridge[INPUT_FORMAT] == 0x0C ? FORMAT_YUYV : FORMAT_BAYER, width, height, 10000000 / rate,
  };
  return 1;
}

uint32_t ps3_eye_count(uint32_t left, uint32_t space) {
  uint32_t whole = left / (PAYLOAD - HEADER), rest = left % (PAYLOAD - HEADER);
  uint32_t count = whole * PAYLOAD + (rest > 0 ? HEADER + rest : 0);
  return count < space ? count : space / PAYLOAD * PAYLOAD;
}

void fill_ps3_eye(camera *camera, uint8_t flags, uint8_t *to, uint32_t count) {
  frame *frame = &camera->frame;
  for (uint32_t done = 0; done < count;) {
    uint32_t part = count - done < PAYLOAD ? count - done : PAYLOAD;
    // A frame begins with another time, which is never 0.
    uint32_t time = (uint32_t)frame->number + 1;
    uint8_t header[HEADER] = {HEADER, (uint8_t)((flags & ~END_OF_FRAME) | HAS_TIME)};
    for (int byte = 0; byte < 4; byte++) header[2 + byte] = (uint8_t)(time >> (8 * byte));
    put_frame(camera, to + done + HEADER, part - HEADER);
    if (frame->sent >= frame->length) header[1] |= flags & END_OF_FRAME;
    memcpy(to + done, header, HEADER);
    done += part;
  }
}
