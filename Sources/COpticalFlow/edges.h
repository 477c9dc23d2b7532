// SPDX-License-Identifier: Apache-2.0
//
// The edges of moving things, where the field has motions that differ. Nothing moves by their mean,
// so each pixel there has one of them. Included twice, like primitives.h.

/// The difference of neighboring motions, in pixels, from which on they are not mixed.
#define OF_EDGE 2.0f

/// Marks the pixels of the field whose motion differs from that of the next ones to the right and
/// below.
static inline void of_mark_edges(OFContext *c, int y) {
  const OFLevel *level = &c->levels[c->finest];
  int width = level->width;
  ptrdiff_t at = (ptrdiff_t)y * width;
  ptrdiff_t next = (ptrdiff_t)of_min(y + 1, level->height - 1) * width;
  const float *restrict u = c->sums[0][1] + at, *restrict nextU = c->sums[0][1] + next;
  const float *restrict v = c->sums[0][2] + at, *restrict nextV = c->sums[0][2] + next;
  uint8_t *restrict out = c->isEdge + at;
  float most = OF_EDGE / (float)(1 << c->finest);
  for (int x = 0; x < width - 1; x++) {
    float lowU = of_minf(of_minf(u[x], u[x + 1]), of_minf(nextU[x], nextU[x + 1]));
    float highU = of_maxf(of_maxf(u[x], u[x + 1]), of_maxf(nextU[x], nextU[x + 1]));
    float lowV = of_minf(of_minf(v[x], v[x + 1]), of_minf(nextV[x], nextV[x + 1]));
    float highV = of_maxf(of_maxf(v[x], v[x + 1]), of_maxf(nextV[x], nextV[x + 1]));
    out[x] = highU - lowU + highV - lowV >= most;
  }
  int x = width - 1;
  out[x] = of_absf(nextU[x] - u[x]) + of_absf(nextV[x] - v[x]) >= most;
}

#if OF_AVX2

/// A row of four pixels of each of two images, as three pairs of neighbors each.
static inline __m256i of_three_pairs(const uint8_t *p, const uint8_t *q) {
  int32_t left, right;
  memcpy(&left, p, 4);
  memcpy(&right, q, 4);
  __m256i rows = _mm256_set_m128i(_mm_cvtsi32_si128(right), _mm_cvtsi32_si128(left));
  __m128i pairs = _mm_setr_epi8(0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, -1, -1, -1, -1);
  return _mm256_shuffle_epi8(rows, _mm256_broadcastsi128_si256(pairs));
}

/// The weights of two neighbors, those of the second image negative.
static inline __m256i of_pair_weights(int a0, int a1, int b0, int b1) {
  int left = (a1 << 16) | a0, right = (int)((uint32_t)-b1 << 16) | (-b0 & 0xffff);
  return _mm256_set_m128i(_mm_set1_epi32(right), _mm_set1_epi32(left));
}

static inline int of_nine_differences(
  const uint8_t *p, ptrdiff_t strideP, const int v[4], const uint8_t *q, ptrdiff_t strideQ,
  const int w[4]
) {
  __m256i upper = of_pair_weights(v[0], v[1], w[0], w[1]);
  __m256i lower = of_pair_weights(v[2], v[3], w[2], w[3]);
  __m256i rows = of_three_pairs(p, q);
  __m128i sum = _mm_setzero_si128();
  for (int row = 1; row < 4; row++) {
    __m256i next = of_three_pairs(p + row * strideP, q + row * strideQ);
    __m256i both = _mm256_add_epi32(_mm256_madd_epi16(rows, upper), _mm256_madd_epi16(next, lower));
    __m128i d = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    sum = _mm_add_epi32(sum, _mm_abs_epi32(d));
    rows = next;
  }
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

#else

static inline int of_nine_differences(
  const uint8_t *p, ptrdiff_t strideP, const int v[4], const uint8_t *q, ptrdiff_t strideQ,
  const int w[4]
) {
  int sum = 0;
  for (int row = 0; row < 3; row++) {
    for (int column = 0; column < 3; column++) {
      const uint8_t *m = p + row * strideP + column, *n = q + row * strideQ + column;
      int d = v[0] * m[0] + v[1] * m[1] + v[2] * m[strideP] + v[3] * m[strideP + 1]
        - w[0] * n[0] - w[1] * n[1] - w[2] * n[strideQ] - w[3] * n[strideQ + 1];
      sum += d < 0 ? -d : d;
    }
  }
  return sum;
}

#endif

/// The sum of the differences of 3x3 pixels around two positions, one in each frame.
static inline int of_pixel_cost(
  const OFContext *c, float fromX, float fromY, float toX, float toY
) {
  const OFImage *a = &c->levels[0].image[1 - c->newer], *b = &c->levels[0].image[c->newer];
  int v[4], w[4];
  const uint8_t *p = of_block(a, fromX - 1.0f, fromY - 1.0f, v);
  const uint8_t *q = of_block(b, toX - 1.0f, toY - 1.0f, w);
  return of_nine_differences(p, a->stride, v, q, b->stride, w) >> 8;
}

/// The cost of a motion whose pixel of the field is as far as possible, which is that of a mean
/// difference of about four code values.
#define OF_FAR 40.0f

/// Returns which of the four pixels of the field around a pixel has the motion that fits the two
/// frames best.
///
/// `across` and `down` are the position between the four, from 0 to 1, and `x` and `y` the pixel in
/// the luma plane.
static inline ptrdiff_t of_best_corner(
  const OFContext *c, const ptrdiff_t corners[4], float across, float down, float x, float y
) {
  float scale = (float)(1 << c->finest), t = c->instant;
  ptrdiff_t best = corners[0];
  int bestCost = INT32_MAX;
  for (int corner = 0; corner < 4; corner++) {
    ptrdiff_t at = corners[corner];
    float near = (corner & 1 ? across : 1.0f - across) * (corner & 2 ? down : 1.0f - down);
    float u = c->sums[0][1][at] * scale, v = c->sums[0][2][at] * scale;
    int cost = of_pixel_cost(c, x - t * u, y - t * v, x + (1.0f - t) * u, y + (1.0f - t) * v)
      + (int)((1.0f - near) * OF_FAR);
    if (cost < bestCost) {
      bestCost = cost;
      best = at;
    }
  }
  return best;
}
