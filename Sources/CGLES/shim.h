// SPDX-License-Identifier: Apache-2.0
// EGL and OpenGL ES 3, with a shim for what Swift cannot call.
#ifndef CGLES_SHIM_H
#define CGLES_SHIM_H

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>

#include <GLES2/gl2ext.h>
#include <stddef.h>

/// Makes an image the memory of the bound texture: glEGLImageTargetTexture2DOES, whose address is
/// that of a function of another type. Does nothing if the library lacks it.
static inline void CGLES_setTextureImage(EGLImage image) {
  PFNGLEGLIMAGETARGETTEXTURE2DOESPROC set =
      (PFNGLEGLIMAGETARGETTEXTURE2DOESPROC)eglGetProcAddress("glEGLImageTargetTexture2DOES");
  if (set != NULL) set(GL_TEXTURE_2D, (GLeglImageOES)image);
}

#endif
