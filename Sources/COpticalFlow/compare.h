// SPDX-License-Identifier: Apache-2.0
//
// Loading of frames, and what can be seen without knowing the motion between them. Included twice,
// like primitives.h.

/// Fills the border left and right of a row.
static inline void of_pad_row(const OFImage *image, int y) {
  uint8_t *row = image->pixels + (ptrdiff_t)y * image->stride;
  if (image->sampleBytes == 1) {
    memset(row - OF_PAD, row[0], OF_PAD);
    memset(row + image->width, row[image->width - 1], OF_PAD);
  } else {
    uint16_t *samples = (uint16_t *)(void *)row;
    for (int i = 1; i <= OF_PAD; i++) {
      samples[-i] = samples[0];
      samples[image->width - 1 + i] = samples[image->width - 1];
    }
  }
}

/// Repeats a row with its border above or below the image.
static inline void of_repeat_row(const OFImage *image, int y, int step) {
  size_t length = (size_t)(image->width + 2 * OF_PAD) * (size_t)image->sampleBytes;
  const uint8_t *row =
    image->pixels + (ptrdiff_t)y * image->stride - OF_PAD * image->sampleBytes;
  for (int i = 1; i <= OF_PAD; i++) {
    memcpy((uint8_t *)row + (ptrdiff_t)(step * i) * image->stride, row, length);
  }
}

static inline void of_pad(const OFImage *image, int first, int last) {
  for (int y = first; y < last; y++) of_pad_row(image, y);
  if (first == 0) of_repeat_row(image, 0, -1);
  if (last == image->height) of_repeat_row(image, image->height - 1, 1);
}

static void OF_NAME(load)(OFContext *c, int stripe) {
  int isLast = (stripe + 1) * OF_ROWS >= c->settings.height;
  for (int plane = 0; plane < c->settings.planeCount; plane++) {
    const OFImage *image = &c->planes[c->newer][plane];
    int shift = plane > 0 ? c->settings.shiftY : 0;
    int first = (stripe * OF_ROWS) >> shift;
    int last = isLast ? image->height : ((stripe + 1) * OF_ROWS) >> shift;
    for (int y = first; y < last; y++) {
      memcpy(
        image->pixels + (ptrdiff_t)y * image->stride,
        c->input[plane].data + (ptrdiff_t)y * c->input[plane].bytesPerRow,
        (size_t)image->width * (size_t)image->sampleBytes);
    }
    of_pad(image, first, last);
  }
  if (c->settings.depth == 8) return;
  const OFImage *deep = &c->planes[c->newer][0], *image = &c->levels[0].image[c->newer];
  int first = stripe * OF_ROWS, last = of_min(first + OF_ROWS, image->height);
  int shift = c->settings.depth - 8;
  for (int y = first; y < last; y++) {
    const uint16_t *from = (const uint16_t *)(const void *)(deep->pixels + (ptrdiff_t)y * deep->stride);
    uint8_t *to = image->pixels + (ptrdiff_t)y * image->stride;
    for (int x = 0; x < image->width; x++) to[x] = (uint8_t)(from[x] >> shift);
  }
  of_pad(image, first, last);
}

static void OF_NAME(shrink)(OFContext *c, int number, int stripe) {
  const OFImage *large = &c->levels[number - 1].image[c->newer];
  const OFImage *image = &c->levels[number].image[c->newer];
  int first = stripe * OF_ROWS, last = of_min(first + OF_ROWS, image->height);
  for (int y = first; y < last; y++) {
    const uint8_t *restrict a = large->pixels + (ptrdiff_t)(2 * y) * large->stride;
    const uint8_t *restrict b = a + large->stride;
    uint8_t *restrict to = image->pixels + (ptrdiff_t)y * image->stride;
    for (int x = 0; x < image->width; x++) {
      to[x] = (uint8_t)((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1] + 2) >> 2);
    }
  }
  of_pad(image, first, last);
}

/// The rows of blocks of 16x16 pixels in a stripe of a comparison.
#define OF_BLOCK_ROWS 3

static void OF_NAME(compare)(OFContext *c, int stripe) {
  const OFImage *a = &c->levels[0].image[1 - c->newer], *b = &c->levels[0].image[c->newer];
  int width = a->width, columns = of_stripes(width, 16), rows = of_stripes(a->height, 16);
  int64_t total = 0;
  int last = of_min((stripe + 1) * OF_BLOCK_ROWS, rows);
  for (int block = stripe * OF_BLOCK_ROWS; block < last; block++) {
    int *sums = c->blockSums + (ptrdiff_t)block * columns;
    memset(sums, 0, (size_t)columns * sizeof(int));
    int bottom = of_min(block * 16 + 16, a->height);
    for (int y = block * 16; y < bottom; y++) {
      const uint8_t *restrict p = a->pixels + (ptrdiff_t)y * a->stride;
      const uint8_t *restrict q = b->pixels + (ptrdiff_t)y * b->stride;
      const uint8_t *restrict age = c->age + (ptrdiff_t)y * width;
      uint8_t *restrict next = c->nextAge + (ptrdiff_t)y * width;
      for (int x = 0; x < width; x++) {
        uint8_t d = p[x] > q[x] ? (uint8_t)(p[x] - q[x]) : (uint8_t)(q[x] - p[x]);
        uint8_t older = (uint8_t)(age[x] < 250 ? age[x] + 1 : 250);
        next[x] = d <= 4 ? older : 0;
      }
      for (int column = 0; column < columns; column++) {
        int right = of_min(column * 16 + 16, width), sum = 0;
        for (int x = column * 16; x < right; x++) {
          int d = p[x] - q[x];
          sum += d < 0 ? -d : d;
        }
        sums[column] += sum;
      }
    }
    for (int column = 0; column < columns; column++) total += sums[column];
  }
  c->differences[stripe] = total;
}

/// How far the motions of both directions can be trusted, for the finest level.
static void OF_NAME(judge)(OFContext *c, int direction, int stripe) {
  const OFLevel *level = &c->levels[c->finest];
  const OFImage *image = &level->image[of_slot(c, direction)];
  const OFImage *other = &level->image[1 - of_slot(c, direction)];
  const float *u = level->u[direction], *v = level->v[direction];
  const float *backU = level->u[1 - direction], *backV = level->v[1 - direction];
  int width = level->width, height = level->height;
  float scale = (float)(1 << c->finest);
  OFCounts counts = {0, 0, 0, 0, 0, 0};
  int last = of_min((stripe + 1) * OF_ROWS, height);
  for (int y = stripe * OF_ROWS; y < last; y++) {
    for (int x = 0; x < width; x++) {
      ptrdiff_t at = (ptrdiff_t)y * width + x;
      float endX = (float)x + u[at], endY = (float)y + v[at];
      float residual = of_absf(of_warped(other, endX, endY) - (float)*of_at(image, x, y));
      float across = 0;
      int isInside = endX >= -0.5f && endY >= -0.5f && endX < (float)width - 0.5f
        && endY < (float)height - 0.5f;
      if (isInside) {
        int nearX = of_min((int)(endX + 0.5f), width - 1);
        int nearY = of_min((int)(endY + 0.5f), height - 1);
        ptrdiff_t end = (ptrdiff_t)nearY * width + nearX;
        float du = u[at] + backU[end], dv = v[at] + backV[end];
        across = __builtin_sqrtf(du * du + dv * dv) * scale;
        counts.counted += 1;
        if (across > 1.5f) {
          counts.inconsistent += 1;
        } else {
          counts.consistent += 1;
          counts.u += (double)u[at];
          counts.v += (double)v[at];
        }
        counts.residual += (int)residual;
      } else {
        across = 4;
      }
      float lost = of_minf(residual * 2.0f + across * 8.0f, 255.0f);
      c->reliability[direction][at] = c->decay[(int)lost];
    }
  }
  c->counts[2 * stripe + direction] = counts;
}

/// Marks pixels that stayed the same over several frames, without single ones.
static void OF_NAME(markStatic)(OFContext *c, int stripe) {
  int width = c->settings.width, height = c->settings.height;
  int last = of_min((stripe + 1) * OF_ROWS, height);
  uint8_t *sums = (uint8_t *)(c->rowScratch + c->rowLength * (size_t)stripe);
  for (int y = stripe * OF_ROWS; y < last; y++) {
    const uint8_t *restrict a = c->nextAge + (ptrdiff_t)of_max(y - 1, 0) * width;
    const uint8_t *restrict b = c->nextAge + (ptrdiff_t)y * width;
    const uint8_t *restrict d = c->nextAge + (ptrdiff_t)of_min(y + 1, height - 1) * width;
    for (int x = 0; x < width; x++) {
      sums[x + 1] = (uint8_t)((a[x] >= 3) + (b[x] >= 3) + (d[x] >= 3));
    }
    sums[0] = sums[width + 1] = 0;
    uint8_t *restrict out = c->staticKinds + (ptrdiff_t)y * width;
    // The strokes of a text are as narrow as two pixels.
    for (int x = 0; x < width; x++) {
      int isStill = (b[x] >= 3) & (sums[x] + sums[x + 1] + sums[x + 2] >= 4);
      out[x] = (uint8_t)(isStill ? OF_OVERLAY : OF_MOVING);
    }
  }
}

/// How many blocks of 16x16 pixels to each side are the surroundings of a block.
#define OF_AROUND 4

/// Separates static pixels in front of things that move from those of a background, by the static
/// share of their surroundings.
///
/// A burnt-in text stays in front of what moves. A still background does not: things pass in front
/// of it.
static void OF_NAME(keepOverlays)(OFContext *c) {
  int width = c->settings.width, height = c->settings.height;
  int columns = of_stripes(width, 16), rows = of_stripes(height, 16);
  memset(c->staticSums, 0, (size_t)columns * (size_t)rows * sizeof(int));
  for (int y = 0; y < height; y++) {
    const uint8_t *row = c->staticKinds + (ptrdiff_t)y * width;
    int *sums = c->staticSums + (ptrdiff_t)(y / 16) * columns;
    for (int column = 0; column < columns; column++) {
      int right = of_min(column * 16 + 16, width), sum = 0;
      for (int x = column * 16; x < right; x++) sum += row[x] == OF_OVERLAY;
      sums[column] += sum;
    }
  }
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) {
      if (c->staticSums[row * columns + column] == 0) continue;
      int top = of_max(row - OF_AROUND, 0), bottom = of_min(row + OF_AROUND, rows - 1);
      int left = of_max(column - OF_AROUND, 0), right = of_min(column + OF_AROUND, columns - 1);
      int sum = 0;
      for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) sum += c->staticSums[y * columns + x];
      }
      if (sum * 3 < (bottom - top + 1) * (right - left + 1) * 256) continue;
      int lastX = of_min(column * 16 + 16, width), lastY = of_min(row * 16 + 16, height);
      for (int y = row * 16; y < lastY; y++) {
        uint8_t *kinds = c->staticKinds + (ptrdiff_t)y * width;
        for (int x = column * 16; x < lastX; x++) {
          if (kinds[x] == OF_OVERLAY) kinds[x] = OF_BACKGROUND;
        }
      }
    }
  }
}
