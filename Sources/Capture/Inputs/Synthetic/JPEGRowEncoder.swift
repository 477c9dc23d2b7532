// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// Encodes single rows of blocks as small JPEG files of their own.
struct JPEGRowEncoder {
  /// A copyable place for the encoder, which is not.
  ///
  /// Sendable because the maker that holds it is used by one thread only: the driver's.
  private final class Box: @unchecked Sendable {
    var encoder: Encoder
    init(_ encoder: consuming Encoder) { self.encoder = encoder }
  }
  private let box: Box
  private let width: Int
  private let height: Int
  private var ticks: Int64 = 0

  init(width: Int, height: Int) throws(LibAVError) {
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: width, height: height, pixelFormat: .yuvj420p, timescale: 1_000)
    settings.isFullRange = true
    settings.quantizer = 3
    settings.threadCount = 1
    // One Huffman table for all rows; libav would otherwise fit one to each.
    settings.options = ["huffman": "default"]
    box = Box(try Encoder(video: settings))
    self.width = width
    self.height = height
  }

  mutating func encode(
    _ draw: (_ y: Int, _ row: UnsafeMutablePointer<UInt8>) -> Void
  ) throws(LibAVError) -> Packet {
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
      throw LibAVError("encode", "a row of a test picture", code: -22)
    }
    return packet
  }
}
