// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import Synchronization

/// Decoders and converters that are made once and used for one frame after the other.
final class FrameConverters: Sendable {
  private final class Tools {
    var decoder: Decoder?
    var converters: [PixelFormat: Box] = [:]
    final class Box {
      var converter: FrameConverter
      init(_ converter: consuming FrameConverter) { self.converter = converter }
    }
  }

  // Used under the lock only: what a decoder holds cannot be sent from thread to thread by type.
  private nonisolated(unsafe) let tools = Tools()
  private let lock = Mutex(())

  /// Converts a frame to a pixel format.
  func convert<Outcome>(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription, to format: PixelFormat,
    _ body: (borrowing MediaFrame) throws(LibAVError) -> Outcome
  ) throws(LibAVError) -> Outcome {
    // By a variable: what a lock gives out would have to be sendable.
    var outcome: Result<Outcome, LibAVError>?
    lock.withLock { _ in
      outcome = Result { () throws(LibAVError) in
        let frame = try Self.frame(bytes, description, tools)
        guard let target = LibAVPixelFormat(format), target.isConversionTarget else {
          throw LibAVError("find", "the pixel format \(format.rawValue)", code: -22)
        }
        let box =
          tools.converters[format]
          ?? Tools.Box(FrameConverter(to: target, isFullRange: target.isFullRange))
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
    switch description.mediaSubType {
    case .pixels(let name):
      guard let format = LibAVPixelFormat(name) else {
        throw LibAVError("find", "the pixel format \(name.rawValue)", code: -22)
      }
      return try MediaFrame.picture(
        copying: bytes, width: description.width, height: description.height, pixelFormat: format,
        bytesPerRow: description.bytesPerRow)
    case .codec(let codec):
      let name = codec.rawValue
      guard codec == .mjpeg else { throw LibAVError("decode", "one frame of \(name)", code: -22) }
      if tools.decoder == nil {
        tools.decoder = try Decoder(
          parameters: CodecParameters(
            videoCodec: name, width: description.width, height: description.height),
          subject: "the camera's \(name)", threadCount: 1)
      }
      try tools.decoder?.send(
        Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
      guard let frame = try tools.decoder?.nextFrame() else {
        throw LibAVError("decode", "a frame of \(name)", code: -22)
      }
      return frame
    }
  }
}
