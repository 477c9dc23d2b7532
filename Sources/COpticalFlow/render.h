// SPDX-License-Identifier: Apache-2.0
//
// The pixels at an instant: both frames, sampled at the ends of each pixel's motion with cubic
// filters, and mixed. Positions are in 64ths of a pixel. Included twice, like primitives.h.

#if OF_AVX2

static inline __m128i of_four_rows(const uint8_t *p, ptrdiff_t stride) {
  int32_t rows[4];
  memcpy(rows, p, 4);
  memcpy(rows + 1, p + stride, 4);
  memcpy(rows + 2, p + 2 * stride, 4);
  memcpy(rows + 3, p + 3 * stride, 4);
  return _mm_setr_epi32(rows[0], rows[1], rows[2], rows[3]);
}

/// The weighted sum of 4x4 pixels, times 2 to the power of 19.
static inline __m128i of_cubic(
  const OFContext *c, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int share
) {
  __m128i across = _mm_maddubs_epi16(
    of_four_rows(p, stride), _mm_loadu_si128((const __m128i *)c->cubic8[fx]));
  __m128i four = _mm_loadl_epi64((const __m128i *)c->cubic16[fy]);
  __m128i down = _mm_mullo_epi16(_mm_unpacklo_epi16(four, four), _mm_set1_epi16((short)share));
  return _mm_madd_epi16(across, down);
}

static inline int of_mixed(
  const OFContext *c, const uint8_t *p, ptrdiff_t strideP, int px, int py, const uint8_t *q,
  ptrdiff_t strideQ, int qx, int qy, int share
) {
  __m128i s = _mm_add_epi32(
    of_cubic(c, p, strideP, px, py, 128 - share), of_cubic(c, q, strideQ, qx, qy, share));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

#else

static inline int of_cubic(
  const OFContext *c, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int share
) {
  int sum = 0;
  for (int row = 0; row < 4; row++) {
    int across = 0;
    for (int column = 0; column < 4; column++) {
      across += p[row * stride + column] * c->cubic8[fx][column];
    }
    sum += across * c->cubic16[fy][row] * share;
  }
  return sum;
}

static inline int of_mixed(
  const OFContext *c, const uint8_t *p, ptrdiff_t strideP, int px, int py, const uint8_t *q,
  ptrdiff_t strideQ, int qx, int qy, int share
) {
  return of_cubic(c, p, strideP, px, py, 128 - share) + of_cubic(c, q, strideQ, qx, qy, share);
}

#endif

/// The weighted sum for samples of two bytes, times 2 to the power of 19.
static inline int64_t of_deep_cubic(
  const OFContext *c, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int share
) {
  int64_t sum = 0;
  for (int row = 0; row < 4; row++) {
    const uint16_t *samples = (const uint16_t *)(const void *)(p + row * stride);
    int across = 0;
    for (int column = 0; column < 4; column++) across += samples[column] * c->cubic16[fx][column];
    sum += (int64_t)across * (c->cubic16[fy][row] * share);
  }
  return sum;
}

typedef struct {
  int width;
  /// The field's row for the plane's row.
  float *u, *v, *share;
  /// The motion of each pixel of the plane, in pixels, and its share.
  float *pixelU, *pixelV, *pixelShare;
  /// The source position of each pixel in both frames, in 64ths, and its share, as whole numbers.
  int32_t *fromX, *fromY, *toX, *toY, *shares;
  /// Whether a pixel is the same position of both frames, blended.
  int32_t *isBlended;
} OFRow;

/// The rows of the field around a row of the plane, mixed.
static inline void of_mix_rows(
  const float *restrict a, const float *restrict b, float part, float *restrict out, int width
) {
  for (int x = 0; x < width; x++) out[x] = a[x] + part * (b[x] - a[x]);
}

/// A position as a whole number, limited to what is near the plane.
static inline int32_t of_whole_position(float position, float most) {
  // The sum with 1024 makes every value positive, so that the conversion rounds down.
  return (int32_t)(of_minf(of_maxf(position, -512.0f), most) + 1024.5f) - 1024;
}

/// Sets where the pixels of a row come from in both frames, by their motion.
static inline void of_set_positions(
  const OFContext *c, const OFRow *row, const OFImage *plane, int y
) {
  float t = c->instant * 64.0f, rest = 64.0f - t;
  float right = (float)(plane->width + 7) * 64.0f, bottom = (float)(plane->height + 7) * 64.0f;
  float py = (float)y * 64.0f;
  int width = plane->width;
  const float *restrict u = row->pixelU, *restrict v = row->pixelV;
  const float *restrict share = row->pixelShare;
  int32_t *restrict fromX = row->fromX, *restrict fromY = row->fromY;
  int32_t *restrict toX = row->toX, *restrict toY = row->toY, *restrict shares = row->shares;
  for (int x = 0; x < width; x++) {
    float px = (float)x * 64.0f;
    fromX[x] = of_whole_position(px - t * u[x], right);
    fromY[x] = of_whole_position(py - t * v[x], bottom);
    toX[x] = of_whole_position(px + rest * u[x], right);
    toY[x] = of_whole_position(py + rest * v[x], bottom);
    shares[x] = (int32_t)(share[x] + 0.5f);
  }
}

/// The position of a pixel of a plane in the field, along one axis.
static inline float of_field_position(int x, float step, int length) {
  return of_minf(of_maxf(((float)x + 0.5f) * step - 0.5f, 0.0f), (float)(length - 1));
}

/// Sets the motion of the pixels of a row, between those of the field.
static inline void of_mix_motions(
  const OFRow *row, int width, float stepX, float scaleX, float scaleY, int fieldWidth
) {
  const float *restrict u = row->u, *restrict v = row->v, *restrict share = row->share;
  float *restrict pixelU = row->pixelU, *restrict pixelV = row->pixelV;
  float *restrict pixelShare = row->pixelShare;
  for (int x = 0; x < width; x++) {
    float at = of_field_position(x, stepX, fieldWidth);
    int left = (int)at, next = of_min(left + 1, fieldWidth - 1);
    float part = at - (float)left;
    pixelU[x] = (u[left] + part * (u[next] - u[left])) * scaleX;
    pixelV[x] = (v[left] + part * (v[next] - v[left])) * scaleY;
    pixelShare[x] = share[left] + part * (share[next] - share[left]);
  }
}

/// Sets the motion of the pixels of a row that are at the edges of what moves.
///
/// `top` and `next` are the rows of the field around the row, and `down` its position between them.
static inline void of_choose_motions(
  const OFContext *c, const OFRow *row, int width, int y, float stepX, float stepY, int top,
  int next, float down
) {
  int fieldWidth = c->levels[c->finest].width;
  ptrdiff_t upper = (ptrdiff_t)top * fieldWidth, lower = (ptrdiff_t)next * fieldWidth;
  float size = (float)(1 << c->finest);
  float lumaY = ((float)y + 0.5f) * stepY * size - 0.5f;
  for (int x = 0; x < width; x++) {
    float at = of_field_position(x, stepX, fieldWidth);
    int left = (int)at, right = of_min(left + 1, fieldWidth - 1);
    if (!c->isEdge[upper + left]) continue;
    ptrdiff_t corners[4] = {upper + left, upper + right, lower + left, lower + right};
    float lumaX = ((float)x + 0.5f) * stepX * size - 0.5f;
    ptrdiff_t best = of_best_corner(c, corners, at - (float)left, down, lumaX, lumaY);
    row->pixelU[x] = c->sums[0][1][best] / stepX;
    row->pixelV[x] = c->sums[0][2][best] / stepY;
    row->pixelShare[x] = c->share[best];
  }
}

/// The largest cost of a motion that passes in front of a static background, which is that of a mean
/// difference of 22 code values.
#define OF_PASSING 200

/// The position in the luma plane of a position in a plane, which is in 64ths.
static inline float of_luma_position(int position, float scale) {
  return ((float)position * (1.0f / 64.0f) + 0.5f) * scale - 0.5f;
}

/// Sets which pixels of a row are blended without motion: the static ones, except those of a
/// background in front of which something moves.
static inline void of_find_blended(
  const OFContext *c, const OFRow *row, int y, int shiftX, int shiftY
) {
  const uint8_t *kinds = c->staticKinds + (ptrdiff_t)(y << shiftY) * c->settings.width;
  float scaleX = (float)(1 << shiftX), scaleY = (float)(1 << shiftY);
  for (int x = 0; x < row->width; x++) {
    int kind = kinds[x << shiftX];
    row->isBlended[x] = c->isBlend | (kind == OF_OVERLAY);
    if (c->isBlend || kind != OF_BACKGROUND) continue;
    float fromX = of_luma_position(row->fromX[x], scaleX);
    float fromY = of_luma_position(row->fromY[x], scaleY);
    float toX = of_luma_position(row->toX[x], scaleX);
    float toY = of_luma_position(row->toY[x], scaleY);
    row->isBlended[x] = of_absf(toX - fromX) + of_absf(toY - fromY) < 1.0f
      || of_pixel_cost(c, fromX, fromY, toX, toY) > OF_PASSING;
  }
}

static inline const uint8_t *of_cubic_start(const OFImage *image, int x, int y) {
  return image->pixels + (ptrdiff_t)((y >> 6) - 1) * image->stride
    + (ptrdiff_t)((x >> 6) - 1) * image->sampleBytes;
}

static void OF_NAME(render)(OFContext *c, int number, int stripe) {
  const OFImage *a = &c->planes[1 - c->newer][number], *b = &c->planes[c->newer][number];
  const OFLevel *level = &c->levels[c->finest];
  int width = a->width, shiftX = number > 0 ? c->settings.shiftX : 0;
  int shiftY = number > 0 ? c->settings.shiftY : 0;
  float step = 1.0f / (float)(1 << c->finest);
  float stepX = (float)(1 << shiftX) * step, stepY = (float)(1 << shiftY) * step;
  // The number is a power of two, so that its inverse is exact.
  float scaleX = 1.0f / stepX, scaleY = 1.0f / stepY;
  float *free = c->rowScratch + c->rowLength * (size_t)(stripe * 3 + number);
  OFRow row = {.width = width};
  row.u = free;
  row.v = row.u + level->width;
  row.share = row.v + level->width;
  row.pixelU = row.share + level->width;
  row.pixelV = row.pixelU + width;
  row.pixelShare = row.pixelV + width;
  row.fromX = (int32_t *)(void *)(row.pixelShare + width);
  row.fromY = row.fromX + width;
  row.toX = row.fromY + width;
  row.toY = row.toX + width;
  row.shares = row.toY + width;
  row.isBlended = row.shares + width;
  int whole = (int)(c->instant * 128.0f + 0.5f);
  int most = (1 << c->settings.depth) - 1;
  int isLast = (stripe + 1) * OF_ROWS >= c->settings.height;
  int last = isLast ? a->height : ((stripe + 1) * OF_ROWS) >> shiftY;
  for (int y = (stripe * OF_ROWS) >> shiftY; y < last; y++) {
    float at = of_field_position(y, stepY, level->height);
    int top = (int)at, next = of_min(top + 1, level->height - 1);
    float part = at - (float)top;
    ptrdiff_t upper = (ptrdiff_t)top * level->width, lower = (ptrdiff_t)next * level->width;
    of_mix_rows(c->sums[0][1] + upper, c->sums[0][1] + lower, part, row.u, level->width);
    of_mix_rows(c->sums[0][2] + upper, c->sums[0][2] + lower, part, row.v, level->width);
    of_mix_rows(c->share + upper, c->share + lower, part, row.share, level->width);
    if (!c->isBlend) {
      of_mix_motions(&row, width, stepX, scaleX, scaleY, level->width);
      of_choose_motions(c, &row, width, y, stepX, stepY, top, next, part);
      of_set_positions(c, &row, a, y);
    }
    of_find_blended(c, &row, y, shiftX, shiftY);
    uint8_t *out = c->output[number].data + (ptrdiff_t)y * c->output[number].bytesPerRow;
    if (a->sampleBytes == 1) {
      const uint8_t *p = a->pixels + (ptrdiff_t)y * a->stride;
      const uint8_t *q = b->pixels + (ptrdiff_t)y * b->stride;
      for (int x = 0; x < width && !c->isBlend; x++) {
        int value = of_mixed(
          c, of_cubic_start(a, row.fromX[x], row.fromY[x]), a->stride, row.fromX[x] & 63,
          row.fromY[x] & 63, of_cubic_start(b, row.toX[x], row.toY[x]), b->stride,
          row.toX[x] & 63, row.toY[x] & 63, row.shares[x]);
        out[x] = (uint8_t)of_clamp((value + (1 << 18)) >> 19, 0, 255);
      }
      for (int x = 0; x < width; x++) {
        uint8_t plain = (uint8_t)((p[x] * (128 - whole) + q[x] * whole + 64) >> 7);
        out[x] = row.isBlended[x] ? plain : out[x];
      }
    } else {
      const uint16_t *p = (const uint16_t *)(const void *)(a->pixels + (ptrdiff_t)y * a->stride);
      const uint16_t *q = (const uint16_t *)(const void *)(b->pixels + (ptrdiff_t)y * b->stride);
      uint16_t *deep = (uint16_t *)(void *)out;
      for (int x = 0; x < width; x++) {
        int plain = (p[x] * (128 - whole) + q[x] * whole + 64) >> 7;
        deep[x] = (uint16_t)plain;
        if (row.isBlended[x]) continue;
        int share = row.shares[x];
        int64_t value =
          of_deep_cubic(
            c, of_cubic_start(a, row.fromX[x], row.fromY[x]), a->stride, row.fromX[x] & 63,
            row.fromY[x] & 63, 128 - share)
          + of_deep_cubic(
            c, of_cubic_start(b, row.toX[x], row.toY[x]), b->stride, row.toX[x] & 63,
            row.toY[x] & 63, share);
        deep[x] = (uint16_t)of_clamp((int)((value + (1 << 18)) >> 19), 0, most);
      }
    }
  }
}
