// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Damaged audio is invalid data, whatever error the libav decoder returns.
struct DamagedAudioTests {
  @Test func `Damaged AAC is reported as invalid data`() throws {
    let scratch = try Scratch()
    var recipe = MovieRecipe.constant(100, count: 100)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 48_000
    recipe.audio?.wave = { channel, sample in
      Float((sample &* 7_919 + channel &* 13) % 32_768) / 65_536
    }
    let path = scratch.file("clip.mov")
    try recipe.write(to: path)
    let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    let track = try #require(try Asset(path: path).audioTrack)
    var demuxer = try Demuxer(opening: path)
    let locations = try #require(try demuxer.packetIndices()[track.format.index]).locations
    var random = SeededGenerator(seed: 18)
    var damaged = 0
    for _ in 0..<400 {
      var bytes = whole
      let offset = locations[Int.random(in: 0..<locations.count, using: &random)]
      for _ in 0...Int.random(in: 0..<24, using: &random) {
        let index = Int.random(in: 0..<offset.byteCount, using: &random)
        bytes[Int(offset.position) + index] = UInt8.random(in: 0...255, using: &random)
      }
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      do {
        var reader = try AudioReader(try Asset(path: path))
        _ = try reader.samples(from: 0, count: 48_000)
      } catch {
        damaged += 1
        #expect(error.code == .invalidData, "\(error)")
        #expect(!error.message.contains("not permitted"), "\(error)")
      }
    }
    #expect(damaged > 100)
  }
}
