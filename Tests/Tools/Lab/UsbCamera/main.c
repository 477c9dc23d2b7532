// SPDX-License-Identifier: Apache-2.0
// usb-camera: a USB Video Class camera in a process, for the kernel's uvcvideo. See README.md.
#include "model.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint8_t *make_gray_jpeg(
  uint32_t width, uint32_t height, uint32_t bytes, uint32_t *length, uint32_t *number);

static volatile sig_atomic_t is_ended;

static void end(int signal) {
  (void)signal;
  is_ended = 1;
}

int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void fail(const char *message, const char *argument) {
  fprintf(stderr, "usb-camera: %s: %s\n", message, argument);
  exit(64);
}

/// Reads a fault such as `200:packets:3`.
static void add_fault(options *options, const char *text) {
  fault fault = {.amount = 1};
  char name[32];
  long long number, amount = 1;
  int count = sscanf(text, "%lld:%31[^:]:%lld", &number, name, &amount);
  for (int kind = 1; count >= 2 && kind < FAULT_KINDS; kind++) {
    if (strcmp(name, fault_names[kind]) == 0) fault.kind = (fault_kind)kind;
  }
  if (fault.kind == FAULT_NONE || options->fault_count == sizeof options->faults / sizeof *options->faults) {
    fail("not a fault", text);
  }
  fault.frame = number;
  fault.amount = amount;
  options->faults[options->fault_count++] = fault;
}

static void parse(options *options, int count, char **arguments) {
  for (int index = 1; index < count; index++) {
    const char *name = arguments[index];
    const char *value = index + 1 < count ? arguments[index + 1] : "";
    if (strcmp(name, "--bulk") == 0) {
      options->is_bulk = true;
      continue;
    }
    if (strcmp(name, "--super-speed") == 0) {
      options->is_super_speed = true;
      continue;
    }
    if (strcmp(name, "--no-serial") == 0) {
      options->serial = "";
      continue;
    }
    index++;
    if (strcmp(name, "--port") == 0) options->port = atoi(value);
    else if (strcmp(name, "--bytes") == 0) options->bytes = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(name, "--ppm") == 0) options->ppm = strtod(value, NULL);
    else if (strcmp(name, "--audio-ppm") == 0) options->audio_ppm = strtod(value, NULL);
    else if (strcmp(name, "--serial") == 0) options->serial = value;
    else if (strcmp(name, "--adjust") == 0) options->adjusting_time = strtoll(value, NULL, 10);
    else if (strcmp(name, "--fault") == 0) add_fault(options, value);
    else if (strcmp(name, "--log") == 0) options->log = fopen(value, "w");
    else fail("not an option", name);
  }
  if (options->log == NULL) fail("no log", "--log FILE");
}

int main(int count, char **arguments) {
  static camera camera = {
    .options = {.width = 640, .height = 480, .bytes = 20000, .serial = "0001"},
    .paused_number = -1,
    .sample_rate = 48000,
  };
  parse(&camera.options, count, arguments);
  camera.jpeg = make_gray_jpeg(
    camera.options.width, camera.options.height, camera.options.bytes, &camera.jpeg_length,
    &camera.jpeg_number);
  if (camera.jpeg == NULL) fail("no memory", "the frame");
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  attach(&camera);
  while (!is_ended && !camera.is_unplugged) {
    int64_t due = run_stream(&camera), audio_due = run_audio(&camera);
    if (due > audio_due) due = audio_due;
    struct pollfd socket = {.fd = camera.socket, .events = POLLIN};
    struct timespec timeout = {0}, *limit = NULL;
    if (due != INT64_MAX) {
      int64_t left = due - now();
      if (left < 0) left = 0;
      timeout = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
      limit = &timeout;
    }
    if (ppoll(&socket, 1, limit, NULL) > 0 && !serve_host(&camera)) break;
  }
  stop_stream(&camera);
  close(camera.socket);
  return fclose(camera.options.log) == 0 ? 0 : 1;
}
