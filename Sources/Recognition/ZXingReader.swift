// SPDX-License-Identifier: Apache-2.0

import CCodeReader
import OvercrankMediaCore
import OvercrankRaster

/// A code that zxing-cpp has read, with corners in pixels.
struct DetectedCode: DetectedObject, Hashable, Sendable {
  var type: MetadataObjectType
  /// The text of the code; nil if the code's bytes are not text.
  var text: String?
  var bytes: [UInt8]
  var corners: [Point]
  /// Whether the code is light on dark.
  var isInverted = false
  /// The number of image rows in which a bar code was read; 0 for other codes.
  var lineCount = 0

  /// The code's type and content, which identify the code.
  struct Key: Hashable, Sendable {
    let type: MetadataObjectType
    let bytes: [UInt8]
  }
  var key: Key { Key(type: type, bytes: bytes) }

  /// Whether the text has enough check characters that one read is as good as certain.
  var isCertain: Bool { !Self.uncertain.contains(type) }

  /// The types without a mandatory checksum, or with a weak one, and PDF417, whose error correction
  /// turns very blurred symbols into wrong texts.
  private static let uncertain: Set<MetadataObjectType> = [
    .interleaved2of5, .codabar, .code39, .upce, .ean8, .pdf417,
  ]

  var center: Point {
    Point(
      x: corners.reduce(0) { $0 + $1.x } / Double(max(1, corners.count)),
      y: corners.reduce(0) { $0 + $1.y } / Double(max(1, corners.count)))
  }

  /// The edges of the upright rectangle around the code, in pixels.
  var edges: (left: Double, top: Double, right: Double, bottom: Double) {
    (
      corners.map(\.x).min() ?? 0, corners.map(\.y).min() ?? 0, corners.map(\.x).max() ?? 0,
      corners.map(\.y).max() ?? 0
    )
  }

  /// The longer side of the upright rectangle around the code, in pixels.
  var size: Double {
    let edges = edges
    return max(edges.right - edges.left, edges.bottom - edges.top)
  }

  func moved(byX x: Int, y: Int) -> DetectedCode {
    var moved = self
    moved.corners = corners.map { Point(x: $0.x + Double(x), y: $0.y + Double(y)) }
    return moved
  }

  /// Returns the code in coordinates of the original image, which the searched image enlarges by
  /// `factor`.
  func divided(by factor: Double) -> DetectedCode {
    var divided = self
    divided.corners = corners.map { Point(x: $0.x / factor, y: $0.y / factor) }
    divided.lineCount = Int(Double(lineCount) / factor)
    return divided
  }
}

/// The library with zxing-cpp, loaded when codes are first read.
private enum CodeLibrary {
  static let loaded = Result { () throws(MediaError) in
    try RecognitionLibrary<overcrank_code_functions>(
      .codeReader, file: "libovercrank-codes.so.1", symbol: "overcrank_code_functions_1")
  }
}

/// Reads codes with zxing-cpp, with fixed options.
///
/// Any thread may use it, also concurrently: a read changes nothing.
final class ZXingReader: @unchecked Sendable {
  /// The transformations of the image that a read tries besides the unchanged image.
  struct Options: Hashable {
    var triesHarder = true
    /// Whether bar codes are also searched for in the columns of the image.
    var triesRotation = false
    var triesInversion = false
    var triesDownscale = false
  }

  private let library: overcrank_code_functions
  private let reader: OpaquePointer
  private let types: Set<MetadataObjectType>

  /// Creates a reader.
  ///
  /// - Throws: `MediaError` with `.missingComponent` if the library is not installed, or
  ///   `.outOfMemory`.
  init(_ types: Set<MetadataObjectType>, _ options: Options) throws(MediaError) {
    library = try CodeLibrary.loaded.get().functions
    self.types = types
    let bits = Self.types.filter { types.contains($0.value) }.keys.reduce(0, |)
    var settings = overcrank_code_options(
      types: bits, tries_harder: options.triesHarder, tries_rotation: options.triesRotation,
      tries_inversion: options.triesInversion, tries_downscale: options.triesDownscale)
    guard let reader = library.create(&settings) else {
      throw MediaError(
        .outOfMemory, "zxing-cpp has no memory for its options",
        recovery: "close other programs and try again")
    }
    self.reader = reader
  }

  deinit { library.destroy(reader) }

  /// The types of codes by their bits in the C interface of the library.
  private static let types: [UInt32: MetadataObjectType] = [
    overcrank_code_upca: .upca, overcrank_code_upce: .upce, overcrank_code_ean8: .ean8,
    overcrank_code_ean13: .ean13, overcrank_code_code39: .code39, overcrank_code_code93: .code93,
    overcrank_code_code128: .code128, overcrank_code_itf: .interleaved2of5,
    overcrank_code_codabar: .codabar, overcrank_code_qr: .qr, overcrank_code_micro_qr: .microQR,
    overcrank_code_aztec: .aztec, overcrank_code_pdf417: .pdf417,
    overcrank_code_data_matrix: .dataMatrix,
  ].reduce(into: [:]) { $0[UInt32($1.key)] = $1.value }

  /// Finds the codes of an image.
  ///
  /// If zxing-cpp refuses the image, the result is empty.
  func read(_ image: LumaImage) -> [DetectedCode] {
    guard image.width > 2, image.height > 2 else { return [] }
    var search = Search(types: types)
    withUnsafeMutablePointer(to: &search) { search in
      library.read(
        reader, image.base, Int32(clamping: image.width), Int32(clamping: image.height),
        Int32(clamping: image.bytesPerRow), Int32(clamping: image.bytesPerPixel),
        { context, code in
          guard let code else { return }
          context?.assumingMemoryBound(to: Search.self).pointee.add(code.pointee)
        }, search)
    }
    return search.found
  }

  /// The codes that zxing-cpp returned for one image.
  private struct Search {
    let types: Set<MetadataObjectType>
    var found: [DetectedCode] = []

    mutating func add(_ code: overcrank_code) {
      guard let type = ZXingReader.types[code.type], types.contains(type) else { return }
      let corners = [code.corners.0, code.corners.1, code.corners.2, code.corners.3]
      let bytes = Array(UnsafeBufferPointer(start: code.bytes, count: code.byte_count))
      let detected = DetectedCode(
        type: type, text: Self.text(of: code, bytes), bytes: bytes,
        corners: corners.map { Point(x: Double($0.x), y: Double($0.y)) },
        isInverted: code.is_inverted, lineCount: type.isLinear ? Int(code.line_count) : 0)
      found.append(normalized(detected, code))
    }

    /// Returns a retail code with its printed number of digits: 12 for UPC-A and 8 for UPC-E.
    ///
    /// zxing-cpp reports both as the 13 digits of EAN-13.
    private func normalized(_ detected: DetectedCode, _ code: overcrank_code) -> DetectedCode {
      var detected = detected
      if detected.type == .upce, let digits = code.upce_digits {
        detected.bytes = Array(String(cString: digits).utf8)
      } else if detected.bytes.count == 13, detected.bytes.first == UInt8(ascii: "0"),
        detected.type == .upca || detected.type == .ean13 && types.contains(.upca)
      {
        detected.type = .upca
        detected.bytes.removeFirst()
      } else {
        return detected
      }
      detected.text = String(decoding: detected.bytes, as: UTF8.self)
      return detected
    }

    /// Returns the text of a code; nil if its bytes are not text.
    private static func text(of code: overcrank_code, _ bytes: [UInt8]) -> String? {
      // As a C string, a text that contains a zero byte would end there, so the bytes are used.
      if code.is_binary || bytes.contains(0) { return String(validating: bytes, as: UTF8.self) }
      return code.text.map { String(cString: $0) }
    }
  }
}
