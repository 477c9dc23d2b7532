// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import TestSupport
import Testing

/// The frames of an animated WebP file, read as its container specification says.
///
/// libavcodec decodes only still images.
struct AnimatedWebP {
  /// An animation frame: its rectangle in the image, and its duration.
  struct Frame {
    let x: Int
    let y: Int
    let width: Int
    let height: Int
    let milliseconds: Int
    let isBlended: Bool
    let clearsAfterwards: Bool
    /// The chunks with the frame's image: `ALPH`, `VP8 ` or `VP8L`.
    let chunks: [UInt8]
  }

  let width: Int
  let height: Int
  let frames: [Frame]

  /// Parses a file; nil if it is not animated.
  init?(_ file: [UInt8]) throws {
    func number(_ at: Int, _ count: Int) -> Int {
      (0..<count).reduce(0) { $0 | Int(file[at + $1]) << (8 * $1) }
    }
    try #require(file.starts(with: Array("RIFF".utf8)) && number(4, 4) + 8 <= file.count)
    var (size, frames): ((Int, Int)?, [Frame]) = (nil, [])
    var position = 12
    while position + 8 <= file.count {
      let (name, count) = (
        String(decoding: file[position..<position + 4], as: UTF8.self), number(position + 4, 4)
      )
      let body = position + 8
      if name == "VP8X" { size = (number(body + 4, 3) + 1, number(body + 7, 3) + 1) }
      if name == "ANMF" {
        frames.append(
          Frame(
            x: 2 * number(body, 3), y: 2 * number(body + 3, 3), width: number(body + 6, 3) + 1,
            height: number(body + 9, 3) + 1, milliseconds: number(body + 12, 3),
            isBlended: file[body + 15] & 2 == 0, clearsAfterwards: file[body + 15] & 1 != 0,
            chunks: Array(file[body + 16..<body + count])))
      }
      position = body + count + count % 2
    }
    guard let size, !frames.isEmpty else { return nil }
    (width, height) = size
    self.frames = frames
  }

  /// Decodes the frames as players show them: the red, green, blue and alpha values of each pixel.
  func images() throws -> [[SIMD4<UInt8>]] {
    let rgba = try #require(LibAVPixelFormat(named: "rgba"))
    var canvas = [SIMD4<UInt8>](repeating: .zero, count: width * height)
    return try frames.map { frame in
      let decoded = try Self.decoded(frame)
      var converter = FrameConverter(to: rgba, isFullRange: true)
      let image = try converter.convert(decoded)
      let pixels = try #require(image.planeData(0))
      for y in 0..<frame.height {
        for x in 0..<frame.width {
          let pixel = pixels + y * image.bytesPerRow(0) + 4 * x
          let index = (frame.y + y) * width + frame.x + x
          // The encoder writes an alpha value of either 0 or 255.
          if frame.isBlended, pixel[3] < 128 { continue }
          canvas[index] = SIMD4(pixel[0], pixel[1], pixel[2], pixel[3])
        }
      }
      let shown = canvas
      if frame.clearsAfterwards {
        for y in 0..<frame.height {
          for x in 0..<frame.width { canvas[(frame.y + y) * width + frame.x + x] = .zero }
        }
      }
      return shown
    }
  }

  /// Decodes the image of a frame, which is wrapped in a file of only that image.
  private static func decoded(_ frame: Frame) throws -> MediaFrame {
    func bytes(_ number: Int, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    var body = Array("WEBP".utf8)
    if frame.chunks.starts(with: Array("ALPH".utf8)) {
      body += Array("VP8X".utf8) + bytes(10, 4) + [0x10, 0, 0, 0]
      body += bytes(frame.width - 1, 3) + bytes(frame.height - 1, 3)
    }
    body += frame.chunks
    let file = Array("RIFF".utf8) + bytes(body.count, 4) + body
    var decoder = try Decoder(
      parameters: CodecParameters(videoCodec: "webp", width: frame.width, height: frame.height),
      subject: "the image", threadCount: 1)
    try file.withUnsafeBytes {
      try decoder.send(Packet(copying: $0, pts: 0, dts: 0, duration: 1, isKeyFrame: true))
    }
    try decoder.send(nil)
    let image = try #require(try decoder.nextFrame())
    try #require(image.width == frame.width && image.height == frame.height)
    return image
  }
}
