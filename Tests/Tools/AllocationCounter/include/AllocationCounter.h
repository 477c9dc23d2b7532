// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

/// The number of allocations by the calling thread; -1 under a sanitizer, which has its own
/// allocator.
int64_t allocation_count(void);

/// The number of allocations by all threads; -1 under a sanitizer.
int64_t allocation_total(void);
