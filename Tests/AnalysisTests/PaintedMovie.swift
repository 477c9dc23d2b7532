// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// A losslessly coded movie whose frames a test paints.
struct PaintedMovie {
  var width = 64
  var height = 48
  var timescale: Int32 = 240_000
  /// The time of each frame in ticks, and the end of the last frame.
  var times: [Int64]
  var end: Int64

  /// Makes a movie with frames at a constant rate.
  init(width: Int = 64, height: Int = 48, rate: Int64, count: Int) {
    (self.width, self.height) = (width, height)
    times = (0..<Int64(count)).map { $0 * 240_000 / rate }
    end = Int64(count) * 240_000 / rate
  }

  /// Writes the movie in FFV1; `color` gives red, green and blue of a pixel.
  func write(
    to path: String, color: (_ frame: Int, _ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8)
  ) throws -> Asset {
    let format = try #require(LibAVPixelFormat(named: "bgra"))
    var settings = Encoder.VideoSettings(
      codec: "ffv1", width: width, height: height, pixelFormat: format, timescale: timescale)
    settings.threadCount = 1
    var encoder = try Encoder(video: settings)
    var writer = try MovieWriter(
      path: try Scratch.created(path),
      settings: MovieWriter.Settings(container: .mov, movieTimescale: timescale))
    _ = try writer.addTrack(encoder.parameters, timescale: timescale)
    try writer.begin()
    var written = 0
    func write(_ packet: Packet) throws {
      let next = written + 1 < times.count ? times[written + 1] : end
      try writer.write(
        packet, track: 0, pts: times[written], dts: times[written], duration: next - times[written])
      written += 1
    }
    for (index, time) in times.enumerated() {
      let frame = try MediaFrame.video(width: width, height: height, pixelFormat: format)
      let pixels = try #require(frame.planeData(0))
      for y in 0..<height {
        for x in 0..<width {
          let (red, green, blue) = color(index, x, y)
          let pixel = pixels + y * frame.bytesPerRow(0) + 4 * x
          (pixel[0], pixel[1], pixel[2], pixel[3]) = (blue, green, red, 255)
        }
      }
      try encoder.send(frame, at: time)
      while let packet = try encoder.nextPacket() { try write(packet) }
    }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { try write(packet) }
    try writer.finish()
    return try Asset(path: path)
  }

  /// Writes a movie of gray frames.
  func write(
    to path: String, luma: (_ frame: Int, _ x: Int, _ y: Int) -> UInt8
  ) throws -> Asset {
    try write(
      to: path,
      color: { frame, x, y in
        let value = luma(frame, x, y)
        return (value, value, value)
      })
  }
}

extension Scratch {
  /// Creates an empty file, which the writer opens.
  fileprivate static func created(_ path: String) throws -> String {
    try Data().write(to: URL(fileURLWithPath: path))
    return path
  }
}

extension SeededGenerator {
  /// A random number from a normal distribution with standard deviation 1.
  mutating func normal() -> Double {
    let radius = (-2 * log(Double.random(in: Double.leastNonzeroMagnitude...1, using: &self)))
      .squareRoot()
    return radius * cos(2 * .pi * .random(in: 0..<1, using: &self))
  }
}
