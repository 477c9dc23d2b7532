// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore
import Synchronization

/// The converter of a data output: it decodes, crops, scales and rotates frames.
///
/// The images that it returns come from a pool. Only one thread at a time may use the converter.
package final class SampleConverter: @unchecked Sendable {
  /// The conversion of a frame: its settings, rotation and zoom factor.
  package struct Work: Hashable {
    var settings: VideoDataSettings?
    var rotation: FrameRotation
    var factor: Double

    package init(
      settings: VideoDataSettings? = nil, rotation: FrameRotation = .none, factor: Double = 1
    ) {
      (self.settings, self.rotation, self.factor) = (settings, rotation, factor)
    }

    /// Whether no conversion is needed, so that the camera's own bytes are delivered.
    var isNothing: Bool { settings == nil && rotation == .none && factor == 1 }
  }

  private var decoder = FrameDecoder()
  private let quality: ConversionQuality
  private var magnifier: FrameMagnifier
  private var converter: FrameConverter?
  private var scaling: Scaling?
  private var last: FrameConverter?
  private var lastTarget: LibAVPixelFormat?
  private var pool: PixelBufferPool?

  private struct Scaling: Equatable {
    let target: LibAVPixelFormat
    let width: Int
    let height: Int
  }

  package init(quality: ConversionQuality = .exact) {
    self.quality = quality
    magnifier = FrameMagnifier(quality: quality)
  }

  /// Converts a frame.
  ///
  /// - Returns: The image, and the pool that takes it back.
  /// - Throws: `CallFailure` if the frame is damaged or cannot be converted.
  package func convert(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, _ work: Work
  ) throws -> (image: PixelBuffer, pool: PixelBufferPool) {
    let frame = try decoder.frame(bytes, description)
    let target = try LibAVPixelFormat(finding: work.format(of: description))
    let working = target.rotatable(by: work.rotation)
    let isTransposed = work.rotation.isTransposed
    let size = (work.settings ?? VideoDataSettings()).size(
      ofFrame: isTransposed ? frame.height : frame.width,
      isTransposed ? frame.width : frame.height)
    // The image is scaled before it is rotated, so a rotation by 90 or 270 degrees exchanges the
    // width and height to scale to.
    let (width, height) = isTransposed ? (size.height, size.width) : (size.width, size.height)
    var image: MediaFrame
    if work.factor == 1 {
      image = try scale(frame, Scaling(target: working, width: width, height: height))
    } else {
      image = try magnifier.magnify(
        frame, by: work.factor, to: working, isFullRange: working.isFullRange, width: width,
        height: height)
    }
    image = try image.rotated(by: work.rotation)
    if working != target { image = try finish(image, target) }
    let pool = try pool(target, size.width, size.height)
    var buffer = try pool.makePixelBuffer()
    buffer.attachments = [:]
    try image.copy(into: &buffer)
    return (buffer, pool)
  }

  private func scale(_ frame: MediaFrame, _ wanted: Scaling) throws(CallFailure) -> MediaFrame {
    if wanted != scaling {
      converter = FrameConverter(
        to: wanted.target, isFullRange: wanted.target.isFullRange, width: wanted.width,
        height: wanted.height, quality: quality)
      scaling = wanted
    }
    return try converter?.convert(frame) ?? frame
  }

  /// After the rotation, converts an image to the requested pixel format, if the rotation does not
  /// support that format.
  private func finish(
    _ image: MediaFrame, _ target: LibAVPixelFormat
  ) throws(CallFailure) -> MediaFrame {
    if target != lastTarget {
      last = FrameConverter(to: target, isFullRange: target.isFullRange, quality: quality)
      lastTarget = target
    }
    return try last?.convert(image) ?? image
  }

  private func pool(
    _ format: LibAVPixelFormat, _ width: Int, _ height: Int
  ) throws(MediaError) -> PixelBufferPool {
    if let pool, pool.format.rawValue == format.name, pool.width == width, pool.height == height {
      return pool
    }
    let made = try PixelBufferPool(
      format: PixelFormat(rawValue: format.name), width: width, height: height)
    pool = made
    return made
  }
}

extension SampleConverter.Work {
  /// The pixel format to which a frame with this description is converted.
  fileprivate func format(of description: FormatDescription) -> PixelFormat {
    if let format = settings?.pixelFormat { return format }
    guard case .pixels(let format) = description.mediaSubType,
      LibAVPixelFormat(format)?.isConversionTarget == true
    else { return .yuv420p }
    return format
  }
}

extension FormatDescription {
  /// Whether each frame can be decoded alone and read by libswscale.
  package var isConvertible: Bool { !PixelFormat.available(from: mediaSubType).isEmpty }
}

extension PixelFormat {
  /// Common pixel formats that frames can be converted to, cheapest conversion first.
  ///
  /// The format of the source is first, because it needs only a copy. The order of the others
  /// follows measurements at 640x480 with libswscale 6.7. From YUYV, the conversions to `yuv420p`,
  /// `nv12`, `gray` and `bgra` take 0.15, 0.65, 0.69 and 2.0 ms.
  static func available(from subType: MediaSubType) -> [PixelFormat] {
    let source: LibAVPixelFormat
    switch subType {
    case .codec(let codec):
      guard codec == .mjpeg else { return [] }
      source = .yuvj422p
    case .pixels(let name):
      guard let format = LibAVPixelFormat(name), format.isConvertible else { return [] }
      source = format
    }
    let order: [PixelFormat] =
      if source.isRGB || source.isBayer {
        [.bgra, .gray, .yuv420p, .nv12]
      } else if source == .gray8 {
        [.gray, .bgra, .yuv420p, .nv12]
      } else if source.isFullRange {
        // Gray is cheapest for a full-range source, because it uses full range too and the luma
        // needs no scaling.
        [.gray, .yuv420p, .nv12, .bgra]
      } else {
        [.yuv420p, .nv12, .gray, .bgra]
      }
    return order.filter { $0.rawValue == source.name } + order.filter { $0.rawValue != source.name }
  }
}
