// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Reads audio samples at any position.
struct AudioReaderTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A wave whose neighboring samples differ and fit 16 bits exactly.
  private static func value(_ channel: Int, _ sample: Int) -> Float {
    Float((sample &* 7_919 + channel &* 13) % 32_768) / 32_768
  }

  private func asset(
    _ codec: String, count: Int, rate: Int = 48_000, clicks: [Int] = [], container: String = "mov"
  ) throws -> Asset {
    var recipe = MovieRecipe.constant(100, count: 100)
    recipe.container = container
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = codec
    recipe.audio?.sampleRate = rate
    recipe.audio?.sampleCount = count
    recipe.audio?.clicks = clicks
    if codec.hasPrefix("pcm") { recipe.audio?.wave = Self.value }
    return try recipe.asset(at: directory.file("clip.\(container)"))
  }

  @Test func `PCM is read exactly and is silent outside of the track`() throws {
    let asset = try asset("pcm_s16le", count: 50_000)
    let track = try #require(asset.audioTrack)
    #expect(track.sampleCount == 50_000)
    #expect(track.startSample == 0)
    #expect(track.channelCount == 2 && track.sampleRate == 48_000)
    var reader = try AudioReader(asset)
    func expect(_ start: Int64, _ count: Int) throws {
      let planes = try reader.samples(from: start, count: count)
      let wanted = (0..<2).map { channel in
        (0..<count).map { offset -> Float in
          let sample = Int(start) + offset
          return (0..<50_000).contains(sample) ? Self.value(channel, sample) : 0
        }
      }
      #expect(planes == wanted, "samples \(start)..<\(start + Int64(count))")
    }
    try expect(0, 4_096)
    try expect(4_096, 4_096)
    try expect(30_000, 1_000)
    try expect(29_000, 3_000)
    try expect(-500, 1_000)
    try expect(49_990, 100)
    try expect(60_000, 10)
    try expect(0, 1)
    try expect(49_999, 1)
    try expect(10, 0)
  }

  /// AAC has blocks of 1024 samples, so lengths near a multiple of 1024 are the hard cases.
  @Test(arguments: [1, 1_023, 1_024, 1_025, 2_048, 47_104, 48_000, 48_128, 48_129, 49_151])
  func `Decoded AAC has exactly the encoded number of samples`(count: Int) throws {
    for container in ["mov", "mp4"] {
      let asset = try asset("aac", count: count, container: container)
      #expect(asset.audioTrack?.sampleCount == Int64(count), "\(container)")
      #expect(asset.audioTrack?.startSample == 0)
    }
  }

  @Test(arguments: [44_100, 48_000, 32_000])
  func `A click in AAC is decoded within a sample of its position`(rate: Int) throws {
    let clicks = [0, 1_000, 10_240, 25_001, 31_900]
    let asset = try asset("aac", count: 32_000, rate: rate, clicks: clicks)
    var reader = try AudioReader(asset)
    let planes = try reader.samples(from: 0, count: 32_000)
    for click in clicks {
      let window = max(0, click - 100)..<min(32_000, click + 100)
      let center = try #require(centroid(planes[0], in: window))
      let wanted = Double(click) + Double(MovieRecipe.Audio.clickLength - 1) / 2
      #expect(abs(center - wanted) < 1, "the click at \(click) is at \(center)")
    }
    // An audio range that is read alone equals the same part of the whole audio track.
    for start in [31_000, 10_000, 20_000, 0] as [Int64] {
      let part = try reader.samples(from: start, count: 500)
      #expect(part[1] == Array(planes[1][Int(start)..<Int(start) + 500]))
    }
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `Decoded AAC samples equal those that FFmpeg decodes`() async throws {
    let asset = try asset("aac", count: 30_000, clicks: [500, 15_000])
    var reader = try AudioReader(asset)
    let ours = try reader.samples(from: 0, count: 30_000)
    let theirs = try await FFmpeg.audio(of: asset.path, channelCount: 2)
    // `AudioReader` stops where the edit list ends. ffmpeg 5.1 returns the whole last block.
    #expect(theirs[0].count >= 30_000)
    #expect(zip(ours[0], theirs[0]).allSatisfy { $0 == $1 })
    #expect(zip(ours[1], theirs[1]).allSatisfy { $0 == $1 })
  }

  /// The sample at the center of a range's energy; nil for silence.
  private func centroid(_ samples: [Float], in range: Range<Int>) -> Double? {
    var (weight, sum) = (0.0, 0.0)
    for position in range {
      let energy = Double(samples[position]) * Double(samples[position])
      weight += energy
      sum += energy * Double(position)
    }
    return weight > 0.01 ? sum / weight : nil
  }
}
