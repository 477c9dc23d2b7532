// SPDX-License-Identifier: Apache-2.0

extension MediaFrame {
  /// Encodes the frame as a JPEG file.
  ///
  /// The pixel format must be a full-range format of JPEG, such as `yuvj420p`.
  ///
  /// - Parameter quantizer: The quantizer, from 2 (best) to 31.
  /// - Returns: The bytes of the file.
  /// - Throws: `LibAVError` if the encoder is missing or rejects the frame.
  package func jpegBytes(quantizer: Int) throws(LibAVError) -> [UInt8] {
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: width, height: height, pixelFormat: pixelFormat, timescale: 1)
    settings.isFullRange = true
    settings.quantizer = quantizer
    settings.threadCount = 1
    var encoder = try Encoder(video: settings)
    try encoder.send(self)
    try encoder.send(nil)
    guard let packet = try encoder.nextPacket() else {
      throw LibAVError("encode", "a JPEG image", code: -22)
    }
    return packet.withBytes { [UInt8]($0) }
  }
}
