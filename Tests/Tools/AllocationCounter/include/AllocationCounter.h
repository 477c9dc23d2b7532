// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

/// How often the calling thread has asked the C library for memory; -1 where nobody counts,
/// since a sanitizer has put its own allocator there.
int64_t allocation_count(void);

/// The same of all threads together.
int64_t allocation_total(void);
