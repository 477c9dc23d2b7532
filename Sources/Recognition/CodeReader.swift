// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// Reads machine-readable codes in single images, with zxing-cpp.
///
/// ```swift
/// let reader = try CodeReader(types: [.qr, .ean13])
/// for code in try reader.objects(in: image) { print(code.stringValue ?? "") }
/// ```
///
/// Any thread may use it, also concurrently.
public final class CodeReader: Sendable {
  /// The effort of a read, in ascending order of cost.
  public enum Effort: String, Hashable, Sendable, CaseIterable {
    /// The image, and the image at a third of its size.
    case standard
    /// Also rotated and inverted.
    case thorough
    /// The image at twice its size, for codes with small modules.
    ///
    /// The same as ``thorough`` for images of more than 1.5 megapixels.
    case magnified
    /// ``thorough``, and the same at twice the size.
    case exhaustive
  }

  /// The types of codes that the reader finds.
  public let types: [MetadataObjectType]
  private let readers: [ZXingReader.Options: ZXingReader]
  private let single: [MetadataObjectType: [Bool: ZXingReader]]
  private let magnifier = Mutex(Magnifier())

  /// Images of more pixels are not magnified.
  static let largestMagnified = 1_500_000

  /// Creates a reader.
  ///
  /// - Parameter types: The types to find. By default all.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable` for a type that is no code, or an empty
  ///   list; `.outOfMemory` without memory.
  public init(types: [MetadataObjectType] = MetadataObjectType.codes) throws(MediaError) {
    try MediaError.checkAvailable(types)
    self.types = types
    var readers: [ZXingReader.Options: ZXingReader] = [:]
    for options in [ZXingReader.Options.standard, .thorough, .magnified] {
      readers[options] = try Self.reader(Set(types), options)
    }
    self.readers = readers
    var single: [MetadataObjectType: [Bool: ZXingReader]] = [:]
    for type in types {
      var options = ZXingReader.Options()
      let upright = try Self.reader([type], options)
      options.triesRotation = true
      options.triesInversion = true
      single[type] = [false: upright, true: try Self.reader([type], options)]
    }
    self.single = single
  }

  private static func reader(
    _ types: Set<MetadataObjectType>, _ options: ZXingReader.Options
  ) throws(MediaError) -> ZXingReader {
    guard let reader = ZXingReader(types, options) else {
      throw MediaError(
        .outOfMemory, "zxing-cpp has no memory for its options",
        recovery: "close other programs and try again")
    }
    return reader
  }

  /// Finds the codes of an image.
  ///
  /// A text that is read once may be wrong, in particular that of a long code of bars of which only
  /// a part is visible. `MetadataOutput` reports only texts that two frames agree on.
  ///
  /// - Parameters:
  ///   - image: The image, in any pixel format that libswscale can read.
  ///   - effort: What is tried.
  /// - Returns: The codes, with coordinates from 0 to 1 and the time 0.
  /// - Throws: `MediaError` with `.notConvertible` for a pixel format that cannot be converted to
  ///   gray.
  public func objects(
    in image: PixelBuffer, effort: Effort = .exhaustive
  ) throws(MediaError) -> [MetadataObject] {
    guard image.width > 0, image.height > 0 else { return [] }
    return try withLuma(of: image) { luma in
      read(luma, effort).map {
        MetadataObject($0, width: luma.width, height: luma.height, at: .zero, duration: .zero)
      }
    }
  }

  private func withLuma<Value>(
    of image: PixelBuffer, _ body: (LumaImage) -> Value
  ) throws(MediaError) -> Value {
    let plane = image.planes.first
    let found: Value? = image.bytes.withUnsafeBytes { bytes in
      LumaImage(
        bytes, format: image.format, width: image.width, height: image.height,
        bytesPerRow: plane?.bytesPerRow ?? 0
      ).map(body)
    }
    if let found { return found }
    do throws(LibAVError) {
      let frame = try image.bytes.withUnsafeBytes { bytes in
        Result { () throws(LibAVError) in
          try MediaFrame.video(
            copying: bytes, width: image.width, height: image.height,
            pixelFormat: LibAVPixelFormat(finding: image.format), bytesPerRow: 0)
        }
      }.get()
      var extractor = LumaExtractor()
      return try extractor.withLuma(of: frame, body)
    } catch {
      throw MediaError(
        .notConvertible, "an image of \(image.format.rawValue) cannot be converted to gray",
        recovery: "choose a format such as gray, nv12 or bgra")
    }
  }

  /// Finds the codes of an image, with coordinates in its pixels.
  func read(_ image: LumaImage, _ effort: Effort) -> [DetectedCode] {
    switch effort {
    case .standard: return CodeFilter.filtered(readOnce(image, .standard))
    case .thorough: return CodeFilter.filtered(readOnce(image, .thorough))
    case .magnified:
      guard image.width * image.height <= Self.largestMagnified else {
        return read(image, .thorough)
      }
      return CodeFilter.filtered(readMagnified(image, .magnified))
    case .exhaustive:
      var found = readOnce(image, .thorough)
      if image.width * image.height <= Self.largestMagnified {
        found += readMagnified(image, .thorough)
      }
      return CodeFilter.filtered(found)
    }
  }

  /// Finds the codes of one type, in a small part of an image.
  ///
  /// `isRotated` says that the code's lines may run across the rows, or be inverted.
  func read(_ image: LumaImage, _ type: MetadataObjectType, isRotated: Bool) -> [DetectedCode] {
    CodeFilter.filtered(single[type]?[isRotated]?.read(image) ?? [])
  }

  private func readOnce(_ image: LumaImage, _ options: ZXingReader.Options) -> [DetectedCode] {
    readers[options]?.read(image) ?? []
  }

  private func readMagnified(
    _ image: LumaImage, _ options: ZXingReader.Options
  ) -> [DetectedCode] {
    // The scaler of concurrent reads is shared, and small against the read.
    let magnified = magnifier.withLock { $0.magnified(image) }
    guard let magnified, let luma = LumaImage(magnified) else { return [] }
    return withExtendedLifetime(magnified) {
      readOnce(luma, options).map { $0.moved(byX: 0, y: 0, scale: 0.5) }
    }
  }
}

/// Enlarges images twice with bicubic interpolation.
private struct Magnifier: ~Copyable {
  private var converter: FrameConverter?
  private var size: [Int] = []

  init() {}

  /// Returns the enlarged image, or nil without memory.
  mutating func magnified(_ image: LumaImage) -> MediaFrame? {
    if size != [image.width, image.height] {
      size = [image.width, image.height]
      converter = FrameConverter(
        to: .gray8, isFullRange: true, width: 2 * image.width, height: 2 * image.height)
    }
    let bytes = image.packedBytes()
    return try? bytes.withUnsafeBytes { bytes in
      let frame = try MediaFrame.video(
        copying: bytes, width: image.width, height: image.height, pixelFormat: .gray8,
        bytesPerRow: 0)
      return try converter?.convert(frame)
    }
  }
}

extension ZXingReader.Options {
  fileprivate static let standard = ZXingReader.Options(triesDownscale: true)
  fileprivate static let thorough = ZXingReader.Options(
    triesRotation: true, triesInversion: true, triesDownscale: true)
  fileprivate static let magnified = ZXingReader.Options(triesRotation: true)
}

extension MetadataObject {
  /// The object of a code that was found in an image of this size.
  init(
    _ code: DetectedCode, width: Int, height: Int, at time: MediaTime, duration: MediaTime
  ) {
    self.init(
      type: code.type, time: time, duration: duration,
      corners: code.corners.map {
        PreviewPoint(x: $0.x / Double(width), y: $0.y / Double(height))
      }, stringValue: code.text, rawBytes: code.bytes)
  }
}
