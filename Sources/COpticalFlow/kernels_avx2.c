// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "context.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define OF_AVX2 1
#define OF_NAME(name) of_avx2_##name
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#include "kernels.h"
#pragma clang attribute pop

static const OFKernels kernels = OF_TABLE;

const OFKernels *of_kernels_avx2(void) {
  return __builtin_cpu_supports("avx2") ? &kernels : NULL;
}

#else

const OFKernels *of_kernels_avx2(void) { return NULL; }

#endif
