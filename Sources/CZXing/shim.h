// SPDX-License-Identifier: Apache-2.0
// zxing-cpp needs no shims; this header only includes its C interface, which
// Samples/install-zxing.sh installs.
#ifndef CZXING_SHIM_H
#define CZXING_SHIM_H

#include <overcrank-zxing/ZXingC.h>

#endif
