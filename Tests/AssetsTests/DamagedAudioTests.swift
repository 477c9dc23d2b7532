// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Damaged sound is bad data, whatever libav's decoder calls it.
struct DamagedAudioTests {
  @Test func `Damaged AAC is never a question of permission`() throws {
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
    let places = try #require(try demuxer.packetPlaces()[track.format.index]).places
    var random = RandomBytes(state: 18)
    var damaged = 0
    for _ in 0..<400 {
      var bytes = whole
      let offset = places[random.next(below: places.count)]
      for _ in 0...random.next(below: 24) {
        bytes[Int(offset.position) + random.next(below: offset.byteCount)] = UInt8(
          random.next(below: 256))
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

/// SplitMix64.
private struct RandomBytes {
  var state: UInt64

  mutating func next(below bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((bits ^ (bits >> 31)) % UInt64(bound))
  }
}
