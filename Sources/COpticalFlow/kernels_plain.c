// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "context.h"

#define OF_AVX2 0
#define OF_NAME(name) of_plain_##name
#include "kernels.h"

const OFKernels of_kernels_plain = OF_TABLE;
