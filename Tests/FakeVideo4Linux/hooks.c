// SPDX-License-Identifier: Apache-2.0
// What the preloaded library needs beyond the calls of a driver.
#include "model.h"

#include <errno.h>
#include <stdio.h>

static device_node *node_at(fakevideo *machine, int handle) {
  if (handle < 0 || handle >= MAX_HANDLES || !machine->handles[handle].is_open) return NULL;
  return &machine->nodes[machine->handles[handle].node];
}

int64_t wake_time(fakevideo *machine, int handle) {
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_at(machine, handle);
  int64_t time = 0;
  // Of a node that does not stream poll(2) says so at once.
  if (node != NULL && node->is_streaming && !node->is_gone && !node->is_broken
      && node->done_count == 0) {
    int64_t due = next_due(node);
    time = node->queued_count == 0 ? INT64_MAX : due;
  }
  pthread_mutex_unlock(&machine->lock);
  return time;
}

int memory_file(fakevideo *machine, int handle, size_t length, int64_t offset) {
  int error = 0;
  void *memory = fakevideo_map(machine, handle, length, offset, &error);
  if (memory == NULL) return error;
  // Mapped to see whether that is right; the kernel keeps what programs map of the file.
  fakevideo_unmap(machine, memory, length);
  pthread_mutex_lock(&machine->lock);
  device_node *node = node_at(machine, handle);
  int file = node == NULL || node->buffer_count == 0 ? -EINVAL : node->memory_file;
  pthread_mutex_unlock(&machine->lock);
  return file;
}

int print_counts(fakevideo *machine, int node, char *text, size_t size) {
  pthread_mutex_lock(&machine->lock);
  const device_node *one = &machine->nodes[node];
  const int64_t *fates = one->fates;
  long long periods = 0;
  for (int fate = 0; fate < FATE_COUNT; fate++) periods += fates[fate];
  long long corrupt =
    fates[FAKEVIDEO_CORRUPT_FLAG] + fates[FAKEVIDEO_SHORT] + fates[FAKEVIDEO_TRUNCATED];
  int length = !one->was_opened ? 0 : snprintf(
    text, size,
    "{\"node\":\"%s\",\"description\":\"%s\",\"periods\":%lld,\"delivered\":%lld,"
    "\"corrupt\":%lld,\"lost_start\":%lld,\"lost_device\":%lld,\"lost_kernel\":%lld,"
    "\"dequeued\":%lld}\n",
    one->path, one->kind->name, periods, (long long)fates[FAKEVIDEO_DELIVERED], corrupt,
    (long long)fates[FAKEVIDEO_LOST_START], (long long)fates[FAKEVIDEO_LOST_DEVICE],
    (long long)fates[FAKEVIDEO_LOST_KERNEL], (long long)one->dequeued);
  pthread_mutex_unlock(&machine->lock);
  return length;
}
