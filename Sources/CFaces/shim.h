// SPDX-License-Identifier: Apache-2.0
// dlib's face detector needs no shims here; this header only includes its C interface, which
// Samples/install-faces.sh installs.
#ifndef CFACES_SHIM_H
#define CFACES_SHIM_H

#include <overcrank-faces/face-detector.h>

#endif
