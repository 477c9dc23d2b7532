// SPDX-License-Identifier: Apache-2.0
// A request of a client to a fork server. The strings of the arguments and of the environment follow it,
// each with its NUL. The message carries the descriptors 0 to 2 and the working directory.
#pragma once
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { DESCRIPTOR_COUNT = 4, LAST_SIGNAL = 64 };

struct request {
  uint32_t argument_count;
  uint32_t variable_count;
  uint32_t byte_count;
  uint32_t file_mode_mask;
  // Bit N - 1 is signal N.
  uint64_t ignored_signals;
  uint64_t blocked_signals;
  struct rlimit limits[RLIM_NLIMITS];
};

// The address of a socket; an empty one if the path is too long.
static inline struct sockaddr_un socket_address(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) < sizeof address.sun_path) strcpy(address.sun_path, path);
  return address;
}
