// SPDX-License-Identifier: Apache-2.0

#include "context.h"

#include <stdlib.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

/// Adds an allocation to the context; false if memory is short. Memory is zeroed and aligned to 64.
static int of_allocate(OFContext *c, void *pointer, size_t count, size_t size) {
  size_t bytes = (count * size + 127) & ~(size_t)63;
  void *memory = aligned_alloc(64, bytes);
  if (!memory) return 0;
  memset(memory, 0, bytes);
  c->byteCount += bytes;
  memcpy(pointer, &memory, sizeof memory);
  return 1;
}

static int of_create_image(OFContext *c, OFImage *image, int width, int height, int sampleBytes) {
  image->width = width;
  image->height = height;
  image->sampleBytes = sampleBytes;
  // Two more than the border, for the pixels that a row of vectors reads beyond the last one.
  image->stride = (ptrdiff_t)((width + 2 * OF_PAD + 32 + 31) / 32 * 32) * sampleBytes;
  size_t rows = (size_t)height + 2 * OF_PAD;
  if (!of_allocate(c, &image->memory, rows, (size_t)image->stride)) return 0;
  image->pixels = image->memory + OF_PAD * image->stride + OF_PAD * sampleBytes;
  return 1;
}

static int of_create_levels(OFContext *c) {
  const OFSettings *s = &c->settings;
  int width = s->width, height = s->height;
  for (int k = 0; k < OF_MAX_LEVELS; k++) {
    OFLevel *level = &c->levels[k];
    if (k > c->finest && of_min(width, height) < 16) break;
    level->width = width;
    level->height = height;
    level->columns = of_stripes(width - OF_PATCH, c->stride) + 1;
    level->rows = of_stripes(height - OF_PATCH, c->stride) + 1;
    c->levelCount = k + 1;
    size_t patches = (size_t)level->columns * (size_t)level->rows;
    size_t pixels = (size_t)width * (size_t)height;
    for (int slot = 0; slot < 2; slot++) {
      if (k == 0 && s->depth == 8) {
        level->image[slot] = c->planes[slot][0];
      } else if (!of_create_image(c, &level->image[slot], width, height, 1)) {
        return 0;
      }
      if (k < c->finest) continue;
      OFPatches *p = &level->patches[slot];
      if (
        !of_allocate(c, &p->u, patches, 4) || !of_allocate(c, &p->v, patches, 4)
        || !of_allocate(c, &p->cost, patches, 4) || !of_allocate(c, &p->error, patches, 64)
        || !of_allocate(c, &level->u[slot], pixels, 4)
        || !of_allocate(c, &level->v[slot], pixels, 4)) {
        return 0;
      }
    }
    width = (width + 1) / 2;
    height = (height + 1) / 2;
  }
  return 1;
}

static int of_create_field(OFContext *c) {
  const OFLevel *level = &c->levels[c->finest];
  size_t pixels = (size_t)level->width * (size_t)level->height;
  for (int direction = 0; direction < 2; direction++) {
    for (int i = 0; i < 3; i++) {
      if (!of_allocate(c, &c->sums[direction][i], pixels, 4)) return 0;
    }
    if (!of_allocate(c, &c->reliability[direction], pixels, 4)) return 0;
  }
  if (!of_allocate(c, &c->share, pixels, 4) || !of_allocate(c, &c->isEdge, pixels, 1)) return 0;
  int width = level->width, height = level->height;
  while (c->fillCount < 16) {
    OFFillLevel *fill = &c->fill[c->fillCount++];
    fill->width = width;
    fill->height = height;
    size_t count = (size_t)width * (size_t)height;
    if (
      !of_allocate(c, &fill->weight, count, 4) || !of_allocate(c, &fill->u, count, 4)
      || !of_allocate(c, &fill->v, count, 4)) {
      return 0;
    }
    if (width == 1 && height == 1) break;
    width = (width + 1) / 2;
    height = (height + 1) / 2;
  }
  return 1;
}

static int of_create_scratch(OFContext *c) {
  const OFSettings *s = &c->settings;
  const OFLevel *level = &c->levels[c->finest];
  size_t pixels = (size_t)s->width * (size_t)s->height;
  size_t stripes = (size_t)of_stripes(s->height, OF_ROWS);
  size_t blocks = (size_t)of_stripes(s->width, 16) * (size_t)of_stripes(s->height, 16);
  c->scratchLength = (size_t)level->width * (OF_ROWS + 2 * OF_HALO) * OF_SCRATCH_PLANES;
  c->rowLength = (size_t)level->width * 3 + (size_t)s->width * 9 + 32;
  return of_allocate(
           c, &c->scratch, c->scratchLength * 2 * (size_t)of_stripes(level->height, OF_ROWS), 4)
    && of_allocate(c, &c->rowScratch, c->rowLength * stripes * 3, 4)
    && of_allocate(c, &c->age, pixels, 1) && of_allocate(c, &c->nextAge, pixels, 1)
    && of_allocate(c, &c->staticKinds, pixels, 1)
    && of_allocate(c, &c->blockSums, blocks, sizeof(int))
    && of_allocate(c, &c->staticSums, blocks, sizeof(int))
    && of_allocate(c, &c->differences, stripes, sizeof(int64_t))
    && of_allocate(c, &c->counts, stripes * 2, sizeof(OFCounts));
}

/// The weights of four pixels for each 64th between the middle two, by Catmull and Rom; each sums
/// up to 64.
static void of_fill_tables(OFContext *c) {
  for (int phase = 0; phase < 64; phase++) {
    int x = phase;
    // The polynomials with x in 64ths, times 2 * 64^3.
    int weights[4] = {
      -x * x * x + 128 * x * x - 4096 * x, 3 * x * x * x - 320 * x * x + 2 * 262144,
      -3 * x * x * x + 256 * x * x + 4096 * x, x * x * x - 64 * x * x,
    };
    int sum = 0;
    for (int i = 0; i < 4; i++) {
      int scaled = weights[i] + 4096;
      weights[i] = scaled >= 0 ? scaled / 8192 : -((8191 - scaled) / 8192);
      sum += weights[i];
    }
    weights[phase < 32 ? 1 : 2] += 64 - sum;
    for (int i = 0; i < 4; i++) {
      c->cubic16[phase][i] = (int16_t)weights[i];
      for (int row = 0; row < 4; row++) c->cubic8[phase][row * 4 + i] = (int8_t)weights[i];
    }
  }
  // exp(-i / 16)
  double value = 1;
  for (int i = 0; i < 256; i++) {
    c->decay[i] = (float)value;
    value *= 0.93941306281347579;
  }
}

OFContext *of_create(OFSettings s) {
  if (
    s.width < OFSmallestSide || s.height < OFSmallestSide || s.width > 16384 || s.height > 16384
    || s.depth < 8 || s.depth > 16 || (s.planeCount != 1 && s.planeCount != 3)) {
    return NULL;
  }
  OFContext *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->settings = s;
  const OFKernels *fast = s.isPlain ? NULL : of_kernels_avx2();
  c->kernels = fast ? fast : &of_kernels_plain;
  int64_t pixels = (int64_t)s.width * s.height;
  c->finest = pixels <= 200 * 160 ? 0 : pixels <= 1920 * 1088 ? 1 : 2;
  if (s.isFast && of_min(s.width, s.height) >= 64) c->finest += 1;
  c->stride = s.isFast ? 4 : 3;
  c->iterations = s.isFast ? 6 : 12;
  // A second round takes a third of the time more, and gains less than 0.01 dB.
  c->refinements = 1;
  int isComplete = 1;
  for (int slot = 0; slot < 2; slot++) {
    for (int plane = 0; plane < s.planeCount; plane++) {
      int shiftX = plane > 0 ? s.shiftX : 0, shiftY = plane > 0 ? s.shiftY : 0;
      isComplete = isComplete
        && of_create_image(
          c, &c->planes[slot][plane], (s.width + (1 << shiftX) - 1) >> shiftX,
          (s.height + (1 << shiftY) - 1) >> shiftY, s.depth > 8 ? 2 : 1);
    }
  }
  isComplete =
    isComplete && of_create_levels(c) && of_create_field(c) && of_create_scratch(c);
  if (!isComplete) {
    of_destroy(c);
    return NULL;
  }
  of_fill_tables(c);
  return c;
}

void of_destroy(OFContext *c) {
  for (int slot = 0; slot < 2; slot++) {
    for (int plane = 0; plane < 3; plane++) free(c->planes[slot][plane].memory);
    for (int k = 0; k < OF_MAX_LEVELS; k++) {
      OFLevel *level = &c->levels[k];
      // With 8 bits, the first level is the luma plane.
      if (k > 0 || c->settings.depth > 8) free(level->image[slot].memory);
      free(level->patches[slot].u);
      free(level->patches[slot].v);
      free(level->patches[slot].cost);
      free(level->patches[slot].error);
      free(level->u[slot]);
      free(level->v[slot]);
    }
    for (int i = 0; i < 3; i++) free(c->sums[slot][i]);
    free(c->reliability[slot]);
  }
  for (int k = 0; k < 16; k++) {
    free(c->fill[k].weight);
    free(c->fill[k].u);
    free(c->fill[k].v);
  }
  free(c->share);
  free(c->isEdge);
  free(c->scratch);
  free(c->rowScratch);
  free(c->age);
  free(c->nextAge);
  free(c->staticKinds);
  free(c->blockSums);
  free(c->staticSums);
  free(c->differences);
  free(c->counts);
  free(c);
}

size_t of_byte_count(const OFContext *c) { return c->byteCount; }
