// SPDX-License-Identifier: Apache-2.0
// The microphone: USB Audio Class 1, two channels of 16 bits, with a click in each second.
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
  // bRequest of audio class requests.
  SET_CUR = 0x01, GET_MIN = 0x82, GET_RES = 0x84,
  VOLUME = 2, SAMPLE_BYTES = 4,
};

/// The duration of a packet and of a click, and the time between two clicks, in nanoseconds.
static const int64_t MILLISECOND = 1000000, SECOND = 1000000000;

/// The duration between two samples in nanoseconds.
static double sample_duration(const camera *camera) {
  return 1e9 / camera->sample_rate * (1 + camera->options.audio_ppm * 1e-6);
}

/// Audio starts with the first request after this.
void start_audio(camera *camera) {
  camera->audio_time = 0;
  camera->sample_count = 0;
}

void schedule_audio(camera *camera, urb *urb) {
  if (camera->audio_time == 0) {
    camera->audio_start = urb->submitted;
    fprintf(camera->options.log, "audio %" PRId64 "\n", urb->submitted / 1000);
  }
  if (camera->audio_time < urb->submitted) camera->audio_time = urb->submitted;
  camera->audio_time += urb->packets * MILLISECOND;
  urb->end = camera->audio_time;
}

/// Drops the samples that are more than 2 ms too old, because the host requested none for a while.
static void drop_old_samples(camera *camera, int64_t start) {
  int64_t due = (int64_t)((double)(start - camera->audio_start) / sample_duration(camera));
  int64_t lost = due - camera->sample_count;
  if (lost <= camera->sample_rate / 500) return;
  fprintf(camera->options.log, "audio-lost %" PRId64 " %" PRId64 "\n", start / 1000, lost);
  camera->sample_count = due;
}

/// Fills a packet of a millisecond with its samples; returns its number of bytes.
static uint32_t fill_packet(camera *camera, int64_t start, uint32_t space, uint8_t *to) {
  int64_t end = start + MILLISECOND;
  uint32_t bytes = 0;
  drop_old_samples(camera, start);
  while (bytes + SAMPLE_BYTES <= space) {
    double time = (double)camera->sample_count * sample_duration(camera);
    int64_t at = camera->audio_start + (int64_t)time;
    if (at >= end) break;
    int16_t value = at % SECOND < MILLISECOND ? 16000 : 0;
    for (int channel = 0; channel < 2; channel++) {
      to[bytes++] = (uint8_t)value;
      to[bytes++] = (uint8_t)(value >> 8);
    }
    camera->sample_count++;
  }
  return bytes;
}

int64_t run_audio(camera *camera) {
  static uint8_t data[ISO_PACKETS * 1024];
  uint32_t actual[ISO_PACKETS];
  for (urb *urb; (urb = first_urb(camera, AUDIO_ENDPOINT)) != NULL;) {
    if (urb->end > now()) return urb->end;
    int64_t start = urb->end - urb->packets * MILLISECOND;
    uint32_t count = 0;
    for (uint32_t index = 0; index < urb->packets; index++) {
      uint32_t space = urb->lengths[index] < 1024 ? urb->lengths[index] : 1024;
      actual[index] = fill_packet(camera, start + index * MILLISECOND, space, data + count);
      count += actual[index];
    }
    complete(camera, urb, 0, data, count, actual, NULL);
  }
  return INT64_MAX;
}

int32_t answer_audio_control(camera *camera, const uint8_t setup[8], uint8_t *data) {
  uint8_t request = setup[1], selector = setup[3];
  if ((setup[0] & 0x1F) == 2) {
    // The sample rate of the endpoint.
    if (request == SET_CUR) {
      camera->sample_rate = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;
      return 3;
    }
    for (int index = 0; index < 3; index++) data[index] = (uint8_t)(camera->sample_rate >> (8 * index));
    return 3;
  }
  if (setup[5] != FEATURE_UNIT) return -EPIPE;
  // The volume and the mute switch are accepted, and have no effect.
  int32_t size = selector == VOLUME ? 2 : 1;
  if ((setup[0] & 0x80) == 0) return size;
  int16_t value = 0;
  if (selector == VOLUME && request == GET_MIN) value = -0x1000;
  if (selector == VOLUME && request == GET_RES) value = 0x100;
  data[0] = (uint8_t)value;
  data[1] = (uint8_t)(value >> 8);
  return size;
}
