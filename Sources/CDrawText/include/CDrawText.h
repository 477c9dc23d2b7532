// SPDX-License-Identifier: Apache-2.0
//
// Characters drawn by libavfilter's filter drawtext.
//
// This target exists for one reason: the headers of libavfilter repeat the types of libavutil, which
// Swift already has from another module, so that it cannot import both.

#ifndef CDRAWTEXT_H
#define CDRAWTEXT_H

#include <stdint.h>

enum {
  /// The first printable character of ASCII, and the number of those that follow each other.
  DTFirstCharacter = 0x20,
  DTCharacterCount = 95,
};

/// Draws each printable character of ASCII into a cell of its own, centered, with common baselines.
///
/// `font` is a family that fontconfig finds, or the path of a font file if it has a slash. `coverage`
/// receives the cells one after another, from 0 to 255; `height` is also the size of the font.
/// Returns 0, or an error code of libav.
int32_t dt_draw_characters(
  const char *_Nonnull font, int32_t width, int32_t height, uint8_t *_Nonnull coverage);

#endif
