// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankExport

/// Exports with long silence, which is encoded once and then repeated.
struct MutedAudioTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A movie of four seconds at 100 fps, with an audio click in each second.
  private func asset(_ codec: String) throws -> Asset {
    var recipe = MovieRecipe.constant(100, count: 400)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = codec
    recipe.audio?.sampleRate = 48_000
    recipe.audio?.sampleCount = 192_000
    recipe.audio?.clicks = [12_000, 36_000, 60_000, 90_000, 130_000, 180_000]
    return try .made(recipe, in: directory)
  }

  private func loudest(_ samples: ArraySlice<Float>) -> Int? {
    samples.indices.max { samples[$0].magnitude < samples[$1].magnitude }
  }

  @Test(arguments: ["aac", "pcm_s16le"])
  func `Audio before and after a muted range keeps its times`(codec: String) throws {
    let asset = try asset(codec)
    let composition = try asset.retimed([(range(1_000, 2_000), speed(1, 64))])
    var settings = ExportSettings(path: directory.file("muted.mov"), mode: .passthrough())
    settings.audioTimePitchAlgorithm = .mute
    let report = try ExportSession(composition, of: asset).export(settings)
    #expect(report.audio?.samples == 3_216_000)
    #expect(report.avEndDifference?.wholeNanoseconds == 0)
    let result = try Asset(path: report.path)
    #expect(result.audioTrack?.sampleCount == 3_216_000)
    #expect(result.audioTrack?.startSample == 0)
    let (before, after) = (try asset.audio(), try result.audio())
    for channel in after.indices {
      let samples = after[channel]
      #expect(samples[50_000..<64 * 48_000 + 46_000].allSatisfy { $0.magnitude < 1e-4 })
      for (source, target) in [(0, 0), (24_000, 24_000), (100_000, 63 * 48_000 + 100_000)] {
        let expected = try #require(loudest(before[channel][source..<source + 24_000]))
        let found = try #require(loudest(samples[target..<target + 24_000]))
        #expect(abs(found - target - (expected - source)) <= 2)
      }
    }
  }

  @Test(arguments: ["aac", "pcm_s16le"])
  func `Silence is encoded once and its packet is repeated`(codec: String) throws {
    let encoder = try Encoder(audioCodec: codec, sampleRate: 48_000, channelCount: 2)
    let packets = PacketList()
    var blocks = AudioBlockEncoder(encoder, channelCount: 2) { packets.list.append($0) }
    let click = [Float](unsafeUninitializedCapacity: 48_000) { buffer, count in
      buffer.initialize(repeating: 0)
      for index in 100..<200 { buffer[index] = 0.5 }
      count = 48_000
    }
    let silence = [Float](repeating: 0, count: 48_000)
    for second in 0..<60 {
      let samples = second % 30 == 0 ? click : silence
      try blocks.append([samples, samples])
    }
    try blocks.finish(at: 60 * 48_000)
    let length = Int64(blocks.blockLength)
    #expect(blocks.encodedCount < 120, "of \(60 * 48_000 / length) blocks")
    #expect(packets.list.last.map { $0.pts + $0.duration } == 2_880_000)
    #expect(packets.list.count >= 60 * 48_000 / Int(length))
    for (one, next) in zip(packets.list, packets.list.dropFirst()) {
      #expect(one.pts + one.duration == next.pts)
      #expect(one.duration == length || next.pts == packets.list.last?.pts)
    }
    let distinct = Set(packets.list.map { $0.packet.withBytes { [UInt8]($0) } })
    #expect(distinct.count < 120)
    #expect(distinct.count > 2)
  }

  private final class PacketList {
    var list: [AudioExport.TimedPacket] = []
  }
}
