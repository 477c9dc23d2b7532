// SPDX-License-Identifier: Apache-2.0
// Rubber Band's C API imports as it is; this header only names it.
#ifndef CRUBBERBAND_SHIM_H
#define CRUBBERBAND_SHIM_H

#include <rubberband/rubberband-c.h>

#endif
