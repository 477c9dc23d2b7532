// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the parts of the self-test.
#ifndef SELFTEST_H
#define SELFTEST_H

#include "../include/FakeVideo4Linux.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__); \
      fprintf(stderr, "\n"); \
      exit(1); \
    } \
  } while (0)

/// Tests everything except streams: inputs, events, configured failures, unplugging.
void check_features(void);

#endif
