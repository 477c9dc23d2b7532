// SPDX-License-Identifier: Apache-2.0

import CZXing

/// A code as zxing-cpp read it, with corners in pixels.
struct DetectedCode: DetectedObject, Hashable, Sendable {
  var type: MetadataObjectType
  /// The text, or nil if the bytes are no text.
  var text: String?
  var bytes: [UInt8]
  var corners: [PixelPoint]
  /// Whether light and dark are exchanged.
  var isInverted = false
  /// The number of rows in which a code of bars was read; 0 for others.
  var lineCount = 0

  /// The code's type and content.
  struct Key: Hashable, Sendable {
    let type: MetadataObjectType
    let bytes: [UInt8]
  }
  var key: Key { Key(type: type, bytes: bytes) }

  var center: PixelPoint {
    PixelPoint(
      x: corners.reduce(0) { $0 + $1.x } / Double(max(1, corners.count)),
      y: corners.reduce(0) { $0 + $1.y } / Double(max(1, corners.count)))
  }

  /// The left, upper, right and lower edge.
  var edges: (left: Double, top: Double, right: Double, bottom: Double) {
    (
      corners.map(\.x).min() ?? 0, corners.map(\.y).min() ?? 0, corners.map(\.x).max() ?? 0,
      corners.map(\.y).max() ?? 0
    )
  }

  /// The longer side of its upright rectangle.
  var size: Double {
    let edges = edges
    return max(edges.right - edges.left, edges.bottom - edges.top)
  }

  func moved(byX x: Int, y: Int) -> DetectedCode {
    var moved = self
    moved.corners = corners.map { PixelPoint(x: $0.x + Double(x), y: $0.y + Double(y)) }
    return moved
  }

  /// Returns the code in an image of which the searched one is an enlargement.
  func divided(by factor: Double) -> DetectedCode {
    var divided = self
    divided.corners = corners.map { PixelPoint(x: $0.x / factor, y: $0.y / factor) }
    divided.lineCount = Int(Double(lineCount) / factor)
    return divided
  }
}

/// Reads codes with zxing-cpp in one setting.
///
/// Any thread may use it, also concurrently: a read changes nothing.
final class ZXingReader: @unchecked Sendable {
  /// What a read tries.
  struct Options: Hashable {
    var triesHarder = true
    /// Whether linear codes are also searched for across the rows.
    var triesRotation = false
    var triesInversion = false
    var triesDownscale = false
  }

  private let options: OpaquePointer
  private let types: Set<MetadataObjectType>

  /// Creates a reader, or returns nil without memory.
  init?(_ types: Set<MetadataObjectType>, _ options: Options) {
    guard let pointer = ZXing_ReaderOptions_new() else { return nil }
    self.options = pointer
    self.types = types
    var formats = Self.formats.filter { types.contains($0.value) }.map(\.key)
    // As a family, Code 39 includes Code 32, which shows texts of 6 characters as 10 others.
    if let family = formats.firstIndex(of: ZXing_BarcodeFormat_Code39.rawValue) {
      formats[family] = ZXing_BarcodeFormat_Code39Std.rawValue
      formats.append(ZXing_BarcodeFormat_Code39Ext.rawValue)
    }
    ZXing_ReaderOptions_setFormats(
      pointer, formats.map { ZXing_BarcodeFormat(rawValue: $0) }, Int32(formats.count))
    ZXing_ReaderOptions_setTryHarder(pointer, options.triesHarder)
    ZXing_ReaderOptions_setTryRotate(pointer, options.triesRotation)
    ZXing_ReaderOptions_setTryInvert(pointer, options.triesInversion)
    ZXing_ReaderOptions_setTryDownscale(pointer, options.triesDownscale)
    ZXing_ReaderOptions_setTextMode(pointer, ZXing_TextMode_Plain)
  }

  deinit { ZXing_ReaderOptions_delete(options) }

  /// zxing-cpp's formats by the number of their enumeration.
  private static let formats: [UInt32: MetadataObjectType] = [
    ZXing_BarcodeFormat_UPCA.rawValue: .upca, ZXing_BarcodeFormat_UPCE.rawValue: .upce,
    ZXing_BarcodeFormat_EAN8.rawValue: .ean8, ZXing_BarcodeFormat_EAN13.rawValue: .ean13,
    ZXing_BarcodeFormat_Code39.rawValue: .code39, ZXing_BarcodeFormat_Code93.rawValue: .code93,
    ZXing_BarcodeFormat_Code128.rawValue: .code128,
    ZXing_BarcodeFormat_ITF.rawValue: .interleaved2of5,
    ZXing_BarcodeFormat_Codabar.rawValue: .codabar, ZXing_BarcodeFormat_QRCode.rawValue: .qr,
    ZXing_BarcodeFormat_MicroQRCode.rawValue: .microQR,
    ZXing_BarcodeFormat_Aztec.rawValue: .aztec, ZXing_BarcodeFormat_PDF417.rawValue: .pdf417,
    ZXing_BarcodeFormat_DataMatrix.rawValue: .dataMatrix,
  ]

  /// The type of a code, from its exact format or else from the family of formats.
  private static func type(of code: OpaquePointer) -> MetadataObjectType? {
    formats[ZXing_Barcode_format(code).rawValue] ?? formats[ZXing_Barcode_symbology(code).rawValue]
  }

  /// Finds the codes of an image.
  ///
  /// An image that zxing-cpp refuses has none.
  func read(_ image: LumaImage) -> [DetectedCode] {
    guard image.width > 2, image.height > 2,
      let view = ZXing_ImageView_new(
        image.base, Int32(clamping: image.width), Int32(clamping: image.height),
        ZXing_ImageFormat_Lum, Int32(clamping: image.bytesPerRow),
        Int32(clamping: image.bytesPerPixel))
    else { return [] }
    defer { ZXing_ImageView_delete(view) }
    guard let found = ZXing_ReadBarcodes(view, options) else { return [] }
    defer { ZXing_Barcodes_delete(found) }
    return (0..<ZXing_Barcodes_size(found)).compactMap { index in
      ZXing_Barcodes_at(found, index).flatMap(code)
    }
  }

  private func code(_ pointer: OpaquePointer) -> DetectedCode? {
    guard ZXing_Barcode_isValid(pointer), let type = Self.type(of: pointer), types.contains(type)
    else { return nil }
    let position = ZXing_Barcode_position(pointer)
    let corners = [
      position.topLeft, position.topRight, position.bottomRight, position.bottomLeft,
    ].map { PixelPoint(x: Double($0.x), y: Double($0.y)) }
    var count: Int32 = 0
    var bytes: [UInt8] = []
    if let copy = ZXing_Barcode_bytes(pointer, &count) {
      bytes = Array(UnsafeBufferPointer(start: copy, count: Int(count)))
      ZXing_free(copy)
    }
    let code = DetectedCode(
      type: type, text: text(of: pointer, bytes), bytes: bytes, corners: corners,
      isInverted: ZXing_Barcode_isInverted(pointer),
      lineCount: type.isLinear ? Int(ZXing_Barcode_lineCount(pointer)) : 0)
    return normalized(code, pointer)
  }

  /// A retail code with its own digits: 12 for UPC-A and 8 for UPC-E.
  ///
  /// zxing-cpp reports both with the 13 digits of EAN-13.
  private func normalized(_ code: DetectedCode, _ pointer: OpaquePointer) -> DetectedCode {
    var code = code
    if code.type == .upce, let digits = ZXing_Barcode_extra(pointer, "UPCE") {
      code.bytes = Array(String(cString: digits).utf8)
      ZXing_free(digits)
    } else if code.bytes.count == 13, code.bytes.first == UInt8(ascii: "0"),
      code.type == .upca || code.type == .ean13 && types.contains(.upca)
    {
      code.type = .upca
      code.bytes.removeFirst()
    } else {
      return code
    }
    code.text = String(decoding: code.bytes, as: UTF8.self)
    return code
  }

  /// The text of a code, or nil if its bytes are no text.
  private func text(of pointer: OpaquePointer, _ bytes: [UInt8]) -> String? {
    // A text with a zero byte would end there.
    let kind = ZXing_Barcode_contentType(pointer)
    let isBinary = kind == ZXing_ContentType_Binary || kind == ZXing_ContentType_UnknownECI
    if isBinary || bytes.contains(0) { return String(validating: bytes, as: UTF8.self) }
    guard let copy = ZXing_Barcode_text(pointer) else { return nil }
    defer { ZXing_free(copy) }
    return String(cString: copy)
  }
}
