// SPDX-License-Identifier: Apache-2.0
//
// The motion at an instant between two frames. Included twice, like primitives.h.

/// The mean of the motions that both directions agree on.
static inline void of_mean_motion(
  const OFContext *c, int direction, float *meanU, float *meanV
) {
  int height = c->levels[c->finest].height;
  double totalU = 0, totalV = 0, count = 0;
  for (int stripe = 0; stripe < of_stripes(height, OF_ROWS); stripe++) {
    const OFCounts *counts = &c->counts[2 * stripe + direction];
    totalU += counts->u;
    totalV += counts->v;
    count += counts->consistent;
  }
  *meanU = count > 0 ? (float)(totalU / count) : 0.0f;
  *meanV = count > 0 ? (float)(totalV / count) : 0.0f;
}

/// How much a motion of one pixel beside the mean weighs more, and the most.
#define OF_FRONT 0.02f
#define OF_MOST 20.0f

/// Carries each motion to where its pixel is at the instant.
///
/// If two motions meet at a pixel, the one that differs more from the mean motion wins, because
/// small moving objects are usually in front of the background.
static void OF_NAME(splat)(OFContext *c, int direction) {
  const OFLevel *level = &c->levels[c->finest];
  int width = level->width, height = level->height;
  float *sum = c->sums[direction][0], *sumU = c->sums[direction][1], *sumV = c->sums[direction][2];
  size_t length = (size_t)width * (size_t)height;
  memset(sum, 0, length * sizeof(float));
  memset(sumU, 0, length * sizeof(float));
  memset(sumV, 0, length * sizeof(float));
  float part = direction == 0 ? c->instant : 1.0f - c->instant;
  float sign = direction == 0 ? 1.0f : -1.0f;
  float meanU, meanV;
  of_mean_motion(c, direction, &meanU, &meanV);
  float scale = OF_FRONT * (float)(1 << (2 * c->finest));
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      ptrdiff_t at = (ptrdiff_t)y * width + x;
      float weight = c->reliability[direction][at];
      float u = level->u[direction][at], v = level->v[direction][at];
      float besideU = u - meanU, besideV = v - meanV;
      weight *= 1.0f + of_minf((besideU * besideU + besideV * besideV) * scale, OF_MOST);
      float endX = (float)x + part * u, endY = (float)y + part * v;
      if (!(endX > -1.0f && endY > -1.0f && endX < (float)width && endY < (float)height)) continue;
      int left = (int)(endX + 1.0f) - 1, top = (int)(endY + 1.0f) - 1;
      float fx = endX - (float)left, fy = endY - (float)top;
      u *= sign;
      v *= sign;
      for (int corner = 0; corner < 4; corner++) {
        int cx = left + (corner & 1), cy = top + (corner >> 1);
        if (cx < 0 || cy < 0 || cx >= width || cy >= height) continue;
        float w = weight * (corner & 1 ? fx : 1.0f - fx) * (corner & 2 ? fy : 1.0f - fy);
        ptrdiff_t to = (ptrdiff_t)cy * width + cx;
        sum[to] += w;
        sumU[to] += w * u;
        sumV[to] += w * v;
      }
    }
  }
}

/// Fills pixels that no motion ends at: means of ever larger areas, and back.
static void OF_NAME(fillHoles)(OFContext *c) {
  OFFillLevel *fine = &c->fill[0];
  size_t length = (size_t)fine->width * (size_t)fine->height;
  const float *w0 = c->sums[0][0], *u0 = c->sums[0][1], *v0 = c->sums[0][2];
  const float *w1 = c->sums[1][0], *u1 = c->sums[1][1], *v1 = c->sums[1][2];
  for (size_t i = 0; i < length; i++) {
    float sum = w0[i] + w1[i];
    float inverse = 1.0f / of_maxf(sum, 1.0e-12f);
    fine->u[i] = (u0[i] + u1[i]) * inverse;
    fine->v[i] = (v0[i] + v1[i]) * inverse;
    fine->weight[i] = of_minf(sum * 4.0f, 1.0f);
  }
  for (int k = 1; k < c->fillCount; k++) {
    const OFFillLevel *from = &c->fill[k - 1];
    OFFillLevel *to = &c->fill[k];
    for (int y = 0; y < to->height; y++) {
      for (int x = 0; x < to->width; x++) {
        float sum = 0, u = 0, v = 0;
        for (int corner = 0; corner < 4; corner++) {
          int cx = 2 * x + (corner & 1), cy = 2 * y + (corner >> 1);
          if (cx >= from->width || cy >= from->height) continue;
          ptrdiff_t at = (ptrdiff_t)cy * from->width + cx;
          sum += from->weight[at];
          u += from->weight[at] * from->u[at];
          v += from->weight[at] * from->v[at];
        }
        float inverse = 1.0f / of_maxf(sum, 1.0e-12f);
        ptrdiff_t at = (ptrdiff_t)y * to->width + x;
        to->u[at] = u * inverse;
        to->v[at] = v * inverse;
        to->weight[at] = of_minf(sum, 1.0f);
      }
    }
  }
  for (int k = c->fillCount - 2; k >= 0; k--) {
    OFFillLevel *to = &c->fill[k];
    const OFFillLevel *from = &c->fill[k + 1];
    for (int y = 0; y < to->height; y++) {
      for (int x = 0; x < to->width; x++) {
        ptrdiff_t at = (ptrdiff_t)y * to->width + x;
        float weight = to->weight[at];
        if (weight >= 1.0f) continue;
        ptrdiff_t coarse = (ptrdiff_t)(y / 2) * from->width + x / 2;
        to->u[at] = weight * to->u[at] + (1.0f - weight) * from->u[coarse];
        to->v[at] = weight * to->v[at] + (1.0f - weight) * from->v[coarse];
      }
    }
  }
}

/// How differently the two frames look at the ends of a motion through a block at the instant.
static inline int of_motion_cost(
  const OFContext *c, const OFImage *a, const OFImage *b, int x, int y, float u, float v
) {
  int wa[4], wb[4];
  float t = c->instant;
  const uint8_t *p = of_block(a, (float)x - t * u, (float)y - t * v, wa);
  const uint8_t *q = of_block(b, (float)x + (1.0f - t) * u, (float)y + (1.0f - t) * v, wb);
  return of_two_sided(p, a->stride, wa, q, b->stride, wb);
}

/// The mean difference of a block above which the motion of what is behind may replace its motion,
/// in 16ths. Below it, a thing that moves quickly would vanish: what is behind the middle of its way
/// is visible in both frames and fits them perfectly.
#define OF_BEHIND (64 * 16 * 60)

/// Rows of blocks of 4x4 pixels in a stripe.
#define OF_CHOICE_ROWS 12

/// Replaces the motion of blocks where another one fits the two frames better.
static void OF_NAME(choose)(OFContext *c, int stripe) {
  const OFLevel *level = &c->levels[c->finest];
  const OFImage *a = &level->image[1 - c->newer], *b = &level->image[c->newer];
  const OFFillLevel *field = &c->fill[0];
  int width = level->width, height = level->height;
  float *outU = c->sums[0][1], *outV = c->sums[0][2];
  float meanU, meanV;
  of_mean_motion(c, 0, &meanU, &meanV);
  int rows = of_stripes(height, 4);
  int last = of_min((stripe + 1) * OF_CHOICE_ROWS, rows);
  for (int row = stripe * OF_CHOICE_ROWS; row < last; row++) {
    int top = row * 4, bottom = of_min(top + 4, height);
    for (int y = top; y < bottom; y++) {
      ptrdiff_t at = (ptrdiff_t)y * width;
      memcpy(outU + at, field->u + at, (size_t)width * sizeof(float));
      memcpy(outV + at, field->v + at, (size_t)width * sizeof(float));
    }
    int midY = of_min(top + 2, height - 1);
    for (int x = 0; x < width; x += 4) {
      int midX = of_min(x + 2, width - 1);
      ptrdiff_t mid = (ptrdiff_t)midY * width + midX;
      float u = field->u[mid], v = field->v[mid];
      int own = of_motion_cost(c, a, b, x - 2, top - 2, u, v);
      if (own < 64 * 16 * 3) continue;
      int best = own - own / 4;
      float beside = of_absf(u - meanU) + of_absf(v - meanV);
      float bestU = u, bestV = v;
      for (int number = 0; number < 7; number++) {
        float otherU = 0, otherV = 0;
        if (number < 4) {
          int nearX = of_clamp(midX + (number == 0 ? -5 : number == 1 ? 5 : 0), 0, width - 1);
          int nearY = of_clamp(midY + (number == 2 ? -5 : number == 3 ? 5 : 0), 0, height - 1);
          otherU = field->u[(ptrdiff_t)nearY * width + nearX];
          otherV = field->v[(ptrdiff_t)nearY * width + nearX];
        } else if (number == 4) {
          otherU = level->u[0][mid];
          otherV = level->v[0][mid];
        } else if (number == 5) {
          otherU = -level->u[1][mid];
          otherV = -level->v[1][mid];
        }
        if (of_absf(otherU - u) + of_absf(otherV - v) < 0.4f) continue;
        float otherBeside = of_absf(otherU - meanU) + of_absf(otherV - meanV);
        if (otherBeside + 1.0f < beside && own < OF_BEHIND) continue;
        int cost = of_motion_cost(c, a, b, x - 2, top - 2, otherU, otherV);
        if (cost < best) {
          best = cost;
          bestU = otherU;
          bestV = otherV;
        }
      }
      if (bestU == u && bestV == v) continue;
      int right = of_min(x + 4, width);
      for (int y = top; y < bottom; y++) {
        for (int i = x; i < right; i++) {
          outU[(ptrdiff_t)y * width + i] = bestU;
          outV[(ptrdiff_t)y * width + i] = bestV;
        }
      }
    }
  }
}

/// How far the motion of a frame's pixel agrees with the projected one.
///
/// A pixel whose own motion is reliable and another one belongs to something else. A pixel that has
/// no reliable motion may as well be visible in this frame alone.
static inline float of_agreement(
  const OFContext *c, int direction, float x, float y, float u, float v, float scale
) {
  const OFLevel *level = &c->levels[c->finest];
  int width = level->width, height = level->height;
  int isInside = x > -0.75f && y > -0.75f && x < (float)width - 0.25f && y < (float)height - 0.25f;
  x = of_minf(of_maxf(x, 0.0f), (float)(width - 1));
  y = of_minf(of_maxf(y, 0.0f), (float)(height - 1));
  ptrdiff_t at = (ptrdiff_t)(int)(y + 0.5f) * width + (int)(x + 0.5f);
  float du = level->u[direction][at] - u, dv = level->v[direction][at] - v;
  float inverse = 1.0f / (1.0f + (du * du + dv * dv) * scale);
  float unsure = 1.0f - c->reliability[direction][at];
  unsure *= unsure;
  return (inverse * inverse + 0.01f + unsure * unsure) * (isInside ? 1.0f : 0.001f);
}

/// The share of the newer frame: each frame counts as far as its motion agrees with the projected
/// one. Also marks the edges of what moves.
static void OF_NAME(weigh)(OFContext *c, int stripe) {
  const OFLevel *level = &c->levels[c->finest];
  int width = level->width, height = level->height;
  const float *u = c->sums[0][1], *v = c->sums[0][2];
  float t = c->instant;
  float scale = (float)(1 << (2 * c->finest)) / 8.0f;
  int last = of_min((stripe + 1) * OF_ROWS, height);
  for (int y = stripe * OF_ROWS; y < last; y++) {
    for (int x = 0; x < width; x++) {
      ptrdiff_t at = (ptrdiff_t)y * width + x;
      float w0 = (1.0f - t) * of_agreement(
        c, 0, (float)x - t * u[at], (float)y - t * v[at], u[at], v[at], scale);
      float w1 = t * of_agreement(
        c, 1, (float)x + (1.0f - t) * u[at], (float)y + (1.0f - t) * v[at], -u[at], -v[at],
        scale);
      c->share[at] = 128.0f * w1 / of_maxf(w0 + w1, 1.0e-12f);
    }
    of_mark_edges(c, y);
  }
}
