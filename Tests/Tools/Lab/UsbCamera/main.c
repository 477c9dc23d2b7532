// SPDX-License-Identifier: Apache-2.0
// usb-camera: a USB Video Class camera in a process, for the kernel's uvcvideo. See README.md.
#include "model.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/// Reads an error such as `probe:32`.
static void add_error(options *options, const char *text) {
  char name[8];
  int error;
  if (sscanf(text, "%7[^:]:%d", name, &error) != 2) fail("not a request and an error", text);
  if (strcmp(name, "probe") == 0) options->probe_error = error;
  else if (strcmp(name, "commit") == 0) options->commit_error = error;
  else fail("not a request", text);
}

static void parse(camera *camera, int count, char **arguments) {
  options *options = &camera->options;
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
    if (strcmp(name, "--ps3-eye") == 0) {
      options->is_ps3_eye = options->is_bulk = true;
      continue;
    }
    if (strcmp(name, "--events") == 0) {
      options->sends_events = true;
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
    else if (strcmp(name, "--rate") == 0) options->rate = strtod(value, NULL);
    else if (strcmp(name, "--bandwidth") == 0) options->bandwidth = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(name, "--error") == 0) add_error(options, value);
    else if (strcmp(name, "--fault") == 0) add_fault(options, value);
    else if (strcmp(name, "--h264") == 0) {
      if (!read_h264(camera, value)) fail("not an H.264 stream", value);
    }
    else if (strcmp(name, "--log") == 0) options->log = fopen(value, "w");
    else fail("not an option", name);
  }
  if (options->log == NULL) fail("no log", "--log FILE");
}

/// Serves the host until a signal, the end of the connection, or a fault that unplugs the camera.
static void run(camera *camera) {
  while (!is_ended && !camera->is_unplugged) {
    int64_t dues[] = {run_stream(camera), run_audio(camera), run_status(camera)}, due = INT64_MAX;
    for (size_t index = 0; index < sizeof dues / sizeof *dues; index++) {
      if (dues[index] < due) due = dues[index];
    }
    struct pollfd socket = {.fd = camera->socket, .events = POLLIN};
    struct timespec timeout = {0}, *limit = NULL;
    if (due != INT64_MAX) {
      int64_t left = due - now();
      if (left < 0) left = 0;
      timeout = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
      limit = &timeout;
    }
    if (ppoll(&socket, 1, limit, NULL) > 0 && !serve_host(camera)) break;
  }
}

int main(int count, char **arguments) {
  static camera camera = {
    .options = {.bytes = 20000, .bandwidth = UINT32_MAX, .serial = "0001"},
    .mode = {FORMAT_MJPEG, 640, 480, 333333},
    .paused_number = -1,
    .sample_rate = 48000,
  };
  parse(&camera, count, arguments);
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  for (;;) {
    attach(&camera);
    run(&camera);
    detach(&camera);
    if (is_ended || camera.replug_time == 0) break;
    usleep((useconds_t)camera.replug_time * 1000);
    camera.replug_time = 0;
  }
  return fclose(camera.options.log) == 0 ? 0 : 1;
}
