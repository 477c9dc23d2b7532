// SPDX-License-Identifier: Apache-2.0
//
// The inverse search of DIS (Kroeger et al. 2016): each patch of a regular grid is moved until it
// fits the other frame, with its mean removed, starting from the motion of the coarser level and
// the motions of its neighbors. Included twice, like primitives.h.

/// The position of a patch of the grid.
static inline int of_patch_start(int index, int stride, int size) {
  return of_min(index * stride, size - OF_PATCH);
}

static inline void of_prepare_patch(OFPatch *patch, const OFImage *image, int x, int y) {
  const uint8_t *p = of_at(image, x, y);
  ptrdiff_t stride = image->stride;
  for (int row = 0; row < 8; row++) {
    const uint8_t *q = p + row * stride;
    for (int column = 0; column < 8; column++) {
      int index = row * 8 + column;
      patch->value[index] = (int16_t)(q[column] << 4);
      patch->gradientX[index] = (int16_t)(q[column + 1] - q[column - 1]);
      patch->gradientY[index] = (int16_t)(q[column + stride] - q[column - stride]);
    }
  }
  int sumX = 0, sumY = 0, xx = 0, xy = 0, yy = 0;
  for (int index = 0; index < 64; index++) {
    int gx = patch->gradientX[index], gy = patch->gradientY[index];
    sumX += gx;
    sumY += gy;
    xx += gx * gx;
    xy += gx * gy;
    yy += gy * gy;
  }
  patch->sumX = (float)sumX;
  patch->sumY = (float)sumY;
  // A small value on the diagonal keeps flat patches where they are.
  float a = (float)xx - patch->sumX * patch->sumX / 64.0f + 64.0f;
  float b = (float)xy - patch->sumX * patch->sumY / 64.0f;
  float d = (float)yy - patch->sumY * patch->sumY / 64.0f + 64.0f;
  float determinant = a * d - b * b;
  float scale = 1.0f / (8.0f * of_maxf(determinant, 1.0f));
  patch->inverseXX = d * scale;
  patch->inverseXY = -b * scale;
  patch->inverseYY = a * scale;
}

static inline float of_normalized(OFSums sums) {
  return (float)sums.squares - (float)sums.sum * (float)sums.sum * (1.0f / 64.0f);
}

/// Returns the cost of a motion: squared differences in 16ths, with the mean removed.
static inline float of_cost(
  const OFPatch *patch, const OFImage *other, int x, int y, float u, float v
) {
  int weights[4];
  const uint8_t *p = of_block(other, (float)x + u, (float)y + v, weights);
  return of_normalized(of_compare_patch(patch, p, other->stride, weights));
}

/// Moves a patch downhill from its motion, while its cost falls.
static inline void of_descend(
  const OFPatch *patch, const OFImage *other, int x, int y, float *motionU, float *motionV,
  float *motionCost, int iterations
) {
  float u = *motionU, v = *motionV, firstU = u, firstV = v;
  float best = 3.0e38f;
  for (int iteration = 0; iteration <= iterations; iteration++) {
    int weights[4];
    const uint8_t *p = of_block(other, (float)x + u, (float)y + v, weights);
    OFSums sums = of_compare_patch(patch, p, other->stride, weights);
    float cost = of_normalized(sums);
    if (!(cost < best)) break;
    *motionU = u;
    *motionV = v;
    float gain = best - cost;
    best = cost;
    if (gain < cost * 0.004f) break;
    float bx = (float)sums.x - (float)sums.sum * patch->sumX * (1.0f / 64.0f);
    float by = (float)sums.y - (float)sums.sum * patch->sumY * (1.0f / 64.0f);
    float stepU = patch->inverseXX * bx + patch->inverseXY * by;
    float stepV = patch->inverseXY * bx + patch->inverseYY * by;
    if (of_absf(stepU) + of_absf(stepV) < 0.02f) break;
    u -= stepU;
    v -= stepV;
    if (of_absf(u - firstU) + of_absf(v - firstV) > (float)OF_PATCH) break;
  }
  *motionCost = best;
}

/// Takes another motion if it costs less.
static inline void of_try(
  const OFPatch *patch, const OFImage *other, int x, int y, float u, float v, float margin,
  float *bestU, float *bestV, float *bestCost
) {
  if (of_absf(u - *bestU) + of_absf(v - *bestV) < 0.1f) return;
  float cost = of_cost(patch, other, x, y, u, v);
  if (cost < *bestCost * margin) {
    *bestU = u;
    *bestV = v;
    *bestCost = cost;
  }
}

/// The reach of the full search, in pixels of the frame.
#define OF_REACH 40

/// Looks for a patch everywhere in its neighborhood.
static inline void of_search_everywhere(
  const OFImage *image, const OFImage *other, int x, int y, int reach, float *u, float *v
) {
  const uint8_t *patch = of_at(image, x, y);
  int best = of_absolute_difference(patch, image->stride, of_at(other, x, y), other->stride);
  int bestX = 0, bestY = 0;
  int left = of_max(-reach, -x - 4), right = of_min(reach, other->width - 4 - x);
  int top = of_max(-reach, -y - 4), bottom = of_min(reach, other->height - 4 - y);
  for (int dy = top; dy <= bottom; dy++) {
    const uint8_t *row = of_at(other, x, y + dy);
    for (int dx = left; dx <= right; dx++) {
      int length = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
      int cost =
        of_absolute_difference(patch, image->stride, row + dx, other->stride) + length * 2;
      if (cost < best) {
        best = cost;
        bestX = dx;
        bestY = dy;
      }
    }
  }
  *u = (float)bestX;
  *v = (float)bestY;
}

static void of_store_errors(
  const OFContext *c, OFLevel *level, int direction, int first, int last
) {
  OFPatches *patches = &level->patches[direction];
  const OFImage *image = &level->image[of_slot(c, direction)];
  const OFImage *other = &level->image[1 - of_slot(c, direction)];
  for (int row = first; row < last; row++) {
    int y = of_patch_start(row, c->stride, level->height);
    for (int column = 0; column < level->columns; column++) {
      int x = of_patch_start(column, c->stride, level->width);
      int index = row * level->columns + column;
      int w[4];
      const uint8_t *q =
        of_block(other, (float)x + patches->u[index], (float)y + patches->v[index], w);
      const uint8_t *p = of_at(image, x, y);
      uint8_t *error = patches->error + (size_t)index * 64;
      ptrdiff_t s = other->stride;
      for (int i = 0; i < 8; i++) {
        const uint8_t *a = p + i * image->stride, *b = q + i * s;
        for (int j = 0; j < 8; j++) {
          int sample = (w[0] * b[j] + w[1] * b[j + 1] + w[2] * b[j + s] + w[3] * b[j + s + 1]) >> 8;
          int d = a[j] - sample;
          error[i * 8 + j] = (uint8_t)(d < 0 ? -d : d);
        }
      }
    }
  }
}

static void OF_NAME(search)(OFContext *c, int number, int direction, int stripe) {
  OFLevel *level = &c->levels[number];
  const OFLevel *coarse = number + 1 < c->levelCount ? &c->levels[number + 1] : NULL;
  OFPatches *patches = &level->patches[direction];
  const OFImage *image = &level->image[of_slot(c, direction)];
  const OFImage *other = &level->image[1 - of_slot(c, direction)];
  int first = stripe * OF_PATCH_ROWS, last = of_min(first + OF_PATCH_ROWS, level->rows);
  int columns = level->columns;
  int isFinest = number == c->finest, isChanged = 0;
  for (int pass = 0; pass < 3; pass++) {
    if (pass == 2 && !isChanged) break;
    int isBackward = pass == 1, step = isBackward ? 1 : -1;
    for (int i = 0; i < last - first; i++) {
      int row = isBackward ? last - 1 - i : first + i;
      int y = of_patch_start(row, c->stride, level->height);
      for (int j = 0; j < columns; j++) {
        int column = isBackward ? columns - 1 - j : j;
        int x = of_patch_start(column, c->stride, level->width);
        int index = row * columns + column;
        OFPatch patch;
        of_prepare_patch(&patch, image, x, y);
        float u = 0, v = 0, cost;
        if (pass == 0) {
          if (coarse) {
            int cx = of_min((x + 4) / 2, coarse->width - 1);
            int cy = of_min((y + 4) / 2, coarse->height - 1);
            u = 2.0f * coarse->u[direction][cy * coarse->width + cx];
            v = 2.0f * coarse->v[direction][cy * coarse->width + cx];
          }
          cost = of_cost(&patch, other, x, y, u, v);
          of_try(&patch, other, x, y, 0, 0, 0.9f, &u, &v, &cost);
        } else {
          u = patches->u[index];
          v = patches->v[index];
          cost = patches->cost[index];
        }
        float before = cost;
        int acrossColumn = column + step, acrossRow = row + step;
        if (acrossColumn >= 0 && acrossColumn < columns) {
          int n = row * columns + acrossColumn;
          of_try(&patch, other, x, y, patches->u[n], patches->v[n], 1, &u, &v, &cost);
        }
        if (acrossRow >= first && acrossRow < last) {
          int n = acrossRow * columns + column;
          of_try(&patch, other, x, y, patches->u[n], patches->v[n], 1, &u, &v, &cost);
        }
        if (pass == 0 || cost < before) {
          of_descend(&patch, other, x, y, &u, &v, &cost, c->iterations);
        }
        // If even the finest level fits badly, the motion may be too large for the pyramid.
        if (isFinest && pass == 0 && (row + column) % 2 == 1 && cost > 64.0f * 200 * 200) {
          float farU, farV, farCost;
          of_search_everywhere(image, other, x, y, OF_REACH >> number, &farU, &farV);
          if (of_absf(farU - u) + of_absf(farV - v) >= 1.5f) {
            of_descend(&patch, other, x, y, &farU, &farV, &farCost, c->iterations);
            if (farCost < cost * 0.3f) {
              u = farU;
              v = farV;
              cost = farCost;
              isChanged = 1;
            }
          }
        }
        patches->u[index] = u;
        patches->v[index] = v;
        patches->cost[index] = cost;
      }
    }
  }
  of_store_errors(c, level, direction, first, last);
}
