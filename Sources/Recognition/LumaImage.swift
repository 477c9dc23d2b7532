// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

extension LumaImage {
  /// Formats whose first plane is 8-bit luma.
  private static let planar: Set<String> = [
    "gray", "yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "yuv440p",
    "yuvj440p", "yuv411p", "yuvj411p", "yuv410p", "nv12", "nv21", "nv16", "nv24",
  ]

  /// Returns the offset of the first luma byte, and the distance from one luma byte to the next;
  /// nil for a format that must be converted.
  private static func layout(_ format: String) -> (offset: Int, bytesPerPixel: Int)? {
    if planar.contains(format) { return (0, 1) }
    if format == "yuyv422" { return (0, 2) }
    return format == "uyvy422" ? (1, 2) : nil
  }

  /// Uses the luma in the bytes of an uncompressed frame, without copying.
  ///
  /// `bytesPerRow` is the stride of the first plane, or 0 for packed rows. Nil for a format that must
  /// be converted, and for too few bytes.
  init?(
    _ bytes: UnsafeRawBufferPointer, format: PixelFormat, width: Int, height: Int, bytesPerRow: Int
  ) {
    guard let layout = Self.layout(format.rawValue), width > 0, height > 0,
      let start = bytes.baseAddress
    else { return nil }
    let used = width * layout.bytesPerPixel
    let stride = max(bytesPerRow, used)
    guard bytes.count >= stride * (height - 1) + used else { return nil }
    self.init(
      base: (start + layout.offset).assumingMemoryBound(to: UInt8.self), width: width,
      height: height, bytesPerRow: stride, bytesPerPixel: layout.bytesPerPixel)
  }

  /// Uses the luma of a decoded frame, without copying.
  ///
  /// Valid as long as the frame; nil for a format that must be converted.
  init?(_ frame: MediaFrame) {
    guard let layout = Self.layout(frame.pixelFormat.name), frame.width > 0, frame.height > 0,
      frame.bytesPerRow(0) >= frame.width * layout.bytesPerPixel, let plane = frame.planeData(0)
    else { return nil }
    self.init(
      base: UnsafePointer(plane) + layout.offset, width: frame.width, height: frame.height,
      bytesPerRow: frame.bytesPerRow(0), bytesPerPixel: layout.bytesPerPixel)
  }

  /// The smallest rectangle with all pixels that differ from those of another image; the whole image
  /// if the other one has another size.
  func area(changedSince other: LumaImage) -> PixelRect {
    guard (width, height) == (other.width, other.height), bytesPerPixel == other.bytesPerPixel
    else { return area }
    let count = (width - 1) * bytesPerPixel + 1
    var (left, right, top, bottom) = (width, -1, height, -1)
    for row in 0..<height {
      let (line, before) = (base + row * bytesPerRow, other.base + row * other.bytesPerRow)
      guard memcmp(line, before, count) != 0 else { continue }
      (top, bottom) = (min(top, row), row)
      func isSame(_ column: Int) -> Bool {
        line[column * bytesPerPixel] == before[column * bytesPerPixel]
      }
      left = (0..<left).first { !isSame($0) } ?? left
      right = (right + 1..<width).last { !isSame($0) } ?? right
    }
    return PixelRect(
      x: min(left, width), y: min(top, height), width: max(0, right - left + 1),
      height: max(0, bottom - top + 1))
  }

  /// Returns a copy as a gray frame, or nil if memory is exhausted.
  func copied() -> MediaFrame? {
    guard let frame = try? MediaFrame.video(width: width, height: height, pixelFormat: .gray8),
      let plane = frame.planeData(0)
    else { return nil }
    for row in 0..<height {
      let (line, target) = (base + row * bytesPerRow, plane + row * frame.bytesPerRow(0))
      for column in 0..<width { target[column] = line[column * bytesPerPixel] }
    }
    return frame
  }
}

/// Provides the luma of frames, one frame at a time.
///
/// Compressed frames are decoded.
///
/// Use an instance on one thread at a time.
struct LumaExtractor: ~Copyable {
  private var decoder = FrameDecoder()
  private var converter = FrameConverter(to: .gray8, isFullRange: true)

  /// Calls a closure with the luma of a camera's frame.
  ///
  /// - Throws: `CallFailure` for a damaged frame, or a codec with inter-frame prediction.
  mutating func withLuma<Result>(
    of bytes: UnsafeRawBufferPointer, _ description: FormatDescription,
    _ body: (LumaImage) -> Result
  ) throws(CallFailure) -> Result {
    if case .pixels(let format) = description.mediaSubType,
      let luma = LumaImage(
        bytes, format: format, width: description.width, height: description.height,
        bytesPerRow: description.bytesPerRow)
    {
      return body(luma)
    }
    return try withLuma(of: decoder.frame(bytes, description), body)
  }

  /// Calls a closure with the luma of a decoded frame.
  ///
  /// - Throws: `CallFailure` if the frame cannot be converted.
  mutating func withLuma<Result>(
    of frame: MediaFrame, _ body: (LumaImage) -> Result
  ) throws(CallFailure) -> Result {
    let (luma, owner) = try luma(of: frame)
    return withExtendedLifetime(owner) { body(luma) }
  }

  /// Returns the luma of a decoded frame, and the frame to which its memory belongs.
  ///
  /// - Throws: `CallFailure` if the frame cannot be converted.
  mutating func luma(
    of frame: MediaFrame
  ) throws(CallFailure) -> (luma: LumaImage, owner: MediaFrame) {
    if let luma = LumaImage(frame) { return (luma, frame) }
    let gray = try converter.convert(frame)
    guard let luma = LumaImage(gray) else {
      throw CallFailure("convert", "a frame to gray", code: -22)
    }
    return (luma, gray)
  }
}

extension PixelBuffer {
  /// Calls a closure with the luma of this image.
  ///
  /// - Throws: `MediaError` with `.notConvertible`.
  func withLuma<Value>(_ body: (LumaImage) -> Value) throws(MediaError) -> Value {
    let plane = planes.first
    let found: Value? = bytes.withUnsafeBytes { bytes in
      LumaImage(
        bytes, format: format, width: width, height: height, bytesPerRow: plane?.bytesPerRow ?? 0
      ).map(body)
    }
    if let found { return found }
    do throws(CallFailure) {
      let frame = try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in
        try MediaFrame.video(
          copying: bytes, width: width, height: height,
          pixelFormat: LibAVPixelFormat(finding: format), bytesPerRow: 0)
      }
      var extractor = LumaExtractor()
      return try extractor.withLuma(of: frame, body)
    } catch {
      throw MediaError(
        .notConvertible, "an image of \(format.rawValue) cannot be converted to gray",
        recovery: "choose a format such as gray, nv12 or bgra")
    }
  }
}
