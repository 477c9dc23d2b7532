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
    // Readable, writable, and changed by the camera itself, which may report its changes.
    case GET_INFO:
      data[0] = (uint8_t)(0x03 | (is_adjusted ? camera->options.sends_events ? 0x10 : 0x08 : 0));
      return 1;
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

int64_t run_status(camera *camera) {
  if (!camera->options.sends_events) return INT64_MAX;
  const camera_control *exposure = &controls[EXPOSURE];
  for (urb *urb; (urb = first_urb(camera, STATUS_ENDPOINT)) != NULL;) {
    int32_t value = chosen_exposure(camera, exposure);
    if (value == camera->reported_exposure) {
      int64_t passed = (now() - camera->adjusting_since) / 1000000;
      if (passed >= camera->options.adjusting_time) return INT64_MAX;
      return camera->adjusting_since + (passed / 10 + 1) * 10000000;
    }
    // The value of a control of the camera terminal has changed.
    uint8_t event[9] = {1, exposure->unit, 0, exposure->selector, 0};
    write_little(event + 5, (uint32_t)value, 4);
    camera->reported_exposure = value;
    complete(camera, urb, 0, event, sizeof event, NULL, NULL);
  }
  return INT64_MAX;
}

/// The mode that parameters of a stream describe.
static mode mode_of(const camera *camera, const uint8_t *parameters) {
  return find_mode(camera, parameters[2], parameters[3], read_little(parameters + 4, 4));
}

/// Completes the parameters of a stream that the host proposes.
static void negotiate(const camera *camera, uint8_t *parameters) {
  const options *options = &camera->options;
  mode mode = mode_of(camera, parameters);
  uint32_t size = mode.width * mode.height * 2;
  // A bulk payload is never so long, so that a short request ends it.
  uint32_t payload = size + 32768;
  if (!options->is_bulk) {
    // The smallest alternate setting whose packets carry a frame in nine tenths of its duration.
    uint32_t microframes = mode.interval / 1250 * 9 / 10;
    for (int index = 0; index < ALTERNATES; index++) {
      payload = alternate_bytes(options, index);
      if (microframes * (payload - 2) >= largest_image(camera, mode)) break;
    }
  }
  memset(parameters + 8, 0, 26);
  parameters[2] = (uint8_t)mode.format;
  parameters[3] = mode.width == 320 ? 2 : 1;
  write_little(parameters + 4, mode.interval, 4);
  write_little(parameters + 18, size, 4);
  write_little(parameters + 22, payload, 4);
  write_little(parameters + 26, 1000000, 4);
  parameters[30] = 3;
}

static int32_t answer_stream_control(camera *camera, uint8_t selector, uint8_t request, uint8_t *data) {
  uint32_t size = sizeof camera->parameters;
  if (selector != PROBE && selector != COMMIT) return -EPIPE;
  switch (request) {
  case SET_CUR: {
    int32_t error = selector == PROBE ? camera->options.probe_error : camera->options.commit_error;
    if (error != 0) return -error;
    memcpy(camera->parameters, data, size);
    negotiate(camera, camera->parameters);
    if (selector == COMMIT) camera->mode = mode_of(camera, camera->parameters);
    return (int32_t)size;
  }
  case GET_INFO: data[0] = 3; return 1;
  case GET_LEN: write_little(data, size, 2); return 2;
  case GET_MIN:
  case GET_MAX:
  case GET_DEF:
    memcpy(data, camera->parameters, size);
    // The nearest interval is used.
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
  case 2:
    count = camera->options.is_ps3_eye ? ps3_eye_configuration(data) : configuration_descriptor(camera, data);
    break;
  case 3: count = string_descriptor(&camera->options, index, data); break;
  case 15: count = camera->options.is_super_speed ? bos_descriptor(data) : 0; break;
  default: break;
  }
  return count > 0 ? (int32_t)count : -EPIPE;
}

int32_t answer_control(camera *camera, const uint8_t setup[8], uint8_t *data) {
  uint8_t request = setup[1];
  uint8_t low = setup[2], high = setup[3], interface = setup[4], entity = setup[5];
  if ((setup[0] & 0x60) == 0x40) return answer_register(camera, setup, data);
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
      // A bus whose time is used up refuses the alternate setting.
      if (low > ALTERNATES) return -EPIPE;
      if (low > 0 && alternate_bytes(&camera->options, low - 1) > camera->options.bandwidth) return -ENOSPC;
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
