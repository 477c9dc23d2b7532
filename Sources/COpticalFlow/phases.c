// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "context.h"

#pragma STDC FP_CONTRACT OFF

void of_set_frame(OFContext *c, const OFPlane *planes, int32_t replacesNewer) {
  if (!replacesNewer) c->newer = 1 - c->newer;
  for (int plane = 0; plane < c->settings.planeCount; plane++) c->input[plane] = planes[plane];
}

void of_reset_history(OFContext *c) {
  memset(c->age, 0, (size_t)c->settings.width * (size_t)c->settings.height);
}

void of_commit_history(OFContext *c) {
  uint8_t *age = c->age;
  c->age = c->nextAge;
  c->nextAge = age;
}

void of_set_output(OFContext *c, float instant, const OFPlane *planes) {
  c->instant = of_minf(of_maxf(instant, 0), 1);
  for (int plane = 0; plane < c->settings.planeCount; plane++) c->output[plane] = planes[plane];
}

void of_set_blend(OFContext *c, int32_t isBlend) { c->isBlend = isBlend; }

int32_t of_step_count(const OFContext *c, OFPhase phase) {
  switch (phase) {
  case OFPhaseLoad: return c->levelCount;
  case OFPhaseCompare: return 1;
  // A search and a refinement for each level, and two that look at the result.
  case OFPhaseFlow: return 2 * (c->levelCount - c->finest) + 1;
  case OFPhaseRender: return 5;
  }
  return 0;
}

int32_t of_stripe_count(const OFContext *c, OFPhase phase, int32_t step) {
  int height = c->settings.height;
  const OFLevel *finest = &c->levels[c->finest];
  switch (phase) {
  case OFPhaseLoad: return of_stripes(c->levels[step].height, OF_ROWS);
  case OFPhaseCompare: return of_stripes(height, 16 * 3);
  case OFPhaseFlow: {
    int steps = of_step_count(c, phase);
    if (step == steps - 1) {
      return 2 * of_stripes(finest->height, OF_ROWS) + of_stripes(height, OF_ROWS);
    }
    const OFLevel *level = &c->levels[c->levelCount - 1 - step / 2];
    return 2
      * (step % 2 ? of_stripes(level->height, OF_ROWS) : of_stripes(level->rows, OF_PATCH_ROWS));
  }
  case OFPhaseRender:
    switch (step) {
    case 0: return 2;
    case 1: return 1;
    case 2: return of_stripes(of_stripes(finest->height, 4), 12);
    case 3: return of_stripes(finest->height, OF_ROWS);
    default: return of_stripes(height, OF_ROWS) * c->settings.planeCount;
    }
  }
  return 0;
}

static void of_run_flow(OFContext *c, int step, int stripe) {
  if (step == of_step_count(c, OFPhaseFlow) - 1) {
    int count = 2 * of_stripes(c->levels[c->finest].height, OF_ROWS);
    if (stripe < count) {
      c->kernels->judge(c, stripe & 1, stripe >> 1);
    } else {
      c->kernels->markStatic(c, stripe - count);
    }
    return;
  }
  int level = c->levelCount - 1 - step / 2;
  if (step % 2) {
    c->kernels->refine(c, level, stripe & 1, stripe >> 1);
  } else {
    c->kernels->search(c, level, stripe & 1, stripe >> 1);
  }
}

void of_run(OFContext *c, OFPhase phase, int32_t step, int32_t stripe) {
  const OFKernels *k = c->kernels;
  switch (phase) {
  case OFPhaseLoad:
    if (step == 0) {
      k->load(c, stripe);
    } else {
      k->shrink(c, step, stripe);
    }
    break;
  case OFPhaseCompare: k->compare(c, stripe); break;
  case OFPhaseFlow: of_run_flow(c, step, stripe); break;
  case OFPhaseRender:
    switch (step) {
    case 0: if (!c->isBlend) k->splat(c, stripe); break;
    case 1: if (!c->isBlend) k->fillHoles(c); break;
    case 2: if (!c->isBlend) k->choose(c, stripe); break;
    case 3: if (!c->isBlend) k->weigh(c, stripe); break;
    default: {
      int planes = c->settings.planeCount;
      k->render(c, stripe % planes, stripe / planes);
    }
    }
    break;
  }
}

OFStatistics of_statistics(const OFContext *c) {
  OFStatistics result = {0, 0, 0, 0};
  int width = c->settings.width, height = c->settings.height;
  int columns = of_stripes(width, 16), rows = of_stripes(height, 16);
  for (int row = 0; row < rows; row++) {
    int blockHeight = of_min(16, height - row * 16);
    for (int column = 0; column < columns; column++) {
      int pixels = blockHeight * of_min(16, width - column * 16);
      float mean = (float)c->blockSums[row * columns + column] / (float)pixels;
      result.blockDifference = of_maxf(result.blockDifference, mean);
    }
  }
  int64_t difference = 0, residual = 0, counted = 0, inconsistent = 0;
  for (int stripe = 0; stripe < of_stripes(height, 16 * 3); stripe++) {
    difference += c->differences[stripe];
  }
  result.difference = (float)((double)difference / ((double)width * height));
  for (int i = 0; i < 2 * of_stripes(c->levels[c->finest].height, OF_ROWS); i++) {
    residual += c->counts[i].residual;
    counted += c->counts[i].counted;
    inconsistent += c->counts[i].inconsistent;
  }
  if (counted > 0) {
    result.residual = (float)((double)residual / (double)counted);
    result.inconsistentShare = (float)((double)inconsistent / (double)counted);
  }
  return result;
}

void of_motion(
  const OFContext *c, int32_t direction, int32_t x, int32_t y, float *motionX, float *motionY
) {
  const OFLevel *level = &c->levels[c->finest];
  int column = of_clamp(x >> c->finest, 0, level->width - 1);
  int row = of_clamp(y >> c->finest, 0, level->height - 1);
  ptrdiff_t at = (ptrdiff_t)row * level->width + column;
  *motionX = level->u[direction][at] * (float)(1 << c->finest);
  *motionY = level->v[direction][at] * (float)(1 << c->finest);
}
