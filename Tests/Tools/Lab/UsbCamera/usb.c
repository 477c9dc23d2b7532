// SPDX-License-Identifier: Apache-2.0
// The connection to the kernel's virtual host controller, vhci_hcd, in the protocol of USB/IP.
// (Documentation/usb/usbip_protocol.rst) All numbers are big-endian.
#include "model.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUBMIT = 1, UNLINK = 2, SUBMIT_ANSWER = 3, UNLINK_ANSWER = 4 };
enum { HEADER = 48, DESCRIPTOR = 16, LARGEST_TRANSFER = 1 << 20 };

static uint32_t read_number(const uint8_t *from) {
  uint32_t value;
  memcpy(&value, from, 4);
  return ntohl(value);
}

static void write_number(uint8_t *to, uint32_t value) {
  value = htonl(value);
  memcpy(to, &value, 4);
}

static bool receive(int socket, void *to, size_t count) {
  for (size_t done = 0; done < count;) {
    ssize_t part = read(socket, (uint8_t *)to + done, count - done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += (size_t)part;
  }
  return true;
}

static void send_all(camera *camera, const uint8_t *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    ssize_t part = write(camera->socket, bytes + done, count - done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) {
      camera->is_unplugged = true;
      return;
    }
    done += (size_t)part;
  }
}

/// Sends the answer to a request.
static void answer(
  camera *camera, const urb *urb, int32_t status, const uint8_t *data, uint32_t count,
  const uint32_t *actual, const int32_t *statuses
) {
  static uint8_t message[HEADER + LARGEST_TRANSFER + ISO_PACKETS * DESCRIPTOR];
  memset(message, 0, HEADER);
  write_number(message, SUBMIT_ANSWER);
  write_number(message + 4, urb->number);
  write_number(message + 20, (uint32_t)status);
  write_number(message + 24, count);
  write_number(message + 32, urb->packets);
  size_t length = HEADER;
  if (data != NULL) {
    memcpy(message + length, data, count);
    length += count;
  }
  uint32_t offset = 0, errors = 0;
  for (uint32_t index = 0; index < urb->packets; index++) {
    write_number(message + length, offset);
    write_number(message + length + 4, urb->lengths[index]);
    write_number(message + length + 8, actual != NULL ? actual[index] : 0);
    write_number(message + length + 12, statuses != NULL ? (uint32_t)statuses[index] : 0);
    if (statuses != NULL && statuses[index] != 0) errors++;
    offset += urb->lengths[index];
    length += DESCRIPTOR;
  }
  write_number(message + 36, errors);
  send_all(camera, message, length);
}

urb *first_urb(const camera *camera, uint32_t endpoint) {
  urb *urb = camera->first;
  while (urb != NULL && urb->endpoint != endpoint) urb = urb->next;
  return urb;
}

/// Removes a request from the list of pending ones.
static void take_urb(camera *camera, const urb *urb) {
  for (struct urb **place = &camera->first; *place != NULL; place = &(*place)->next) {
    if (*place != urb) continue;
    *place = urb->next;
    if (*place == NULL) camera->last = place;
    return;
  }
}

void complete(
  camera *camera, urb *urb, int32_t status, const uint8_t *data, uint32_t count,
  const uint32_t *actual, const int32_t *statuses
) {
  answer(camera, urb, status, data, count, actual, statuses);
  take_urb(camera, urb);
  free(urb);
}

/// Removes a pending request; returns whether it was pending.
static bool unlink_urb(camera *camera, uint32_t number) {
  urb *urb = camera->first;
  while (urb != NULL && urb->number != number) urb = urb->next;
  if (urb == NULL) return false;
  take_urb(camera, urb);
  free(urb);
  return true;
}

/// Adds a copy of a request to the list of pending ones; returns NULL without memory.
static urb *keep_urb(camera *camera, const urb *request) {
  urb *kept = malloc(sizeof *kept);
  if (kept == NULL) return NULL;
  *kept = *request;
  kept->submitted = now();
  *camera->last = kept;
  camera->last = &kept->next;
  return kept;
}

static bool serve_submit(camera *camera, const uint8_t *header) {
  static uint8_t data[LARGEST_TRANSFER];
  urb request = {
    .number = read_number(header + 4),
    .endpoint = read_number(header + 16),
    .length = read_number(header + 24),
    .packets = read_number(header + 32),
  };
  bool is_input = read_number(header + 12) == 1;
  // Requests other than isochronous ones have 0 or -1 packets.
  if (request.packets > ISO_PACKETS) request.packets = 0;
  if (request.length > LARGEST_TRANSFER) return false;
  if (!is_input && !receive(camera->socket, data, request.length)) return false;
  for (uint32_t index = 0; index < request.packets; index++) {
    uint8_t descriptor[DESCRIPTOR];
    if (!receive(camera->socket, descriptor, sizeof descriptor)) return false;
    request.lengths[index] = read_number(descriptor + 4);
  }
  if (request.endpoint == 0) {
    const uint8_t *setup = header + 40;
    int32_t count = answer_control(camera, setup, data);
    // The camera never answers.
    if (count == -ETIMEDOUT) return keep_urb(camera, &request) != NULL;
    // The answer to a request with data for the camera has no data.
    bool has_data = count > 0 && (setup[0] & 0x80) != 0;
    uint32_t most = has_data && (uint32_t)count > request.length ? request.length : (uint32_t)count;
    answer(camera, &request, count < 0 ? count : 0, has_data ? data : NULL,
      count < 0 ? 0 : has_data ? most : request.length, NULL, NULL);
    return true;
  }
  urb *kept = keep_urb(camera, &request);
  if (kept == NULL) return false;
  if (request.endpoint == AUDIO_ENDPOINT) schedule_audio(camera, kept);
  if (request.endpoint != VIDEO_ENDPOINT) return true;
  // The stream of a bulk camera starts with the first request.
  if (!camera->is_streaming) start_stream(camera);
  if (request.packets > 0) {
    if (camera->bus_time < kept->submitted) camera->bus_time = kept->submitted;
    camera->bus_time += request.packets * MICROFRAME;
    kept->end = camera->bus_time;
  }
  return true;
}

bool serve_host(camera *camera) {
  uint8_t header[HEADER];
  if (!receive(camera->socket, header, sizeof header)) return false;
  switch (read_number(header)) {
  case SUBMIT: return serve_submit(camera, header);
  case UNLINK: {
    bool was_pending = unlink_urb(camera, read_number(header + 20));
    uint8_t answer[HEADER] = {0};
    write_number(answer, UNLINK_ANSWER);
    memcpy(answer + 4, header + 4, 4);
    write_number(answer + 20, was_pending ? (uint32_t)-ECONNRESET : 0);
    send_all(camera, answer, sizeof answer);
    if (camera->first == NULL && camera->options.is_bulk) stop_stream(camera);
    return true;
  }
  default: return false;
  }
}

/// Gives a process real-time priority.
static void prioritize(pid_t process) {
  struct sched_param priority = {.sched_priority = 50};
  if (sched_setscheduler(process, SCHED_FIFO, &priority) != 0) {
    perror("usb-camera: no real-time priority");
  }
}

/// Gives this process, and the kernel's threads of the virtual host controller, real-time priority.
///
/// They stand for the hardware of a camera and of a controller, which no program delays.
static void prioritize_transfers(void) {
  prioritize(0);
  DIR *processes = opendir("/proc");
  if (processes == NULL) return;
  for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
    int process = atoi(entry->d_name);
    if (process <= 0) continue;
    char path[32], name[17] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strncmp(name, "vhci_", 5) == 0) prioritize(process);
    fclose(file);
  }
  closedir(processes);
}

void attach(camera *camera) {
  int ends[2];
  int size = 8 << 20;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    perror("usb-camera: socketpair");
    exit(1);
  }
  for (int end = 0; end < 2; end++) {
    setsockopt(ends[end], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    setsockopt(ends[end], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  }
  // Ports 0 to 14 are those of the high-speed hub, and ports 15 to 29 of the super-speed hub.
  int port = camera->options.port + (camera->options.is_super_speed ? 15 : 0);
  int speed = camera->options.is_super_speed ? 5 : 3;
  char text[64];
  int count = snprintf(text, sizeof text, "%d %d %d %d\n", port, ends[1], 65538 + port, speed);
  // The port stays busy for a moment after another camera was unplugged.
  for (int attempt = 0;; attempt++) {
    int file = open("/sys/devices/platform/vhci_hcd.0/attach", O_WRONLY);
    ssize_t written = file < 0 ? -1 : write(file, text, (size_t)count);
    int error = errno;
    if (file >= 0) close(file);
    if (written == count) break;
    if (error != EBUSY || attempt == 50) {
      fprintf(stderr, "usb-camera: cannot attach to vhci_hcd: %s\n", strerror(error));
      exit(1);
    }
    usleep(100000);
  }
  // The kernel has a reference of its own.
  close(ends[1]);
  camera->socket = ends[0];
  camera->last = &camera->first;
  camera->is_unplugged = false;
  prioritize_transfers();
}

void detach(camera *camera) {
  stop_stream(camera);
  close(camera->socket);
  while (camera->first != NULL) {
    urb *urb = camera->first;
    camera->first = urb->next;
    free(urb);
  }
}
