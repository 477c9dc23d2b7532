// SPDX-License-Identifier: Apache-2.0
//
// Comparison of patches of 8x8 pixels. Included twice: with OF_AVX2 set to 1 and to 0.

/// A patch of the reference frame: 16 times its pixels, and differences of its neighbors.
typedef struct {
  int16_t value[64], gradientX[64], gradientY[64];
  /// Sums of the gradients, and the inverse of the matrix of their products.
  float sumX, sumY, inverseXX, inverseXY, inverseYY;
} OFPatch;

typedef struct {
  int32_t sum, squares, x, y;
} OFSums;

/// Splits a position into whole pixels and the weights of the four pixels around it, which add up
/// to 256.
static inline void of_split(float x, float y, int *wholeX, int *wholeY, int weights[4]) {
  *wholeX = (int)(x + 65536.0f) - 65536;
  *wholeY = (int)(y + 65536.0f) - 65536;
  int a = (int)((x - (float)*wholeX) * 256.0f + 0.5f);
  int b = (int)((y - (float)*wholeY) * 256.0f + 0.5f);
  a = of_clamp(a, 0, 256);
  b = of_clamp(b, 0, 256);
  weights[3] = (a * b) >> 8;
  weights[1] = a - weights[3];
  weights[2] = b - weights[3];
  weights[0] = 256 - a - weights[2];
}

static inline const uint8_t *of_at(const OFImage *image, int x, int y) {
  return image->pixels + (ptrdiff_t)y * image->stride + x;
}

/// Returns the pixel block that starts at a position, which is moved into the border if it is
/// farther outside.
static inline const uint8_t *of_block(
  const OFImage *image, float x, float y, int weights[4]
) {
  x = of_minf(of_maxf(x, -12.0f), (float)(image->width + 3));
  y = of_minf(of_maxf(y, -12.0f), (float)(image->height + 3));
  int wholeX, wholeY;
  of_split(x, y, &wholeX, &wholeY, weights);
  return of_at(image, wholeX, wholeY);
}

#if OF_AVX2

static inline __m256i of_two_rows(const uint8_t *p, ptrdiff_t stride) {
  __m128i a = _mm_loadl_epi64((const __m128i *)p);
  __m128i b = _mm_loadl_epi64((const __m128i *)(p + stride));
  return _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(a, b));
}

/// Two rows of eight samples between pixels, in 16ths.
static inline __m256i of_two_samples(
  const uint8_t *p, ptrdiff_t stride, __m256i w0, __m256i w1, __m256i w2, __m256i w3
) {
  __m256i upper = _mm256_add_epi16(
    _mm256_mullo_epi16(of_two_rows(p, stride), w0),
    _mm256_mullo_epi16(of_two_rows(p + 1, stride), w1));
  __m256i lower = _mm256_add_epi16(
    _mm256_mullo_epi16(of_two_rows(p + stride, stride), w2),
    _mm256_mullo_epi16(of_two_rows(p + stride + 1, stride), w3));
  return _mm256_srli_epi16(_mm256_add_epi16(upper, lower), 4);
}

static inline int32_t of_total(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

static inline OFSums of_compare_patch(
  const OFPatch *patch, const uint8_t *p, ptrdiff_t stride, const int weights[4]
) {
  __m256i w0 = _mm256_set1_epi16((short)weights[0]), w1 = _mm256_set1_epi16((short)weights[1]);
  __m256i w2 = _mm256_set1_epi16((short)weights[2]), w3 = _mm256_set1_epi16((short)weights[3]);
  __m256i sum = _mm256_setzero_si256(), squares = sum, x = sum, y = sum;
  __m256i ones = _mm256_set1_epi16(1);
  for (int row = 0; row < 8; row += 2) {
    __m256i value = _mm256_loadu_si256((const __m256i *)(patch->value + row * 8));
    __m256i d = _mm256_sub_epi16(of_two_samples(p + row * stride, stride, w0, w1, w2, w3), value);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(d, ones));
    squares = _mm256_add_epi32(squares, _mm256_madd_epi16(d, d));
    __m256i gx = _mm256_loadu_si256((const __m256i *)(patch->gradientX + row * 8));
    __m256i gy = _mm256_loadu_si256((const __m256i *)(patch->gradientY + row * 8));
    x = _mm256_add_epi32(x, _mm256_madd_epi16(d, gx));
    y = _mm256_add_epi32(y, _mm256_madd_epi16(d, gy));
  }
  OFSums result = {of_total(sum), of_total(squares), of_total(x), of_total(y)};
  return result;
}

static inline int of_absolute_difference(
  const uint8_t *a, ptrdiff_t strideA, const uint8_t *b, ptrdiff_t strideB
) {
  __m128i sum = _mm_setzero_si128();
  for (int row = 0; row < 8; row += 2) {
    __m128i left = _mm_unpacklo_epi64(
      _mm_loadl_epi64((const __m128i *)(a + row * strideA)),
      _mm_loadl_epi64((const __m128i *)(a + (row + 1) * strideA)));
    __m128i right = _mm_unpacklo_epi64(
      _mm_loadl_epi64((const __m128i *)(b + row * strideB)),
      _mm_loadl_epi64((const __m128i *)(b + (row + 1) * strideB)));
    sum = _mm_add_epi64(sum, _mm_sad_epu8(left, right));
  }
  return _mm_cvtsi128_si32(_mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum)));
}

/// The sum of absolute differences of two blocks between pixels, in 16ths.
static inline int of_two_sided(
  const uint8_t *a, ptrdiff_t strideA, const int v[4], const uint8_t *b, ptrdiff_t strideB,
  const int w[4]
) {
  __m256i v0 = _mm256_set1_epi16((short)v[0]), v1 = _mm256_set1_epi16((short)v[1]);
  __m256i v2 = _mm256_set1_epi16((short)v[2]), v3 = _mm256_set1_epi16((short)v[3]);
  __m256i w0 = _mm256_set1_epi16((short)w[0]), w1 = _mm256_set1_epi16((short)w[1]);
  __m256i w2 = _mm256_set1_epi16((short)w[2]), w3 = _mm256_set1_epi16((short)w[3]);
  __m256i sum = _mm256_setzero_si256();
  __m256i ones = _mm256_set1_epi16(1);
  for (int row = 0; row < 8; row += 2) {
    __m256i d = _mm256_sub_epi16(
      of_two_samples(a + row * strideA, strideA, v0, v1, v2, v3),
      of_two_samples(b + row * strideB, strideB, w0, w1, w2, w3));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_abs_epi16(d), ones));
  }
  return of_total(sum);
}

#else

static inline int of_sample(const uint8_t *p, ptrdiff_t stride, const int w[4]) {
  return (w[0] * p[0] + w[1] * p[1] + w[2] * p[stride] + w[3] * p[stride + 1]) >> 4;
}

static inline OFSums of_compare_patch(
  const OFPatch *patch, const uint8_t *p, ptrdiff_t stride, const int weights[4]
) {
  OFSums result = {0, 0, 0, 0};
  for (int row = 0; row < 8; row++) {
    for (int column = 0; column < 8; column++) {
      int index = row * 8 + column;
      int d = of_sample(p + row * stride + column, stride, weights) - patch->value[index];
      result.sum += d;
      result.squares += d * d;
      result.x += d * patch->gradientX[index];
      result.y += d * patch->gradientY[index];
    }
  }
  return result;
}

static inline int of_absolute_difference(
  const uint8_t *a, ptrdiff_t strideA, const uint8_t *b, ptrdiff_t strideB
) {
  int sum = 0;
  for (int row = 0; row < 8; row++) {
    for (int column = 0; column < 8; column++) {
      int d = a[row * strideA + column] - b[row * strideB + column];
      sum += d < 0 ? -d : d;
    }
  }
  return sum;
}

static inline int of_two_sided(
  const uint8_t *a, ptrdiff_t strideA, const int v[4], const uint8_t *b, ptrdiff_t strideB,
  const int w[4]
) {
  int sum = 0;
  for (int row = 0; row < 8; row++) {
    for (int column = 0; column < 8; column++) {
      int d = of_sample(a + row * strideA + column, strideA, v)
        - of_sample(b + row * strideB + column, strideB, w);
      sum += d < 0 ? -d : d;
    }
  }
  return sum;
}

#endif
