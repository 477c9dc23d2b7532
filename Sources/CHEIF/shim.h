// SPDX-License-Identifier: Apache-2.0
// libheif needs no shims; this header only includes it.
#ifndef CHEIF_SHIM_H
#define CHEIF_SHIM_H

#include <libheif/heif.h>

#endif
