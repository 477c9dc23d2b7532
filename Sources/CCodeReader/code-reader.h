// SPDX-License-Identifier: Apache-2.0

// The interface of libovercrank-codes.so.1, which is loaded at run time: zxing-cpp, which reads
// machine-readable codes, as C. Samples/CodeReader implements it.
#ifndef OVERCRANK_CODE_READER_H
#define OVERCRANK_CODE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __clang__
#define _Nonnull
#endif

/// The types of codes, as bits of a set.
enum {
  overcrank_code_upca = 1 << 0,
  overcrank_code_upce = 1 << 1,
  overcrank_code_ean8 = 1 << 2,
  overcrank_code_ean13 = 1 << 3,
  overcrank_code_code39 = 1 << 4,
  overcrank_code_code93 = 1 << 5,
  overcrank_code_code128 = 1 << 6,
  overcrank_code_itf = 1 << 7,
  overcrank_code_codabar = 1 << 8,
  overcrank_code_qr = 1 << 9,
  overcrank_code_micro_qr = 1 << 10,
  overcrank_code_aztec = 1 << 11,
  overcrank_code_pdf417 = 1 << 12,
  overcrank_code_data_matrix = 1 << 13,
};

/// The settings of a reader.
typedef struct overcrank_code_options {
  /// The types to read.
  uint32_t types;
  bool tries_harder, tries_rotation, tries_inversion, tries_downscale;
} overcrank_code_options;

/// A reader. Any thread may use it, also concurrently.
typedef struct overcrank_code_reader overcrank_code_reader;

typedef struct overcrank_code_point {
  int32_t x, y;
} overcrank_code_point;

/// A code. Its pointers are valid only while the function that received it runs.
typedef struct overcrank_code {
  /// One of the types that were requested.
  uint32_t type;
  /// In pixels: top left, top right, bottom right and bottom left, as the code is read.
  overcrank_code_point corners[4];
  /// The number of rows in which a linear code was read.
  int32_t line_count;
  /// Whether light and dark are exchanged.
  bool is_inverted;
  /// Whether the bytes are binary data or in an unknown encoding.
  bool is_binary;
  /// The content.
  const uint8_t *bytes;
  size_t byte_count;
  /// The content in UTF-8 up to its first zero byte; NULL if memory is exhausted.
  const char *text;
  /// The eight digits of a code of the type UPC-E, else NULL.
  const char *upce_digits;
} overcrank_code;

/// Receives a code of an image.
typedef void (*overcrank_code_receiver)(void *context, const overcrank_code *code);

/// The functions of the library.
typedef struct overcrank_code_functions {
  /// Creates a reader, or returns NULL if no memory is left.
  overcrank_code_reader *(*_Nonnull create)(const overcrank_code_options *options);

  /// Deletes a reader. NULL is ignored.
  void (*_Nonnull destroy)(overcrank_code_reader *reader);

  /// Reads the codes of a gray image, and calls `receiver` on the same thread once for each.
  ///
  /// `pixels` are `height` rows, `row` bytes from one to the next, of `width` pixels, `step` bytes from
  /// one to the next. An image that zxing-cpp refuses contains no codes.
  void (*_Nonnull read)(
      const overcrank_code_reader *reader, const uint8_t *pixels, int32_t width, int32_t height,
      int32_t row, int32_t step, overcrank_code_receiver receiver, void *context);
} overcrank_code_functions;

/// The one symbol that the library exports. The number at the end of its name is the version of this
/// header: it increases with each change that is not compatible.
const overcrank_code_functions *overcrank_code_functions_1(void);

#ifdef __cplusplus
}
#endif

#endif
