// SPDX-License-Identifier: Apache-2.0
//
// Characters drawn by libavfilter's filter drawtext.
//
// This target exists for one reason: the headers of libavfilter repeat the types of libavutil, which
// Swift already has from another module, so that it cannot import both.

#ifndef CDRAWTEXT_H
#define CDRAWTEXT_H

#include <stdint.h>

/// Draws characters of ASCII that follow each other, each centered in a cell of its own, with one
/// baseline.
///
/// `font` is a font as fontconfig names it. `first` is the first of `count` characters. `height` is
/// the height of a cell and the size of the font. `coverage` receives the `count` cells of `width`
/// times `height` pixels one after another, from 0 to 255.
/// Returns 0, or an error code of libav.
int32_t dt_draw_characters(
  const char *_Nonnull font, int32_t first, int32_t count, int32_t width, int32_t height,
  uint8_t *_Nonnull coverage);

#endif
