// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

/// Decodes the bytes of camera frames to uncompressed frames, one frame at a time.
///
/// Use an instance on one thread at a time.
package struct FrameDecoder: ~Copyable {
  private var decoder: Decoder?

  package init() {}

  /// Calls a closure with the decoded frame, which the closure must not keep.
  ///
  /// An uncompressed frame is passed without a copy of its bytes.
  ///
  /// - Throws: `CallFailure` for a damaged frame, or a codec with inter-frame prediction.
  package mutating func withFrame<Value>(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription,
    _ body: (MediaFrame) -> Value
  ) throws(CallFailure) -> Value {
    guard case .pixels(let name) = description.mediaSubType else {
      return body(try frame(bytes, description))
    }
    return body(
      try MediaFrame.video(
        in: bytes, width: description.width, height: description.height,
        pixelFormat: LibAVPixelFormat(finding: name), bytesPerRow: description.bytesPerRow))
  }

  /// Decodes a compressed frame, or copies an uncompressed one.
  ///
  /// - Throws: `CallFailure` for a damaged frame, or a codec with inter-frame prediction.
  package mutating func frame(
    _ bytes: UnsafeRawBufferPointer, _ description: FormatDescription
  ) throws(CallFailure) -> MediaFrame {
    switch description.mediaSubType {
    case .pixels(let name):
      return try MediaFrame.video(
        copying: bytes, width: description.width, height: description.height,
        pixelFormat: LibAVPixelFormat(finding: name), bytesPerRow: description.bytesPerRow)
    case .codec(let codec):
      guard codec == .mjpeg else {
        throw CallFailure("decode", "one frame of \(codec)", code: -22)
      }
      if decoder == nil {
        decoder = try Decoder(
          parameters: CodecParameters(
            videoCodec: codec.rawValue, width: description.width, height: description.height),
          subject: "the camera's \(codec)", threadCount: 1)
      }
      try decoder?.send(Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
      guard let frame = try decoder?.nextFrame() else {
        throw CallFailure("decode", "a frame of \(codec)", code: -22)
      }
      return frame
    }
  }
}
