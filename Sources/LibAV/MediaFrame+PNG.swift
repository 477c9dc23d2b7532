// SPDX-License-Identifier: Apache-2.0

extension MediaFrame {
  /// Encodes the frame as a PNG file.
  ///
  /// The pixel format must be `rgb24`.
  ///
  /// - Throws: `LibAVError` if the encoder is missing or rejects the frame.
  package func pngBytes() throws(LibAVError) -> [UInt8] {
    var settings = Encoder.VideoSettings(
      codec: "png", width: width, height: height, pixelFormat: .rgb24, timescale: 1)
    // The PNG encoder uses one thread for each frame, so more threads would not encode a single
    // frame faster.
    settings.threadCount = 1
    var encoder = try Encoder(video: settings)
    try encoder.send(self)
    try encoder.send(nil)
    guard let packet = try encoder.nextPacket() else {
      throw LibAVError("encode", "a PNG picture", code: -22)
    }
    return packet.withBytes { [UInt8]($0) }
  }
}
