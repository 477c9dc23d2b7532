// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore
import Synchronization

/// A pool of converter sets, each with a decoder and with converters to pixel formats.
///
/// A set is used by only one thread at a time. Sets are created when needed and reused for later
/// frames.
package final class ConverterPool: Sendable {
  /// A decoder and converters for one frame at a time.
  ///
  /// The decoder is not `Sendable`. This class may still be declared `Sendable`, because only the
  /// pool or one thread has access to a set at a time.
  private final class Converters: @unchecked Sendable {
    private var decoder = FrameDecoder()
    private var converters: [PixelFormat: Box] = [:]
    private var magnifier = FrameMagnifier()

    private final class Box {
      var converter: FrameConverter
      init(_ converter: consuming FrameConverter) { self.converter = converter }
    }

    func convert(
      _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, to format: PixelFormat,
      magnifiedBy factor: Double
    ) throws(CallFailure) -> MediaFrame {
      let frame = try decoder.frame(bytes, description)
      if factor != 1 {
        let target = try LibAVPixelFormat(finding: format)
        return try magnifier.magnify(
          frame, by: factor, to: target, isFullRange: target.isFullRange, width: frame.width,
          height: frame.height)
      }
      if let box = converters[format] { return try box.converter.convert(frame) }
      let box = Box(try FrameConverter(to: format))
      converters[format] = box
      return try box.converter.convert(frame)
    }
  }

  private let idle = Mutex<[Converters]>([])

  package init() {}

  /// Converts a frame to a pixel format.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the frame.
  ///   - description: The format and size of the frame.
  ///   - format: The pixel format of the result.
  ///   - factor: The factor by which the middle of the frame is enlarged, at least 1.
  /// - Returns: The result, which has the size of the frame.
  /// - Throws: `CallFailure` for a frame that cannot be decoded, or a format that libswscale does
  ///   not support.
  package func convert(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, to format: PixelFormat,
    magnifiedBy factor: Double = 1
  ) throws(CallFailure) -> MediaFrame {
    let converters = idle.withLock { $0.popLast() } ?? Converters()
    defer { idle.withLock { $0.append(converters) } }
    return try converters.convert(bytes, description, to: format, magnifiedBy: factor)
  }
}
