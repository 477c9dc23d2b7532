// SPDX-License-Identifier: Apache-2.0
// What a configuration may say of a device: "seed=7 loss=2% jitter=0.2 unplug=300".
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fault_names[FAULT_COUNT] = {
  "loss", "silent", "double", "lategap", "reset", "repeat", "backwards", "late", "clockwrap",
  "error", "short", "truncated", "stall",
};

static const char *const failure_names[4] = {
  "reqbufs-fails", "qbuf-fails", "dqbuf-fails", "streamon-fails"};

/// Sets one option; false where there is none of this name.
static bool set_option(device_options *options, const char *name, double value) {
  for (int kind = 0; kind < FAULT_COUNT; kind++)
    if (strcmp(name, fault_names[kind]) == 0) return options->faults[kind] = value, true;
  for (int kind = 0; kind < 4; kind++)
    if (strcmp(name, failure_names[kind]) == 0) return options->fail_at[kind] = (int64_t)value, true;
  if (strcmp(name, "faults") == 0) {
    for (int kind = 0; kind < FAULT_COUNT; kind++) options->faults[kind] = value;
  } else if (strcmp(name, "seed") == 0) {
    options->seed = (uint64_t)value;
  } else if (strcmp(name, "apart") == 0) {
    options->apart = value < 1 ? 1 : (int64_t)value;
  } else if (strcmp(name, "jitter") == 0) {
    options->jitter = value;
  } else if (strcmp(name, "sequence0") == 0) {
    options->first_sequence = (uint32_t)value;
  } else if (strcmp(name, "start") == 0) {
    options->lost_at_start = (uint32_t)value;
  } else if (strcmp(name, "lie") == 0) {
    options->lie = value;
  } else if (strcmp(name, "dark") == 0) {
    options->dark = (int)value;
  } else if (strcmp(name, "unplug") == 0) {
    options->unplug = (int64_t)value;
  } else if (strcmp(name, "rateswap") == 0) {
    options->rate_swap = (int64_t)value;
  } else if (strcmp(name, "busy") == 0) {
    options->busy = value != 0;
  } else if (strcmp(name, "nobandwidth") == 0) {
    options->no_bandwidth = value != 0;
  } else if (strcmp(name, "abortcall") == 0) {
    options->abort_call = (int64_t)value;
  } else if (strcmp(name, "mjpegbytes") == 0) {
    options->mjpeg_bytes = (uint32_t)value;
  } else {
    return false;
  }
  return true;
}

bool parse_options(
  const char *text, size_t length, device_options *options, char *error, size_t size
) {
  *options = (device_options){.seed = 1, .apart = 12, .mjpeg_bytes = 102400};
  char copy[512];
  if (length >= sizeof copy) return snprintf(error, size, "too many options"), false;
  memcpy(copy, text, length);
  copy[length] = 0;
  char *rest = NULL;
  for (char *word = strtok_r(copy, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
    char *equals = strchr(word, '=');
    if (equals == NULL) return snprintf(error, size, "\"%s\" is no KEY=VALUE", word), false;
    *equals = 0;
    char *end = NULL;
    double value = strtod(equals + 1, &end);
    if (*end == '%') value /= 100, end++;
    if (end == equals + 1 || *end != 0)
      return snprintf(error, size, "\"%s\" is no number", equals + 1), false;
    if (!set_option(options, word, value))
      return snprintf(error, size, "there is no option \"%s\"", word), false;
  }
  return true;
}
