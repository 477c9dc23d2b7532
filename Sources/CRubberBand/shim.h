// SPDX-License-Identifier: Apache-2.0
// Rubber Band's C API needs no shims; this header only includes it.
#ifndef CRUBBERBAND_SHIM_H
#define CRUBBERBAND_SHIM_H

#include <rubberband/rubberband-c.h>

#endif
