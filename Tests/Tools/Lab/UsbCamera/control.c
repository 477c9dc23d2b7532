// SPDX-License-Identifier: Apache-2.0
// Control requests: those of USB, and those of USB Video Class to the camera's controls and its stream.
#include "model.h"

#include <errno.h>
#include <string.h>

enum {
  // bRequest of standard requests.
  GET_STATUS = 0, CLEAR_FEATURE = 1, SET_FEATURE = 3, GET_DESCRIPTOR = 6, GET_CONFIGURATION = 8,
  SET_CONFIGURATION = 9, GET_INTERFACE = 10, SET_INTERFACE = 11, SET_SEL = 0x30, SET_ISOCH_DELAY = 0x31,
  // bRequest of class requests.
  SET_CUR = 0x01, GET_CUR = 0x81, GET_MIN = 0x82, GET_MAX = 0x83, GET_RES = 0x84, GET_LEN = 0x85,
  GET_INFO = 0x86, GET_DEF = 0x87,
  // Selectors of the streaming interface.
  PROBE = 1, COMMIT = 2,
  // The index in the list of controls.
  EXPOSURE = 2,
};

/// A control of a terminal or unit, of one to four bytes.
typedef struct {
  uint8_t unit, selector, size;
  int32_t least, most, step, usual, value;
} camera_control;

/// Automatic exposure by aperture, its priority, the exposure in units of 100 us, and brightness.
static camera_control controls[] = {
  {CAMERA_TERMINAL, 0x02, 1, 1, 8, 9, 8, 8},
  {CAMERA_TERMINAL, 0x03, 1, 0, 1, 1, 0, 0},
  {CAMERA_TERMINAL, 0x04, 4, 1, 333, 1, 20, 20},
  {PROCESSING_UNIT, 0x02, 2, 0, 255, 1, 128, 128},
};

static void write_little(uint8_t *to, uint32_t value, uint32_t size) {
  for (uint32_t index = 0; index < size; index++) to[index] = (uint8_t)(value >> (8 * index));
}

static uint32_t read_little(const uint8_t *from, uint32_t size) {
  uint32_t value = 0;
  for (uint32_t index = 0; index < size; index++) value |= (uint32_t)from[index] << (8 * index);
  return value;
}

/// The exposure that the camera has chosen: it grows for a while after it was first read.
static int32_t chosen_exposure(camera *camera, const camera_control *control) {
  int64_t time = now();
  if (camera->adjusting_since == 0) camera->adjusting_since = time;
  int64_t passed = (time - camera->adjusting_since) / 1000000;
  if (passed > camera->options.adjusting_time) passed = camera->options.adjusting_time;
  return control->value + (int32_t)(passed / 10);
}

static int32_t answer_camera_control(
  camera *camera, uint8_t unit, uint8_t selector, uint8_t request, uint8_t *data
) {
  for (size_t index = 0; index < sizeof controls / sizeof *controls; index++) {
    camera_control *control = &controls[index];
    if (control->unit != unit || control->selector != selector) continue;
    int32_t value = control->value;
    bool is_adjusted = control == &controls[EXPOSURE] && camera->options.adjusting_time > 0;
    if (is_adjusted && request == GET_CUR) value = chosen_exposure(camera, control);
    switch (request) {
    case SET_CUR:
      control->value = (int32_t)read_little(data, control->size);
      return control->size;
    // Readable, writable, and changed by the camera itself.
    case GET_INFO: data[0] = is_adjusted ? 0x0B : 0x03; return 1;
    case GET_LEN: write_little(data, control->size, 2); return 2;
    case GET_MIN: value = control->least; break;
    case GET_MAX: value = control->most; break;
    case GET_RES: value = control->step; break;
    case GET_DEF: value = control->usual; break;
    default: break;
    }
    write_little(data, (uint32_t)value, control->size);
    return control->size;
  }
  return -EPIPE;
}

/// Completes the parameters of a stream that the host proposes.
static void negotiate(const camera *camera, uint8_t *parameters) {
  const options *options = &camera->options;
  uint32_t wanted = read_little(parameters + 4, 4), nearest = intervals[0];
  for (int index = 0; index < RATES; index++) {
    int64_t distance = (int64_t)intervals[index] - wanted, best = (int64_t)nearest - wanted;
    if (distance * distance < best * best) nearest = intervals[index];
  }
  uint32_t size = options->width * options->height * 2;
  uint32_t payload = size;
  if (!options->is_bulk) {
    // The smallest alternate setting whose packets carry a frame in nine tenths of its duration.
    uint32_t microframes = nearest / 1250 * 9 / 10;
    for (int index = 0; index < ALTERNATES; index++) {
      payload = bytes_of(alternates[index]);
      if (microframes * (payload - 2) >= options->bytes) break;
    }
  }
  memset(parameters + 8, 0, 26);
  parameters[2] = FORMAT_MJPEG;
  parameters[3] = 1;
  write_little(parameters + 4, nearest, 4);
  write_little(parameters + 18, size, 4);
  write_little(parameters + 22, payload, 4);
  write_little(parameters + 26, 1000000, 4);
  parameters[30] = 3;
}

static int32_t answer_stream_control(camera *camera, uint8_t selector, uint8_t request, uint8_t *data) {
  uint32_t size = sizeof camera->parameters;
  if (selector != PROBE && selector != COMMIT) return -EPIPE;
  switch (request) {
  case SET_CUR:
    memcpy(camera->parameters, data, size);
    negotiate(camera, camera->parameters);
    return (int32_t)size;
  case GET_INFO: data[0] = 3; return 1;
  case GET_LEN: write_little(data, size, 2); return 2;
  case GET_MIN:
  case GET_MAX:
  case GET_DEF:
    memcpy(data, camera->parameters, size);
    write_little(data + 4, request == GET_MAX ? intervals[RATES - 1] : intervals[0], 4);
    negotiate(camera, data);
    return (int32_t)size;
  case GET_CUR:
    memcpy(data, camera->parameters, size);
    negotiate(camera, data);
    return (int32_t)size;
  default: return -EPIPE;
  }
}

static int32_t answer_descriptor(const camera *camera, uint8_t kind, uint8_t index, uint8_t *data) {
  uint32_t count = 0;
  switch (kind) {
  case 1: count = device_descriptor(&camera->options, data); break;
  case 2: count = configuration_descriptor(&camera->options, data); break;
  case 3: count = string_descriptor(&camera->options, index, data); break;
  case 15: count = camera->options.is_super_speed ? bos_descriptor(data) : 0; break;
  default: break;
  }
  return count > 0 ? (int32_t)count : -EPIPE;
}

int32_t answer_control(camera *camera, const uint8_t setup[8], uint8_t *data) {
  uint8_t request = setup[1];
  uint8_t low = setup[2], high = setup[3], interface = setup[4], entity = setup[5];
  if ((setup[0] & 0x60) == 0x20) {
    if ((setup[0] & 0x1F) == 2 || interface == AUDIO_CONTROL_INTERFACE) {
      return answer_audio_control(camera, setup, data);
    }
    if (interface == STREAM_INTERFACE) return answer_stream_control(camera, high, request, data);
    return answer_camera_control(camera, entity, high, request, data);
  }
  switch (request) {
  case GET_DESCRIPTOR: return answer_descriptor(camera, high, low, data);
  case GET_STATUS: write_little(data, 0, 2); return 2;
  case GET_CONFIGURATION: data[0] = 1; return 1;
  case GET_INTERFACE: data[0] = interface == STREAM_INTERFACE ? camera->alternate : 0; return 1;
  case SET_INTERFACE:
    if (interface == STREAM_INTERFACE) {
      camera->alternate = low;
      if (low == 0) stop_stream(camera);
    }
    if (interface == AUDIO_STREAM_INTERFACE && low == 1) start_audio(camera);
    return 0;
  case CLEAR_FEATURE:
    // The driver ends a bulk stream with this request for the endpoint.
    if ((setup[0] & 0x1F) == 2 && camera->options.is_bulk) stop_stream(camera);
    return 0;
  case SET_FEATURE:
  case SET_CONFIGURATION:
  case SET_SEL:
  case SET_ISOCH_DELAY: return 0;
  default: return -EPIPE;
  }
}
