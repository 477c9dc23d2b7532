// SPDX-License-Identifier: Apache-2.0

#include "code-reader.h"

#include "ZXingC.h"

// An overcrank_code_reader is zxing-cpp's ZXing_ReaderOptions under another name.

/// A type with its formats in zxing-cpp.
typedef struct {
  uint32_t type;
  /// The format of a code that was read: the exact one, or its family.
  ZXing_BarcodeFormat format;
} Type;

static const Type types[] = {
    {overcrank_code_upca, ZXing_BarcodeFormat_UPCA},
    {overcrank_code_upce, ZXing_BarcodeFormat_UPCE},
    {overcrank_code_ean8, ZXing_BarcodeFormat_EAN8},
    {overcrank_code_ean13, ZXing_BarcodeFormat_EAN13},
    {overcrank_code_code39, ZXing_BarcodeFormat_Code39},
    {overcrank_code_code93, ZXing_BarcodeFormat_Code93},
    {overcrank_code_code128, ZXing_BarcodeFormat_Code128},
    {overcrank_code_itf, ZXing_BarcodeFormat_ITF},
    {overcrank_code_codabar, ZXing_BarcodeFormat_Codabar},
    {overcrank_code_qr, ZXing_BarcodeFormat_QRCode},
    {overcrank_code_micro_qr, ZXing_BarcodeFormat_MicroQRCode},
    {overcrank_code_aztec, ZXing_BarcodeFormat_Aztec},
    {overcrank_code_pdf417, ZXing_BarcodeFormat_PDF417},
    {overcrank_code_data_matrix, ZXing_BarcodeFormat_DataMatrix},
};
enum { typeCount = sizeof types / sizeof types[0] };

static uint32_t type_of(ZXing_BarcodeFormat format) {
  for (int i = 0; i < typeCount; i++)
    if (types[i].format == format) return types[i].type;
  return 0;
}

static overcrank_code_reader *create(const overcrank_code_options *options) {
  ZXing_ReaderOptions *reader = ZXing_ReaderOptions_new();
  if (reader == NULL) return NULL;
  ZXing_BarcodeFormat formats[typeCount + 1];
  int count = 0;
  for (int i = 0; i < typeCount; i++) {
    if (!(options->types & types[i].type)) continue;
    if (types[i].type == overcrank_code_code39) {
      // As a family, Code 39 includes Code 32, which shows texts of 6 characters as 10 others.
      formats[count++] = ZXing_BarcodeFormat_Code39Std;
      formats[count++] = ZXing_BarcodeFormat_Code39Ext;
    } else {
      formats[count++] = types[i].format;
    }
  }
  ZXing_ReaderOptions_setFormats(reader, formats, count);
  ZXing_ReaderOptions_setTryHarder(reader, options->tries_harder);
  ZXing_ReaderOptions_setTryRotate(reader, options->tries_rotation);
  ZXing_ReaderOptions_setTryInvert(reader, options->tries_inversion);
  ZXing_ReaderOptions_setTryDownscale(reader, options->tries_downscale);
  ZXing_ReaderOptions_setTextMode(reader, ZXing_TextMode_Plain);
  return (overcrank_code_reader *)reader;
}

static void destroy(overcrank_code_reader *reader) {
  if (reader != NULL) ZXing_ReaderOptions_delete((ZXing_ReaderOptions *)reader);
}

static void report(
    const ZXing_Barcode *barcode, overcrank_code_receiver receiver, void *context) {
  uint32_t type = type_of(ZXing_Barcode_format(barcode));
  if (type == 0) type = type_of(ZXing_Barcode_symbology(barcode));
  if (type == 0) return;
  ZXing_Position position = ZXing_Barcode_position(barcode);
  ZXing_ContentType content = ZXing_Barcode_contentType(barcode);
  int count = 0;
  uint8_t *bytes = ZXing_Barcode_bytes(barcode, &count);
  char *text = ZXing_Barcode_text(barcode);
  char *digits = type == overcrank_code_upce ? ZXing_Barcode_extra(barcode, "UPCE") : NULL;
  overcrank_code code = {
      .type = type,
      .corners = {{position.topLeft.x, position.topLeft.y},
                  {position.topRight.x, position.topRight.y},
                  {position.bottomRight.x, position.bottomRight.y},
                  {position.bottomLeft.x, position.bottomLeft.y}},
      .line_count = ZXing_Barcode_lineCount(barcode),
      .is_inverted = ZXing_Barcode_isInverted(barcode),
      .is_binary = content == ZXing_ContentType_Binary || content == ZXing_ContentType_UnknownECI,
      .bytes = bytes,
      .byte_count = bytes != NULL ? (size_t)count : 0,
      .text = text,
      .upce_digits = digits,
  };
  receiver(context, &code);
  ZXing_free(bytes);
  ZXing_free(text);
  ZXing_free(digits);
}

static void read_codes(
    const overcrank_code_reader *reader, const uint8_t *pixels, int32_t width, int32_t height,
    int32_t row, int32_t step, overcrank_code_receiver receiver, void *context) {
  ZXing_ImageView *view =
      ZXing_ImageView_new(pixels, width, height, ZXing_ImageFormat_Lum, row, step);
  if (view == NULL) return;
  ZXing_Barcodes *found = ZXing_ReadBarcodes(view, (const ZXing_ReaderOptions *)reader);
  ZXing_ImageView_delete(view);
  if (found == NULL) return;
  for (int i = 0; i < ZXing_Barcodes_size(found); i++) {
    const ZXing_Barcode *barcode = ZXing_Barcodes_at(found, i);
    if (barcode != NULL && ZXing_Barcode_isValid(barcode)) report(barcode, receiver, context);
  }
  ZXing_Barcodes_delete(found);
}

__attribute__((visibility("default"))) const overcrank_code_functions *
overcrank_code_functions_1(void) {
  static const overcrank_code_functions functions = {create, destroy, read_codes};
  return &functions;
}
