// SPDX-License-Identifier: Apache-2.0
// The tuner of a TV card, as far as programs require one.
#include "model.h"

#include <errno.h>
#include <string.h>

// Frequency limits in units of 62.5 kHz: 44 to 958 MHz.
enum { LOWEST = 44 * 16, HIGHEST = 958 * 16 };

static int report_tuner(struct v4l2_tuner *answer) {
  if (answer->index != 0) return -EINVAL;
  memset(answer, 0, sizeof *answer);
  strncpy((char *)answer->name, "Television", sizeof answer->name - 1);
  answer->type = V4L2_TUNER_ANALOG_TV;
  answer->capability = V4L2_TUNER_CAP_NORM | V4L2_TUNER_CAP_FREQ_BANDS;
  answer->rangelow = LOWEST;
  answer->rangehigh = HIGHEST;
  answer->rxsubchans = V4L2_TUNER_SUB_MONO;
  answer->signal = 0xFFFF;
  return 0;
}

static int report_band(struct v4l2_frequency_band *answer) {
  if (answer->tuner != 0 || answer->type != V4L2_TUNER_ANALOG_TV || answer->index != 0)
    return -EINVAL;
  answer->capability = V4L2_TUNER_CAP_NORM | V4L2_TUNER_CAP_FREQ_BANDS;
  answer->rangelow = LOWEST;
  answer->rangehigh = HIGHEST;
  answer->modulation = V4L2_BAND_MODULATION_VSB;
  memset(answer->reserved, 0, sizeof answer->reserved);
  return 0;
}

static int set_frequency(device_node *node, const struct v4l2_frequency *wish) {
  if (wish->tuner != 0 || wish->type != V4L2_TUNER_ANALOG_TV) return -EINVAL;
  uint32_t frequency = wish->frequency;
  if (frequency < LOWEST) frequency = LOWEST;
  node->frequency = frequency > HIGHEST ? HIGHEST : frequency;
  return 0;
}

int tuner_request(device_node *node, int handle, unsigned long request, void *argument) {
  (void)handle;
  if (!(node->kind->capabilities & V4L2_CAP_TUNER)) return -ENOTTY;
  struct v4l2_frequency *frequency = argument;
  switch (request) {
  case VIDIOC_G_TUNER: return report_tuner(argument);
  case VIDIOC_S_TUNER: return ((struct v4l2_tuner *)argument)->index == 0 ? 0 : -EINVAL;
  case VIDIOC_ENUM_FREQ_BANDS: return report_band(argument);
  case VIDIOC_S_FREQUENCY: return set_frequency(node, frequency);
  case VIDIOC_G_FREQUENCY:
    if (frequency->tuner != 0) return -EINVAL;
    frequency->type = V4L2_TUNER_ANALOG_TV;
    frequency->frequency = node->frequency > 0 ? node->frequency : LOWEST;
    memset(frequency->reserved, 0, sizeof frequency->reserved);
    return 0;
  default: return -ENOTTY;
  }
}
