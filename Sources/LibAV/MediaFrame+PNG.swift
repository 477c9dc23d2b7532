// SPDX-License-Identifier: Apache-2.0

extension MediaFrame {
  /// The frame, which is of `rgb24`, as a PNG file.
  ///
  /// - Throws: `LibAVError` where there is no encoder or it refuses the frame.
  package func pngBytes() throws(LibAVError) -> [UInt8] {
    var settings = Encoder.VideoSettings(
      codec: "png", width: width, height: height, pixelFormat: .rgb24, timescale: 1)
    // One picture is one piece of work.
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
