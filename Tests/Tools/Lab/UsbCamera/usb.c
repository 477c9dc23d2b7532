// SPDX-License-Identifier: Apache-2.0
// The connection to the kernel's virtual host controller, vhci_hcd, in the protocol of USB/IP.
// (Documentation/usb/usbip_protocol.rst) All numbers are big-endian.
#include "model.h"

#include <arpa/inet.h>
#include <errno.h>
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

void complete(
  camera *camera, urb *urb, int32_t status, const uint8_t *data, uint32_t count,
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

/// Removes a pending request; returns whether it was pending.
static bool unlink_urb(camera *camera, uint32_t number) {
  for (urb **place = &camera->first; *place != NULL; place = &(*place)->next) {
    urb *found = *place;
    if (found->number != number) continue;
    *place = found->next;
    if (*place == NULL) camera->last = place;
    free(found);
    return true;
  }
  return false;
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
    // The answer to a request with data for the camera has no data.
    bool has_data = count > 0 && (setup[0] & 0x80) != 0;
    uint32_t most = has_data && (uint32_t)count > request.length ? request.length : (uint32_t)count;
    complete(camera, &request, count < 0 ? count : 0, has_data ? data : NULL,
      count < 0 ? 0 : has_data ? most : request.length, NULL, NULL);
    return true;
  }
  urb *kept = malloc(sizeof *kept);
  if (kept == NULL) return false;
  *kept = request;
  *camera->last = kept;
  camera->last = &kept->next;
  // The stream of a bulk camera starts with the first request.
  if (request.endpoint == VIDEO_ENDPOINT && !camera->is_streaming) start_stream(camera);
  if (request.endpoint == VIDEO_ENDPOINT && request.packets > 0) {
    int64_t time = now();
    if (camera->bus_time < time) camera->bus_time = time;
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
  FILE *file = fopen("/sys/devices/platform/vhci_hcd.0/attach", "w");
  // Ports 0 to 14 are those of the high-speed hub, and ports 15 to 29 of the super-speed hub.
  int port = camera->options.port + (camera->options.is_super_speed ? 15 : 0);
  int speed = camera->options.is_super_speed ? 5 : 3;
  if (file == NULL || fprintf(file, "%d %d %d %d\n", port, ends[1], 65538 + port, speed) < 0
      || fclose(file) != 0) {
    perror("usb-camera: cannot attach to vhci_hcd");
    exit(1);
  }
  // The kernel has a reference of its own.
  close(ends[1]);
  camera->socket = ends[0];
  camera->last = &camera->first;
}
