// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import Synchronization

/// A layout of pixels that many programs can use.
public enum PictureFormat: String, Hashable, Sendable, CaseIterable {
  /// Blue, green, red, and a byte that is 255.
  case bgra
  /// Brightness, then colour of 2x2 pixels, in pairs.
  case nv12
  /// Brightness, then the two colours of 2x2 pixels, each by itself.
  case i420 = "yuv420p"
  /// Brightness alone.
  case gray
}

extension PictureFormat {
  /// The layouts that pictures can be converted to, the one that takes the least work first.
  ///
  /// The same layout takes a copy alone. The order of the others was measured at 640x480 with
  /// libswscale 6.7; from YUYV it is 0.15, 0.65, 0.69 and 2.0 ms.
  static func available(from coding: FormatDescription.Coding) -> [PictureFormat] {
    let source: PixelFormat
    switch coding {
    case .compressed(let codec):
      guard codec == "mjpeg" else { return [] }
      source = .yuvj422p
    case .pixels(let name):
      guard let format = PixelFormat(named: name), format.isConvertible else { return [] }
      source = format
    }
    let order: [PictureFormat] =
      if source.isRGB || source.isBayer {
        [.bgra, .gray, .i420, .nv12]
      } else if source == .gray8 {
        [.gray, .bgra, .i420, .nv12]
      } else if source.isFullRange {
        // Brightness stays as it is.
        [.gray, .i420, .nv12, .bgra]
      } else {
        [.i420, .nv12, .gray, .bgra]
      }
    return order.filter { $0.rawValue == source.name } + order.filter { $0.rawValue != source.name }
  }
}

/// A picture in memory of its own, rows and planes packed one behind the other.
public struct Picture: Hashable, Sendable {
  /// How its pixels are stored.
  public let format: PictureFormat
  /// Pixels from left to right.
  public let width: Int
  /// Pixels from top to bottom.
  public let height: Int
  /// The planes, one after the other.
  public let bytes: [UInt8]
}

extension SampleBuffer {
  /// The picture in another layout, of the same size; decoded where it is compressed.
  ///
  /// Code values are those of the video range for `nv12` and `i420`, and 0 to 255 for the others
  /// (libswscale, BT.601 where the camera does not say). H.264 cannot be converted frame by frame.
  ///
  /// - Throws: `CaptureError` with `.notConvertible` where the picture is damaged or of a codec
  ///   whose frames need each other.
  public func picture(as format: PictureFormat) throws(CaptureError) -> Picture {
    try converted(to: format.rawValue) { frame throws(LibAVError) in
      Picture(
        format: format, width: frame.width, height: frame.height, bytes: try frame.packedBytes())
    }
  }

  /// The picture as a PNG file, in RGB with 8 bits each.
  ///
  /// - Throws: `CaptureError` as ``picture(as:)``.
  public func pngData() throws(CaptureError) -> [UInt8] {
    try converted(to: "rgb24") { frame throws(LibAVError) in try frame.pngBytes() }
  }

  private func converted<Result>(
    to format: String, _ body: (borrowing MediaFrame) throws(LibAVError) -> Result
  ) throws(CaptureError) -> Result {
    do throws(LibAVError) {
      return try withBytes { bytes throws(LibAVError) in
        try converters.convert(bytes, formatDescription, to: format, body)
      }
    } catch {
      throw CaptureError(
        .notConvertible, "a captured picture cannot be had as \(format): \(error)",
        hint: "take the bytes as they are, or choose another mode")
    }
  }
}

/// Decoders and converters that are made once and used for one frame after the other.
final class PictureConverters: Sendable {
  private final class Tools {
    var decoder: Decoder?
    var converters: [String: Box] = [:]
    final class Box {
      var converter: PictureConverter
      init(_ converter: consuming PictureConverter) { self.converter = converter }
    }
  }

  // Used under the lock only: what a decoder holds cannot be sent from thread to thread by type.
  private nonisolated(unsafe) let tools = Tools()
  private let lock = Mutex(())

  /// Converts a picture to a format of FFmpeg's name.
  func convert<Outcome>(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, to format: String,
    _ body: (borrowing MediaFrame) throws(LibAVError) -> Outcome
  ) throws(LibAVError) -> Outcome {
    // By a variable: what a lock gives out would have to be sendable.
    var outcome: Result<Outcome, LibAVError>?
    lock.withLock { _ in
      outcome = Result { () throws(LibAVError) in
        let frame = try Self.frame(bytes, description, tools)
        guard let target = PixelFormat(named: format) else {
          throw LibAVError("find", "the pixel format \(format)", code: -22)
        }
        let isFullRange = ![PictureFormat.nv12, .i420].map(\.rawValue).contains(format)
        let box =
          tools.converters[format]
          ?? Tools.Box(PictureConverter(to: target, isFullRange: isFullRange))
        tools.converters[format] = box
        return try body(try box.converter.convert(frame))
      }
    }
    guard let outcome else { preconditionFailure("A lock runs its body.") }
    return try outcome.get()
  }

  private static func frame(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, _ tools: Tools
  ) throws(LibAVError) -> MediaFrame {
    switch description.coding {
    case .pixels(let name):
      guard let format = PixelFormat(named: name) else {
        throw LibAVError("find", "the pixel format \(name)", code: -22)
      }
      return try MediaFrame.picture(
        copying: bytes, width: description.width, height: description.height, pixelFormat: format,
        bytesPerRow: description.bytesPerRow)
    case .compressed(let codec):
      guard codec == "mjpeg" else { throw LibAVError("decode", "one frame of \(codec)", code: -22) }
      if tools.decoder == nil {
        tools.decoder = try Decoder(
          parameters: CodecParameters(
            videoCodec: codec, width: description.width, height: description.height),
          subject: "the camera's \(codec)", threadCount: 1)
      }
      try tools.decoder?.send(
        Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
      guard let frame = try tools.decoder?.nextFrame() else {
        throw LibAVError("decode", "a frame of \(codec)", code: -22)
      }
      return frame
    }
  }
}
