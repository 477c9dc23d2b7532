// SPDX-License-Identifier: Apache-2.0

#ifndef OF_CONTEXT_H
#define OF_CONTEXT_H

#include "include/COpticalFlow.h"

/// The border around images, in pixels, filled with the nearest pixel.
#define OF_PAD 16
#define OF_MAX_LEVELS 8
#define OF_PATCH 8
/// Rows of patches in a stripe.
#define OF_PATCH_ROWS 14
/// Rows of pixels in a stripe, and those that it shares with its neighbors.
#define OF_ROWS 48
#define OF_HALO 5
/// Planes of floats that a stripe needs for refinement.
#define OF_SCRATCH_PLANES 24

/// The kinds of pixels by their history: not static; static in front of things that move; static like
/// its surroundings, so that things may pass in front of it.
enum { OF_MOVING = 0, OF_OVERLAY = 1, OF_BACKGROUND = 2 };

typedef struct {
  int width, height;
  int sampleBytes;
  /// In bytes.
  ptrdiff_t stride;
  uint8_t *memory;
  /// The pixel at 0, 0.
  uint8_t *pixels;
} OFImage;

typedef struct {
  float *u, *v, *cost;
  /// The absolute difference of each of the 64 pixels, at most 255.
  uint8_t *error;
} OFPatches;

typedef struct {
  int width, height;
  /// The grid of patches.
  int columns, rows;
  OFImage image[2];
  OFPatches patches[2];
  /// Motion in pixels of this level, for both directions.
  float *u[2], *v[2];
} OFLevel;

typedef struct {
  int width, height;
  float *weight, *u, *v;
} OFFillLevel;

typedef struct {
  int inconsistent, counted;
  int64_t residual;
  /// The sums of consistent motions, and their number.
  double u, v;
  int consistent;
} OFCounts;

typedef struct OFKernels OFKernels;

struct OFContext {
  OFSettings settings;
  const OFKernels *kernels;
  size_t byteCount;
  int planeCount;
  /// The slot of the newer frame.
  int newer;
  OFImage planes[2][3];
  OFLevel levels[OF_MAX_LEVELS];
  int levelCount;
  /// The level whose motion is used.
  int finest;
  int stride, iterations, refinements;
  /// Memory of the stripes of a refinement, and of those that work on rows.
  float *scratch, *rowScratch;
  size_t scratchLength, rowLength;
  OFPlane input[3], output[3];
  float instant;
  int isBlend;
  // The projected motion: sums by direction, then the field with the share of the newer frame.
  float *sums[2][3];
  OFFillLevel fill[16];
  int fillCount;
  float *share;
  /// Whether the motion at a pixel of the field differs from that of its neighbors.
  uint8_t *isEdge;
  float *reliability[2];
  float decay[256];
  // Static pixels: for how long, and what they are (OF_MOVING, OF_OVERLAY or OF_BACKGROUND).
  uint8_t *age, *nextAge, *staticKinds;
  /// By blocks of 16x16 pixels: differences, and static pixels.
  int *blockSums, *staticSums;
  int64_t *differences;
  OFCounts *counts;
  int16_t cubic16[64][4];
  int8_t cubic8[64][16];
};

struct OFKernels {
  void (*load)(OFContext *, int stripe);
  void (*shrink)(OFContext *, int level, int stripe);
  void (*compare)(OFContext *, int stripe);
  void (*search)(OFContext *, int level, int direction, int stripe);
  void (*refine)(OFContext *, int level, int direction, int stripe);
  void (*judge)(OFContext *, int direction, int stripe);
  void (*markStatic)(OFContext *, int stripe);
  void (*keepOverlays)(OFContext *);
  void (*splat)(OFContext *, int direction);
  void (*fillHoles)(OFContext *);
  void (*choose)(OFContext *, int stripe);
  void (*weigh)(OFContext *, int stripe);
  void (*render)(OFContext *, int plane, int stripe);
};

extern const OFKernels of_kernels_plain;
/// Null where the processor has no such instructions.
const OFKernels *of_kernels_avx2(void);

static inline int of_min(int a, int b) { return a < b ? a : b; }
static inline int of_max(int a, int b) { return a > b ? a : b; }
static inline int of_clamp(int a, int low, int high) { return of_min(of_max(a, low), high); }
static inline float of_minf(float a, float b) { return a < b ? a : b; }
static inline float of_maxf(float a, float b) { return a > b ? a : b; }
static inline float of_absf(float a) { return __builtin_fabsf(a); }

/// The frame at which a direction starts.
static inline int of_slot(const OFContext *c, int direction) {
  return direction == 0 ? 1 - c->newer : c->newer;
}

static inline int of_stripes(int count, int each) { return (count + each - 1) / each; }

#endif
