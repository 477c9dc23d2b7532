// SPDX-License-Identifier: Apache-2.0
// EGL and OpenGL ES 3 need no shims; this header only includes them.
#ifndef CGLES_SHIM_H
#define CGLES_SHIM_H

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>

#endif
