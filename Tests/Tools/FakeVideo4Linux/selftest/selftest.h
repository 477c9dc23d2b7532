// SPDX-License-Identifier: Apache-2.0
// What the parts of the self-test share.
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

/// Everything but streams: inputs, events, orders to fail, devices that go and come.
void check_features(void);

#endif
