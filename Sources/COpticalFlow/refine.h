// SPDX-License-Identifier: Apache-2.0
//
// From motion of patches to motion of pixels, and its variational refinement (Brox et al. 2004):
// robust penalties of brightness, gradient and smoothness, and red-black successive
// over-relaxation. A stripe is refined together with a few rows of its neighbors, and only its own
// rows are kept. Included twice, like primitives.h.

/// The mean motion of all patches over a pixel, weighted by how well each fits there.
static inline void of_densify(
  const OFContext *c, const OFLevel *level, int direction, int top, int bottom, float *restrict u,
  float *restrict v, float *restrict weight
) {
  const OFPatches *patches = &level->patches[direction];
  int width = level->width;
  size_t length = (size_t)(bottom - top) * (size_t)width;
  memset(u, 0, length * sizeof(float));
  memset(v, 0, length * sizeof(float));
  memset(weight, 0, length * sizeof(float));
  for (int row = 0; row < level->rows; row++) {
    int y = of_patch_start(row, c->stride, level->height);
    int from = of_max(y, top), to = of_min(y + OF_PATCH, bottom);
    if (from >= to) continue;
    for (int column = 0; column < level->columns; column++) {
      int x = of_patch_start(column, c->stride, width);
      int index = row * level->columns + column;
      float patchU = patches->u[index], patchV = patches->v[index];
      for (int line = from; line < to; line++) {
        const uint8_t *error = patches->error + (size_t)index * 64 + (line - y) * 8;
        size_t start = (size_t)(line - top) * (size_t)width + (size_t)x;
        float *lineU = u + start, *lineV = v + start, *lineWeight = weight + start;
        float w[8];
        for (int i = 0; i < 8; i++) w[i] = 1.0f / (float)of_max(1, error[i]);
        for (int i = 0; i < 8; i++) lineU[i] += w[i] * patchU;
        for (int i = 0; i < 8; i++) lineV[i] += w[i] * patchV;
        for (int i = 0; i < 8; i++) lineWeight[i] += w[i];
      }
    }
  }
  for (size_t i = 0; i < length; i++) {
    float inverse = 1.0f / weight[i];
    u[i] *= inverse;
    v[i] *= inverse;
  }
}

/// The other frame at the end of each motion.
static inline float of_warped(const OFImage *image, float x, float y) {
  x = of_minf(of_maxf(x, -8.0f), (float)(image->width + 7));
  y = of_minf(of_maxf(y, -8.0f), (float)(image->height + 7));
  int wholeX = (int)(x + 64.0f) - 64, wholeY = (int)(y + 64.0f) - 64;
  float fx = x - (float)wholeX, fy = y - (float)wholeY;
  const uint8_t *p = of_at(image, wholeX, wholeY), *q = p + image->stride;
  float upper = (float)p[0] + fx * (float)(p[1] - p[0]);
  float lower = (float)q[0] + fx * (float)(q[1] - q[0]);
  return upper + fy * (lower - upper);
}

typedef struct {
  int width, rows;
  float *u, *v, *u0, *v0, *mean, *z;
  float *ix, *iy, *ixx, *ixy, *iyy, *ixz, *iyz;
  float *a12, *c1, *c2, *inverse1, *inverse2, *a11, *a22, *smooth, *updated;
} OFRefinement;

/// The derivative along x of a row.
static inline void of_row_dx(const float *restrict row, float *restrict out, int width) {
  out[0] = 0.5f * (row[1] - row[0]);
  for (int x = 1; x < width - 1; x++) out[x] = 0.5f * (row[x + 1] - row[x - 1]);
  out[width - 1] = 0.5f * (row[width - 1] - row[width - 2]);
}

static inline void of_row_dy(
  const float *restrict above, const float *restrict below, float *restrict out, int width
) {
  for (int x = 0; x < width; x++) out[x] = 0.5f * (below[x] - above[x]);
}

static inline void of_derivatives(const OFRefinement *r) {
  int w = r->width;
  for (int y = 0; y < r->rows; y++) {
    ptrdiff_t at = (ptrdiff_t)y * w;
    ptrdiff_t above = (ptrdiff_t)of_max(y - 1, 0) * w;
    ptrdiff_t below = (ptrdiff_t)of_min(y + 1, r->rows - 1) * w;
    of_row_dx(r->mean + at, r->ix + at, w);
    of_row_dy(r->mean + above, r->mean + below, r->iy + at, w);
    of_row_dx(r->z + at, r->ixz + at, w);
    of_row_dy(r->z + above, r->z + below, r->iyz + at, w);
  }
  for (int y = 0; y < r->rows; y++) {
    ptrdiff_t at = (ptrdiff_t)y * w;
    ptrdiff_t above = (ptrdiff_t)of_max(y - 1, 0) * w;
    ptrdiff_t below = (ptrdiff_t)of_min(y + 1, r->rows - 1) * w;
    of_row_dx(r->ix + at, r->ixx + at, w);
    of_row_dy(r->ix + above, r->ix + below, r->ixy + at, w);
    of_row_dy(r->iy + above, r->iy + below, r->iyy + at, w);
  }
}

/// The weight of smoothness of a row, by the robust penalty of the motion's derivatives.
static inline void of_smoothness(
  const float *restrict u, const float *restrict v, const float *restrict nextU,
  const float *restrict nextV, float *restrict smooth, int width
) {
  for (int x = 0; x < width - 1; x++) {
    float ux = u[x + 1] - u[x], vx = v[x + 1] - v[x];
    float uy = nextU[x] - u[x], vy = nextV[x] - v[x];
    float squares = ux * ux + uy * uy + vx * vx + vy * vy;
    smooth[x] = 10.0f / __builtin_sqrtf(squares + 1.0e-6f);
  }
  int x = width - 1;
  float uy = nextU[x] - u[x], vy = nextV[x] - v[x];
  smooth[x] = 10.0f / __builtin_sqrtf(uy * uy + vy * vy + 1.0e-6f);
}

/// The linear equations of the pixels of a row, for the whole motion.
static inline void of_equations(
  int width, const float *restrict u, const float *restrict v, const float *restrict u0,
  const float *restrict v0, const float *restrict z, const float *restrict ix,
  const float *restrict iy, const float *restrict ixx, const float *restrict ixy,
  const float *restrict iyy, const float *restrict ixz, const float *restrict iyz,
  float *restrict a11, float *restrict a12, float *restrict a22, float *restrict c1,
  float *restrict c2
) {
  for (int x = 0; x < width; x++) {
    float du = u[x] - u0[x], dv = v[x] - v0[x];
    float n = 1.0f / (ix[x] * ix[x] + iy[x] * iy[x] + 0.01f);
    float e = z[x] + ix[x] * du + iy[x] * dv;
    float w = 2.5f * n / __builtin_sqrtf(e * e * n + 1.0e-6f);
    float nx = 1.0f / (ixx[x] * ixx[x] + ixy[x] * ixy[x] + 0.01f);
    float ny = 1.0f / (ixy[x] * ixy[x] + iyy[x] * iyy[x] + 0.01f);
    float ex = ixz[x] + ixx[x] * du + ixy[x] * dv;
    float ey = iyz[x] + ixy[x] * du + iyy[x] * dv;
    float g = 5.0f / __builtin_sqrtf(ex * ex * nx + ey * ey * ny + 1.0e-6f);
    nx *= g;
    ny *= g;
    float m11 = w * ix[x] * ix[x] + nx * ixx[x] * ixx[x] + ny * ixy[x] * ixy[x];
    float m12 = w * ix[x] * iy[x] + nx * ixx[x] * ixy[x] + ny * ixy[x] * iyy[x];
    float m22 = w * iy[x] * iy[x] + nx * ixy[x] * ixy[x] + ny * iyy[x] * iyy[x];
    float r1 = w * ix[x] * z[x] + nx * ixx[x] * ixz[x] + ny * ixy[x] * iyz[x];
    float r2 = w * iy[x] * z[x] + nx * ixy[x] * ixz[x] + ny * iyy[x] * iyz[x];
    a11[x] = m11;
    a12[x] = m12;
    a22[x] = m22;
    c1[x] = m11 * u0[x] + m12 * v0[x] - r1;
    c2[x] = m12 * u0[x] + m22 * v0[x] - r2;
  }
}

/// The sum of the smoothness weights of a pixel's four links; the inverse diagonals of a row.
static inline void of_diagonals(
  int width, int isFirst, int isLast, const float *restrict smooth, const float *restrict above,
  const float *restrict a11, const float *restrict a22, float *restrict inverse1,
  float *restrict inverse2
) {
  float up = isFirst ? 0.0f : 1.0f, down = isLast ? 0.0f : 1.0f;
  for (int x = 0; x < width; x++) {
    float left = x > 0 ? smooth[x - 1] : 0.0f, right = x < width - 1 ? smooth[x] : 0.0f;
    float sum = left + right + up * above[x] + down * smooth[x];
    inverse1[x] = 1.6f / (a11[x] + sum);
    inverse2[x] = 1.6f / (a22[x] + sum);
  }
}

/// One sweep of a row for one unknown and one color; writes all values into `out`.
static inline void of_sweep(
  int width, int color, float up, float down, const float *restrict value,
  const float *restrict above, const float *restrict below, const float *restrict other,
  const float *restrict smooth, const float *restrict smoothAbove, const float *restrict a12,
  const float *restrict constant, const float *restrict inverse, float *restrict out
) {
  for (int x = 1; x < width - 1; x++) {
    float sum = constant[x] - a12[x] * other[x] + smooth[x] * value[x + 1]
      + smooth[x - 1] * value[x - 1] + up * smoothAbove[x] * above[x]
      + down * smooth[x] * below[x];
    float updated = value[x] * -0.6f + sum * inverse[x];
    out[x] = ((x ^ color) & 1) ? value[x] : updated;
  }
  for (int side = 0; side < 2; side++) {
    int x = side ? width - 1 : 0;
    float across = side ? smooth[x - 1] * value[x - 1] : smooth[x] * value[x + 1];
    float sum = constant[x] - a12[x] * other[x] + across + up * smoothAbove[x] * above[x]
      + down * smooth[x] * below[x];
    float updated = value[x] * -0.6f + sum * inverse[x];
    out[x] = ((x ^ color) & 1) ? value[x] : updated;
  }
}

static inline void of_relax(const OFRefinement *r, int color) {
  int w = r->width;
  for (int y = 0; y < r->rows; y++) {
    ptrdiff_t at = (ptrdiff_t)y * w;
    ptrdiff_t above = y > 0 ? at - w : at, below = y + 1 < r->rows ? at + w : at;
    float up = y > 0 ? 1.0f : 0.0f, down = y + 1 < r->rows ? 1.0f : 0.0f;
    int parity = (color ^ y) & 1;
    of_sweep(
      w, parity, up, down, r->u + at, r->u + above, r->u + below, r->v + at, r->smooth + at,
      r->smooth + above, r->a12 + at, r->c1 + at, r->inverse1 + at, r->updated);
    memcpy(r->u + at, r->updated, (size_t)w * sizeof(float));
    of_sweep(
      w, parity, up, down, r->v + at, r->v + above, r->v + below, r->u + at, r->smooth + at,
      r->smooth + above, r->a12 + at, r->c2 + at, r->inverse2 + at, r->updated);
    memcpy(r->v + at, r->updated, (size_t)w * sizeof(float));
  }
}

static void OF_NAME(refine)(OFContext *c, int number, int direction, int stripe) {
  OFLevel *level = &c->levels[number];
  const OFImage *image = &level->image[of_slot(c, direction)];
  const OFImage *other = &level->image[1 - of_slot(c, direction)];
  int first = stripe * OF_ROWS, last = of_min(first + OF_ROWS, level->height);
  int top = of_max(first - OF_HALO, 0), bottom = of_min(last + OF_HALO, level->height);
  OFRefinement r = {.width = level->width, .rows = bottom - top};
  float *free =
    c->scratch + c->scratchLength * (size_t)(2 * stripe + direction);
  size_t length = (size_t)r.rows * (size_t)r.width;
  float **planes[] = {
    &r.u, &r.v, &r.u0, &r.v0, &r.mean, &r.z, &r.ix, &r.iy, &r.ixx, &r.ixy, &r.iyy, &r.ixz, &r.iyz,
    &r.a11, &r.a12, &r.a22, &r.c1, &r.c2, &r.inverse1, &r.inverse2, &r.smooth, &r.updated,
  };
  for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
    *planes[i] = free;
    free += length;
  }
  of_densify(c, level, direction, top, bottom, r.u, r.v, r.mean);
  if (c->refinements > 0) {
    memcpy(r.u0, r.u, length * sizeof(float));
    memcpy(r.v0, r.v, length * sizeof(float));
    for (int y = 0; y < r.rows; y++) {
      const uint8_t *row = of_at(image, 0, top + y);
      for (int x = 0; x < r.width; x++) {
        ptrdiff_t at = (ptrdiff_t)y * r.width + x;
        float warped = of_warped(other, (float)x + r.u[at], (float)(top + y) + r.v[at]);
        r.mean[at] = 0.5f * ((float)row[x] + warped);
        r.z[at] = warped - (float)row[x];
      }
    }
    of_derivatives(&r);
  }
  for (int round = 0; round < c->refinements; round++) {
    for (int y = 0; y < r.rows; y++) {
      ptrdiff_t at = (ptrdiff_t)y * r.width;
      ptrdiff_t next = y + 1 < r.rows ? at + r.width : at;
      of_smoothness(r.u + at, r.v + at, r.u + next, r.v + next, r.smooth + at, r.width);
      of_equations(
        r.width, r.u + at, r.v + at, r.u0 + at, r.v0 + at, r.z + at, r.ix + at, r.iy + at,
        r.ixx + at, r.ixy + at, r.iyy + at, r.ixz + at, r.iyz + at, r.a11 + at, r.a12 + at,
        r.a22 + at, r.c1 + at, r.c2 + at);
    }
    for (int y = 0; y < r.rows; y++) {
      ptrdiff_t at = (ptrdiff_t)y * r.width;
      of_diagonals(
        r.width, y == 0, y == r.rows - 1, r.smooth + at, r.smooth + (y > 0 ? at - r.width : at),
        r.a11 + at, r.a22 + at, r.inverse1 + at, r.inverse2 + at);
    }
    for (int sweep = 0; sweep < 10; sweep++) of_relax(&r, sweep & 1);
  }
  size_t offset = (size_t)(first - top) * (size_t)r.width;
  size_t kept = (size_t)(last - first) * (size_t)r.width;
  size_t start = (size_t)first * (size_t)r.width;
  memcpy(level->u[direction] + start, r.u + offset, kept * sizeof(float));
  memcpy(level->v[direction] + start, r.v + offset, kept * sizeof(float));
}
