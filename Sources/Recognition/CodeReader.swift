// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankRaster
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
  /// The effort of a read; more effort finds more codes and takes longer.
  public enum Effort: String, Hashable, Sendable, CaseIterable {
    /// Reads the image, and the image at a third of its size.
    case standard
    /// Like ``standard``, and also reads rotated and inverted codes.
    case thorough
    /// Reads the image at twice its size, for codes with small modules.
    ///
    /// The same as ``thorough`` for images of more than 1.5 megapixels.
    case magnified
    /// Like ``thorough``, and also reads three enlarged images: twice the size by a bicubic filter,
    /// twice and four times by a Lanczos filter.
    ///
    /// Each enlarged image shows small codes that cannot be read in the other images. Bar codes
    /// that only one Lanczos image shows are left out.
    ///
    /// The same as ``thorough`` for images of more than 1.5 megapixels.
    case exhaustive
  }

  /// The types of codes that the reader finds.
  public let types: [MetadataObjectType]
  private let readers: [ZXingReader.Options: ZXingReader]
  private let single: [MetadataObjectType: [Bool: ZXingReader]]
  /// The enlargements for `exhaustive`; the first one is also that of `magnified`.
  private let magnifiers = [
    Magnifier(factor: 2, .exact), Magnifier(factor: 2, .lanczos), Magnifier(factor: 4, .lanczos),
  ]

  /// The greatest number of pixels of an image that is still magnified.
  static let largestMagnified = 1_500_000

  /// Creates a reader.
  ///
  /// - Parameter types: The types to find; all by default.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable` for a type that is not a code, or an
  ///   empty list; `.missingComponent` if the library with zxing-cpp is not installed;
  ///   `.outOfMemory`.
  public init(types: [MetadataObjectType] = MetadataObjectType.codes) throws(MediaError) {
    try MediaError.checkAvailable(types, among: MetadataObjectType.codes)
    self.types = types
    var readers: [ZXingReader.Options: ZXingReader] = [:]
    for options in [ZXingReader.Options.standard, .thorough, .magnified] {
      readers[options] = try ZXingReader(Set(types), options)
    }
    self.readers = readers
    var single: [MetadataObjectType: [Bool: ZXingReader]] = [:]
    for type in types {
      var options = ZXingReader.Options()
      let upright = try ZXingReader([type], options)
      options.triesRotation = true
      options.triesInversion = true
      single[type] = [false: upright, true: try ZXingReader([type], options)]
    }
    self.single = single
  }

  /// Finds the codes of an image.
  ///
  /// A text that is read once may be wrong, in particular the text of a long bar code that is only
  /// partly visible. `MetadataOutput` reports only texts that two frames agree on.
  ///
  /// - Parameters:
  ///   - image: The image, in any pixel format that libswscale can read.
  ///   - effort: The attempts to make, such as other scales or rotations.
  /// - Returns: The codes, with coordinates from 0 to 1 and the time 0.
  /// - Throws: `MediaError` with `.notConvertible` for a pixel format that cannot be converted to
  ///   gray.
  public func objects(
    in image: PixelBuffer, effort: Effort = .exhaustive
  ) throws(MediaError) -> [MetadataObject] {
    guard image.width > 0, image.height > 0 else { return [] }
    return try image.withLuma { luma in
      read(luma, effort).map {
        MetadataObject($0, width: luma.width, height: luma.height, at: .zero, duration: .zero)
      }
    }
  }

  /// Finds the codes of an image, with coordinates in pixels of the image.
  func read(_ image: LumaImage, _ effort: Effort) -> [DetectedCode] {
    switch effort {
    case .standard: return CodeFilter.filtered(readOnce(image, .standard))
    case .thorough: return CodeFilter.filtered(readOnce(image, .thorough))
    case .magnified:
      guard image.width * image.height <= Self.largestMagnified else {
        return read(image, .thorough)
      }
      guard let frame = image.copied() else { return [] }
      return CodeFilter.filtered(readMagnified(frame, .magnified, magnifiers[0]))
    case .exhaustive:
      let found = readOnce(image, .thorough)
      guard image.width * image.height <= Self.largestMagnified, let frame = image.copied() else {
        return CodeFilter.filtered(found)
      }
      let twice = readMagnified(frame, .thorough, magnifiers[0])
      let sharp = magnifiers.dropFirst().map { readMagnified(frame, .magnified, $0) }
      return CodeFilter.filtered(found + twice + CodeFilter.agreed(sharp, besides: found + twice))
    }
  }

  /// Finds the codes of one type, in a small part of an image.
  ///
  /// `isRotated` is true if the code may be rotated or inverted, which takes longer to read.
  func read(_ image: LumaImage, _ type: MetadataObjectType, isRotated: Bool) -> [DetectedCode] {
    CodeFilter.filtered(single[type]?[isRotated]?.read(image) ?? [])
  }

  /// Finds the codes of an image like ``Effort/thorough``, and reads doubtful ones a second time.
  ///
  /// A bar code that is read in too few rows is left out by the other searches. Here it is kept if an
  /// enlarged image shows it too.
  func readTwice(_ image: LumaImage) -> [DetectedCode] {
    CodeFilter.filtered(
      readOnce(image, .thorough).map { code in
        let fewest = CodeFilter.fewestLines[code.type, default: 0]
        guard code.lineCount < fewest, isConfirmed(code, in: image) else { return code }
        var code = code
        code.lineCount = fewest
        return code
      })
  }

  /// Whether another image of a code shows the same code: one in which it is upright, or an enlarged
  /// one.
  ///
  /// Its pixels differ from those that were read, so a code that was misread by chance is not
  /// confirmed.
  func isConfirmed(_ code: DetectedCode, in image: LumaImage) -> Bool {
    func shows(_ frame: MediaFrame) -> Bool {
      guard let luma = LumaImage(frame) else { return false }
      return withExtendedLifetime(frame) {
        // The second read may use as few rows as the first, and a smaller image, as the first.
        readOnce(luma, .thorough).contains { $0.key == code.key }
      }
    }
    if let upright = image.upright(code), shows(upright) { return true }
    let area = code.searchArea().clamped(width: image.width, height: image.height)
    guard let frame = image.cropped(to: area)?.copied() else { return false }
    return magnifiers.contains { $0.magnified(frame).map(shows) ?? false }
  }

  private func readOnce(_ image: LumaImage, _ options: ZXingReader.Options) -> [DetectedCode] {
    readers[options]?.read(image) ?? []
  }

  private func readMagnified(
    _ frame: MediaFrame, _ options: ZXingReader.Options, _ magnifier: Magnifier
  ) -> [DetectedCode] {
    guard let magnified = magnifier.magnified(frame), let luma = LumaImage(magnified) else {
      return []
    }
    return withExtendedLifetime(magnified) {
      readOnce(luma, options).map { $0.divided(by: Double(magnifier.factor)) }
    }
  }
}

/// Enlarges images.
///
/// Any thread may use it. Concurrent calls wait for the shared converter, which is fast compared to
/// reading codes.
private final class Magnifier: Sendable {
  private struct State: ~Copyable {
    var converter: FrameConverter?
    var size: [Int] = []
  }

  let factor: Int
  private let quality: ConversionQuality
  private let state = Mutex(State())

  init(factor: Int, _ quality: ConversionQuality) {
    (self.factor, self.quality) = (factor, quality)
  }

  /// Returns the enlarged frame, or nil if memory is exhausted.
  func magnified(_ frame: MediaFrame) -> MediaFrame? {
    state.withLock { state in
      if state.size != [frame.width, frame.height] {
        state.size = [frame.width, frame.height]
        state.converter = FrameConverter(
          to: .gray8, isFullRange: true, width: factor * frame.width,
          height: factor * frame.height, quality: quality)
      }
      return try? state.converter?.convert(frame)
    }
  }
}

extension ZXingReader.Options {
  fileprivate static let standard = ZXingReader.Options(triesDownscale: true)
  fileprivate static let thorough = ZXingReader.Options(
    triesRotation: true, triesInversion: true, triesDownscale: true)
  fileprivate static let magnified = ZXingReader.Options(triesRotation: true)
}

extension LumaImage {
  /// Returns a part of the image, twice as large, in which a code is upright; nil if memory is
  /// exhausted or the code has no corners.
  ///
  /// Pixels beyond the image are those at its edges. Along the bars, several rows are averaged, which
  /// removes noise.
  fileprivate func upright(_ code: DetectedCode) -> MediaFrame? {
    guard code.corners.count == 4 else { return nil }
    let (first, across, down) = (code.corners[0], code.corners[1], code.corners[3])
    let (dx, dy) = (across.x - first.x, across.y - first.y)
    let length = (dx * dx + dy * dy).squareRoot()
    let (hx, hy) = (down.x - first.x, down.y - first.y)
    let size = (hx * hx + hy * hy).squareRoot()
    guard length >= 4, length < 4096, size < 4096 else { return nil }
    let margin = 0.12 * length + 8
    // The corners of a bar code enclose only the lines that were read.
    let frameHeight = Int(2 * (size + (code.type.isLinear ? 20 : 2 * margin)))
    let frameWidth = Int(2 * (length + 2 * margin))
    guard
      let frame = try? MediaFrame.video(
        width: frameWidth, height: frameHeight, pixelFormat: .gray8),
      let plane = frame.planeData(0)
    else { return nil }
    let (stepX, stepY) = (dx / length / 2, dy / length / 2)
    let center = code.center
    // The bars of PDF417 are three modules high.
    let reach = code.type.isLinear ? 10 : code.type == .pdf417 ? 3 : 0
    var rows: [[Int]] = []
    var sums = [Int](repeating: 0, count: frameWidth)
    for row in -reach..<frameHeight + reach {
      let v = Double(row) - Double(frameHeight) / 2
      let next = (0..<frameWidth).map { column in
        let u = Double(column) - Double(frameWidth) / 2
        return Int(
          sample(x: center.x + u * stepX - v * stepY, y: center.y + u * stepY + v * stepX))
      }
      rows.append(next)
      for column in 0..<frameWidth { sums[column] += next[column] }
      guard rows.count > 2 * reach else { continue }
      let line = plane + (row - reach) * frame.bytesPerRow(0)
      let first = rows.removeFirst()
      for column in 0..<frameWidth {
        line[column] = UInt8(sums[column] / (2 * reach + 1))
        sums[column] -= first[column]
      }
    }
    return frame
  }

  /// The brightness between pixels.
  private func sample(x: Double, y: Double) -> UInt8 {
    let (x, y) = (max(0, min(Double(width - 1), x)), max(0, min(Double(height - 1), y)))
    let (left, top) = (Int(x), Int(y))
    let (right, bottom) = (min(left + 1, width - 1), min(top + 1, height - 1))
    let (partX, partY) = (x - Double(left), y - Double(top))
    func row(_ index: Int) -> Double {
      let line = base + index * bytesPerRow
      return Double(line[left * bytesPerPixel]) * (1 - partX)
        + Double(line[right * bytesPerPixel]) * partX
    }
    return UInt8(row(top) * (1 - partY) + row(bottom) * partY)
  }
}

extension MetadataObject {
  /// Makes the metadata object of a code that was found in an image of this size.
  init(
    _ code: DetectedCode, width: Int, height: Int, at time: MediaTime, duration: MediaTime
  ) {
    self.init(
      type: code.type, time: time, duration: duration,
      corners: code.corners.map {
        Point(x: $0.x / Double(width), y: $0.y / Double(height))
      }, stringValue: code.text, rawBytes: code.bytes)
  }
}
