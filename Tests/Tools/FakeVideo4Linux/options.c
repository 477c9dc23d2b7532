// SPDX-License-Identifier: Apache-2.0
// The parser of device options, such as "seed=7 loss=2% jitter=0.2 unplug=300".
#include "model.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// The names of each fault, with an alias.
static const struct {
  const char *name, *other;
} fault_names[FAULT_NONE] = {
  [FAULT_LOSS] = {"loss", "drop"},
  [FAULT_SILENT] = {"silent", "parity"},
  [FAULT_DOUBLE] = {"double", "gap-without-loss"},
  [FAULT_LATE_GAP] = {"lategap", "wrongplace"},
  [FAULT_RESET] = {"reset", NULL},
  [FAULT_REPEAT] = {"repeat", NULL},
  [FAULT_BACKWARDS] = {"backwards", "back"},
  [FAULT_LATE] = {"late", "outlier"},
  [FAULT_CLOCK_WRAP] = {"clockwrap", NULL},
  [FAULT_ERROR] = {"error", NULL},
  [FAULT_SHORT] = {"short", NULL},
  [FAULT_TRUNCATED] = {"truncated", NULL},
  [FAULT_STALL] = {"stall", NULL},
  [FAULT_EIO] = {"eio", NULL},
  [FAULT_UNPLUG] = {"unplug", NULL},
  [FAULT_RATE_SWAP] = {"rateswap", NULL},
  [FAULT_SOURCE_CHANGE] = {"sourcechange", NULL},
};

static bool is_name(const char *text, size_t length, const char *name) {
  return name != NULL && strlen(name) == length && memcmp(text, name, length) == 0;
}

static fault_kind fault_named(const char *text, size_t length) {
  int kind = 0;
  while (kind < FAULT_NONE && !is_name(text, length, fault_names[kind].name)
         && !is_name(text, length, fault_names[kind].other))
    kind++;
  // Further names of a loss without a sequence gap, from discussions of uvcvideo.
  if (is_name(text, length, "paritylost") || is_name(text, length, "noloss-gap"))
    return FAULT_SILENT;
  return (fault_kind)kind;
}

// MARK: - Lists

/// Parses one scheduled fault, such as "100:loss*3"; false for invalid text.
static bool add_scheduled(device_options *options, const char *text, size_t length) {
  if (length == 0 || options->schedule_count == MAX_SCHEDULED) return length == 0;
  char *end = NULL;
  scheduled_fault fault = {.period = strtoll(text, &end, 10)};
  if (end == text || *end != ':') return false;
  const char *name = end + 1;
  size_t rest = length - (size_t)(name - text), count = 0;
  while (count < rest && name[count] != '*') count++;
  fault.kind = fault_named(name, count);
  if (fault.kind == FAULT_NONE) return false;
  if (count < rest) {
    fault.amount = strtoll(name + count + 1, &end, 10);
    if (fault.amount < 1 || end != text + length) return false;
  }
  int place = options->schedule_count++;
  for (; place > 0 && options->schedule[place - 1].period > fault.period; place--)
    options->schedule[place] = options->schedule[place - 1];
  options->schedule[place] = fault;
  return true;
}

/// Parses a failure such as "DQBUF:EIO@100*2": two failures from call 100 on. Without "@" all calls
/// fail, without "*" one call.
static bool add_failure(device_options *options, const char *text, size_t length) {
  if (length == 0 || options->failure_count == MAX_FAILURES) return length == 0;
  size_t colon = 0;
  while (colon < length && text[colon] != ':') colon++;
  scheduled_failure failure = {.request = request_named(text, colon), .first = 1};
  if (colon == length || failure.request == 0) return false;
  const char *name = text + colon + 1, *stop = text + length;
  size_t count = 0;
  while (name + count < stop && name[count] != '@' && name[count] != '*') count++;
  failure.code = error_named(name, count);
  const char *rest = name + count;
  char *end = (char *)rest;
  if (rest < stop && *rest == '@') {
    failure.first = strtoll(rest + 1, &end, 10);
    failure.count = 1;
  }
  if (end < stop && *end == '*') failure.count = strtoll(end + 1, &end, 10);
  if (failure.code == 0 || failure.first < 1 || failure.count < 0 || end != stop) return false;
  options->failures[options->failure_count++] = failure;
  return true;
}

static bool add_each(
  device_options *options, const char *text,
  bool (*add)(device_options *options, const char *text, size_t length)
) {
  for (;;) {
    size_t length = strcspn(text, ",;");
    if (!add(options, text, length)) return false;
    if (text[length] == 0) return true;
    text += length + 1;
  }
}

static int signal_named(const char *text) {
  if (strcmp(text, "none") == 0) return ENOLINK;
  if (strcmp(text, "unlocked") == 0) return ENOLCK;
  if (strcmp(text, "range") == 0) return ERANGE;
  return 0;
}

// MARK: - Numbers

static const char *const failure_names[4] = {
  "reqbufs-fails", "qbuf-fails", "dqbuf-fails", "streamon-fails"};

/// A numeric option and the offset of its field.
typedef struct {
  const char *name;
  enum { REAL, WHOLE, SMALL, PLAIN, TRUTH, LARGE } type;
  size_t place;
} number_option;

#define OPTION(name, type, field) {name, type, offsetof(device_options, field)}

static const number_option numbers[] = {
  OPTION("seed", LARGE, seed), OPTION("apart", WHOLE, apart), OPTION("jitter", REAL, jitter),
  OPTION("sequence0", SMALL, first_sequence), OPTION("start", SMALL, lost_at_start),
  OPTION("lie", REAL, lie), OPTION("dark", PLAIN, dark), OPTION("crop", PLAIN, crop), OPTION("unplug", WHOLE, unplug),
  OPTION("replug", REAL, replug), OPTION("asleep", REAL, asleep),
  OPTION("rateswap", WHOLE, rate_swap),
  OPTION("busy", TRUTH, busy), OPTION("nobandwidth", TRUTH, no_bandwidth),
  OPTION("bandwidth", REAL, bandwidth), OPTION("abortcall", WHOLE, abort_call),
  OPTION("mjpegbytes", SMALL, mjpeg_bytes), OPTION("stampwrap", PLAIN, stamp_wrap),
  OPTION("wrapafter", REAL, wrap_after), OPTION("buffers", SMALL, most_buffers),
  OPTION("minbuffers", SMALL, least_buffers), OPTION("dataoffset", SMALL, data_offset),
  OPTION("log", SMALL, log_length), OPTION("paint", TRUTH, paints_time),
};

static void put_number(device_options *options, const number_option *option, double value) {
  char *place = (char *)options + option->place;
  switch (option->type) {
  case REAL: *(double *)place = value; break;
  case WHOLE: *(int64_t *)place = (int64_t)value; break;
  case SMALL: *(uint32_t *)place = (uint32_t)value; break;
  case PLAIN: *(int *)place = (int)value; break;
  case TRUTH: *(bool *)place = value != 0; break;
  case LARGE: *(uint64_t *)place = (uint64_t)value; break;
  }
}

/// Sets a numeric option; false for an unknown name.
static bool set_number(device_options *options, const char *name, double value) {
  if (strcmp(name, "faults") == 0) {
    for (int kind = 0; kind < RANDOM_FAULTS; kind++) options->faults[kind] = value;
    return true;
  }
  for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
    if (strcmp(name, numbers[index].name) != 0) continue;
    put_number(options, &numbers[index], value);
    return true;
  }
  for (int kind = 0; kind < 4; kind++)
    if (strcmp(name, failure_names[kind]) == 0)
      return options->fail_at[kind] = (int64_t)value, true;
  fault_kind kind = fault_named(name, strlen(name));
  if (kind >= RANDOM_FAULTS) return false;
  options->faults[kind] = value;
  return true;
}

// MARK: - All

/// Sets an option from its text; false with a message for an invalid one.
static bool set_option(
  device_options *options, const char *name, const char *text, char *error, size_t size
) {
  bool is_list = true, is_good = true;
  if (strcmp(name, "at") == 0) {
    is_good = add_each(options, text, add_scheduled);
  } else if (strcmp(name, "fail") == 0) {
    is_good = add_each(options, text, add_failure);
  } else if (strcmp(name, "signal") == 0) {
    is_good = (options->signal_error = signal_named(text)) != 0;
  } else {
    is_list = false;
  }
  if (!is_good) snprintf(error, size, "\"%s\" is not valid for \"%s\"", text, name);
  if (is_list) return is_good;
  char *end = NULL;
  double value = strtod(text, &end);
  if (*end == '%') value /= 100, end++;
  if (end == text || *end != 0)
    return snprintf(error, size, "\"%s\" is not a number", text), false;
  if (!set_number(options, name, value))
    return snprintf(error, size, "unknown option \"%s\"", name), false;
  return true;
}

/// Clamps out-of-range options instead of rejecting them, because some are generated at random.
static void put_right(device_options *options) {
  if (options->apart < 1) options->apart = 1;
  if (options->most_buffers > MAX_BUFFERS) options->most_buffers = MAX_BUFFERS;
  if (options->log_length < 1) options->log_length = 1;
  if (options->data_offset > 4096) options->data_offset = 4096;
}

bool parse_options(
  const char *text, size_t length, device_options *options, char *error, size_t size
) {
  *options = (device_options){
    .seed = 1, .apart = 12, .mjpeg_bytes = 102400, .most_buffers = MAX_BUFFERS, .wrap_after = 1,
    .log_length = 4096};
  char copy[1024];
  if (length >= sizeof copy) return snprintf(error, size, "too many options"), false;
  memcpy(copy, text, length);
  copy[length] = 0;
  char *rest = NULL;
  char *word = strtok_r(copy, " \t", &rest);
  for (; word != NULL; word = strtok_r(NULL, " \t", &rest)) {
    char *equals = strchr(word, '=');
    if (equals == NULL) return snprintf(error, size, "\"%s\" is not KEY=VALUE", word), false;
    *equals = 0;
    if (!set_option(options, word, equals + 1, error, size)) return false;
  }
  put_right(options);
  return true;
}
