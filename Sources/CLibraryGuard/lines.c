// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLibraryGuard.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The last one is Swift's own; the handler of the crash that follows prints a line.
static const char *const prefixes[] = {
    "x264 [", "x265 [", "libgomp: ", "Fontconfig ", "Fatal error: failed to allocate "};

static int is_dropped(const char *line, size_t length) {
  for (size_t index = 0; index < sizeof prefixes / sizeof *prefixes; index++) {
    size_t count = strlen(prefixes[index]);
    if (length >= count && memcmp(line, prefixes[index], count) == 0) return 1;
  }
  return 0;
}

/// Writes lines to the standard error; the stream passes on whole lines, except when it is flushed.
static ssize_t write_lines(void *cookie, const char *text, size_t size) {
  (void)cookie;
  for (size_t start = 0; start < size;) {
    const char *end = memchr(text + start, '\n', size - start);
    size_t length = end ? (size_t)(end - text) + 1 - start : size - start;
    if (!is_dropped(text + start, length) && write(STDERR_FILENO, text + start, length) < 0)
      break;
    start += length;
  }
  return (ssize_t)size;
}

void lg_silence_libraries(void) {
  // A line may be printed in parts, so it is buffered. The buffer needs no memory later.
  static char buffer[4096];
  FILE *lines = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_lines});
  if (!lines) return;
  setvbuf(lines, buffer, _IOLBF, sizeof buffer);
  stderr = lines;
}
