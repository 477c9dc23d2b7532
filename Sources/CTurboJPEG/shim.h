// SPDX-License-Identifier: Apache-2.0
// TurboJPEG's C API needs no shims; this header only includes it.
#ifndef CTURBOJPEG_SHIM_H
#define CTURBOJPEG_SHIM_H

#include <turbojpeg.h>

#endif
