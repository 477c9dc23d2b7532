// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Encodes single rows of blocks, each as a small JPEG file.
struct JPEGRowEncoder {
  /// A reference to the encoder, because the encoder itself cannot be copied.
  ///
  /// The box may be Sendable without a lock, because only the driver's thread uses the generator
  /// that holds the box.
  private final class Box: @unchecked Sendable {
    var encoder: Encoder
    init(_ encoder: consuming Encoder) { self.encoder = encoder }
  }
  private let box: Box
  private let width: Int
  private let height: Int
  private var ticks: Int64 = 0

  init(width: Int, height: Int) throws(CallFailure) {
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: width, height: height, pixelFormat: .yuvj420p, timescale: 1_000)
    settings.isFullRange = true
    settings.quantizer = 3
    settings.threadCount = 1
    // All rows must use the same Huffman table, because the composed JPEG has only one. Without
    // this option, libav computes an optimal table for each file.
    settings.options = ["huffman": "default"]
    box = Box(try Encoder(video: settings))
    (self.width, self.height) = (width, height)
  }

  mutating func encode(
    _ draw: (_ y: Int, _ row: UnsafeMutablePointer<UInt8>) -> Void
  ) throws(CallFailure) -> Packet {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: .yuvj420p)
    if let luma = frame.planeData(0) {
      for y in 0..<height { draw(y, luma + y * frame.bytesPerRow(0)) }
    }
    for plane in 1...2 {
      frame.planeData(plane)?.update(
        repeating: 128, count: frame.bytesPerRow(plane) * (height / 2))
    }
    ticks += 1
    try box.encoder.send(frame, at: ticks)
    guard let packet = try box.encoder.nextPacket() else {
      throw CallFailure("encode", "a row of a test image", code: -22)
    }
    return packet
  }
}
