// SPDX-License-Identifier: Apache-2.0
//
// Runs the kernels of optical flow on frames of many sizes and formats, for a build with sanitizers.
//
// Each plane is an allocation of its own without padding, so that an access outside is found. Prints
// the memory per pixel. Fails if the number of threads or the instructions change a byte.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "COpticalFlow.h"

typedef struct {
  int width, height, depth, planeCount, shiftX, shiftY;
} Format;

typedef struct {
  OFContext *context;
  OFPhase phase;
  int step, stripeCount;
  atomic_int *next;
} Work;

static void *work(void *pointer) {
  Work *w = pointer;
  for (;;) {
    int stripe = atomic_fetch_add(w->next, 1);
    if (stripe >= w->stripeCount) return NULL;
    of_run(w->context, w->phase, w->step, stripe);
  }
}

static void run(OFContext *context, OFPhase phase, int threadCount) {
  for (int step = 0; step < of_step_count(context, phase); step++) {
    atomic_int next = 0;
    Work w = {context, phase, step, of_stripe_count(context, phase, step), &next};
    pthread_t threads[8];
    for (int i = 1; i < threadCount; i++) pthread_create(&threads[i], NULL, work, &w);
    work(&w);
    for (int i = 1; i < threadCount; i++) pthread_join(threads[i], NULL);
  }
}

static int planeWidth(const Format *f, int plane) {
  return plane ? (f->width + (1 << f->shiftX) - 1) >> f->shiftX : f->width;
}

static int planeHeight(const Format *f, int plane) {
  return plane ? (f->height + (1 << f->shiftY) - 1) >> f->shiftY : f->height;
}

static void make(const Format *f, OFPlane *planes) {
  for (int plane = 0; plane < f->planeCount; plane++) {
    planes[plane].bytesPerRow = planeWidth(f, plane) * (f->depth > 8 ? 2 : 1);
    planes[plane].data =
      malloc((size_t)planes[plane].bytesPerRow * (size_t)planeHeight(f, plane));
  }
}

static void release(const Format *f, OFPlane *planes) {
  for (int plane = 0; plane < f->planeCount; plane++) free(planes[plane].data);
}

/// A frame of blocks of random brightness, of which the right half moves, with one frame of noise.
static void paint(const Format *f, OFPlane *planes, int number) {
  for (int plane = 0; plane < f->planeCount; plane++) {
    int scale = plane ? f->shiftX : 0;
    for (int y = 0; y < planeHeight(f, plane); y++) {
      for (int x = 0; x < planeWidth(f, plane); x++) {
        int moves = x >= planeWidth(f, plane) / 2;
        unsigned px = (unsigned)((x << scale) + 5 * number * moves) / 6;
        unsigned py = (unsigned)(y << scale) / 5;
        unsigned noise = moves && number == 2 ? 77u * (unsigned)x : 0;
        unsigned hash = px * 2654435761u ^ py * 2246822519u ^ noise;
        unsigned value = (hash >> 13) & ((1u << f->depth) - 1);
        uint8_t *row = planes[plane].data + y * planes[plane].bytesPerRow;
        if (f->depth > 8) {
          ((uint16_t *)(void *)row)[x] = (uint16_t)value;
        } else {
          row[x] = (uint8_t)value;
        }
      }
    }
  }
}

static uint64_t digest(const Format *f, const OFPlane *planes, uint64_t sum) {
  for (int plane = 0; plane < f->planeCount; plane++) {
    size_t count = (size_t)planes[plane].bytesPerRow * (size_t)planeHeight(f, plane);
    for (size_t i = 0; i < count; i++) sum = (sum ^ planes[plane].data[i]) * 1099511628211u;
  }
  return sum;
}

static uint64_t frames(const Format *f, int isFast, int isPlain, int threadCount, size_t *bytes) {
  OFSettings settings = {f->width, f->height, f->depth, f->planeCount, f->shiftX, f->shiftY,
                         isFast, isPlain};
  OFContext *context = of_create(settings);
  if (!context) {
    fprintf(stderr, "no context of %dx%d\n", f->width, f->height);
    exit(1);
  }
  *bytes = of_byte_count(context);
  OFPlane in[3], out[3];
  make(f, in);
  make(f, out);
  uint64_t sum = 14695981039346656037u;
  int count = f->width > 1000 ? 2 : 5;
  for (int number = 0; number < count; number++) {
    paint(f, in, number);
    of_set_frame(context, in, number == 4);
    run(context, OFPhaseLoad, threadCount);
    if (number == 0) continue;
    run(context, OFPhaseCompare, threadCount);
    run(context, OFPhaseFlow, threadCount);
    of_commit_history(context);
    for (int part = 1; part < 4; part++) {
      of_set_blend(context, part == 3);
      of_set_output(context, (float)part / 4, out);
      run(context, OFPhaseRender, threadCount);
      sum = digest(f, out, sum);
    }
    float x, y;
    of_motion(context, number & 1, f->width, -1, &x, &y);
    OFStatistics statistics = of_statistics(context);
    sum ^= (uint64_t)(statistics.residual * 1000);
    if (of_byte_count(context) != *bytes) exit(1);
  }
  of_reset_history(context);
  release(f, in);
  release(f, out);
  of_destroy(context);
  return sum;
}

int main(void) {
  static const Format formats[] = {
    {16, 16, 8, 3, 1, 1}, {16, 16, 8, 1, 0, 0}, {17, 19, 8, 3, 1, 1}, {33, 70, 10, 3, 1, 0},
    {70, 33, 8, 3, 0, 0}, {131, 67, 12, 3, 0, 0}, {322, 171, 8, 3, 1, 1}, {255, 129, 16, 1, 0, 0},
    {16, 300, 8, 3, 1, 1}, {300, 16, 10, 3, 1, 1}, {4096, 2304, 8, 3, 1, 1},
  };
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    const Format *f = &formats[i];
    int isLarge = f->width > 1000;
    for (int isFast = 0; isFast < 2; isFast++) {
      size_t bytes = 0;
      uint64_t due = frames(f, isFast, 0, isLarge ? 2 : 1, &bytes);
      static const int counts[] = {1, 2, 3, 8};
      for (int n = 0; n < 4 && !isLarge; n++) {
        for (int isPlain = 0; isPlain < 2; isPlain++) {
          if (frames(f, isFast, isPlain, counts[n], &bytes) != due) {
            fprintf(stderr, "%dx%d: %d threads change a byte\n", f->width, f->height, counts[n]);
            return 1;
          }
        }
      }
      printf(
        "optical flow: %dx%d, %d bits, %d planes%s: %zu bytes, %.1f per pixel\n", f->width,
        f->height, f->depth, f->planeCount, isFast ? ", fast" : "", bytes,
        (double)bytes / f->width / f->height);
    }
  }
  return 0;
}
