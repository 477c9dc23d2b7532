// SPDX-License-Identifier: Apache-2.0
import LibAV
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
    do throws(LibAVError) {
      return try withBytes { bytes throws(LibAVError) in
        try converters.convert(bytes, formatDescription, to: format)
      }
    } catch {
      throw CaptureError(
        .notConvertible, "a captured picture cannot be had as \(format.rawValue): \(error)",
        hint: "take the bytes as they are, or choose another mode")
    }
  }
}

/// Decoders and converters that are made once and used for one frame after the other.
final class PictureConverters: Sendable {
  private final class Tools {
    var decoder: Decoder?
    var converters: [PictureFormat: Box] = [:]
    final class Box {
      var converter: PictureConverter
      init(_ converter: consuming PictureConverter) { self.converter = converter }
    }
  }

  // Used under the lock only: what a decoder holds cannot be sent from thread to thread by type.
  private nonisolated(unsafe) let tools = Tools()
  private let lock = Mutex(())

  func convert(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, to format: PictureFormat
  ) throws(LibAVError) -> Picture {
    let result = lock.withLock { _ in
      Result { () throws(LibAVError) in
        let frame = try Self.frame(bytes, description, tools)
        let target = PixelFormat(named: format.rawValue) ?? .gray8
        let box =
          tools.converters[format]
          ?? Tools.Box(
            PictureConverter(to: target, isFullRange: format == .bgra || format == .gray))
        tools.converters[format] = box
        let converted = try box.converter.convert(frame)
        return Picture(
          format: format, width: converted.width, height: converted.height,
          bytes: try converted.packedBytes())
      }
    }
    return try result.get()
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
