// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// The first and last audio samples of files that other programs made.
struct ForeignAudioTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// Makes a movie with 0.7 s of noise, whose samples all differ.
  private func movie(_ codec: [String], _ name: String) async throws -> Asset {
    let path = directory.file(name)
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.72", "-f", "lavfi"]
        + ["-i", "anoisesrc=r=44100:d=0.7:a=0.4:seed=1", "-c:v", "mjpeg", "-c:a"] + codec)
    return try Asset(path: path)
  }

  @Test(arguments: ["wavpack", "flac", "alac"])
  func `All samples of lossless audio are read from Matroska`(codec: String) async throws {
    let asset = try await movie([codec], "clip.mkv")
    let expected = try await FFmpeg.audio(of: asset.path, channelCount: 1)[0]
    #expect(expected.count == 30_870)
    let found = try asset.audio()[0]
    #expect(found.count == expected.count)
    #expect(found == expected)
    var settings = ExportSettings(path: directory.file("copy.mov"), mode: .passthrough())
    settings.overwrites = true
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    let copied = try await FFmpeg.audio(of: report.path, channelCount: 1)[0]
    #expect((30_870...33_000).contains(copied.count), "\(copied.count)")
  }

  @Test(arguments: [("libopus", 48_000), ("aac", 44_100), ("mp2", 44_100), ("ac3", 48_000)])
  func `Matroska has as many samples as are decoded`(codec: String, rate: Int) async throws {
    let asset = try await movie([codec, "-ar", "\(rate)"], "clip.mkv")
    let decoded = try await FFmpeg.audio(of: asset.path, channelCount: 1)[0]
    #expect(asset.audioTrack?.sampleCount == Int64(decoded.count))
  }

  @Test func `Many rounded times give the exact start of audio`() async throws {
    let path = directory.file("late.mkv")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=2", "-f", "lavfi"]
        + ["-i", "anoisesrc=r=44100:d=2", "-af", "asetpts=PTS+472", "-c:v", "mjpeg"]
        + ["-c:a", "pcm_s16le"])
    let start = try #require(Asset(path: path).audioTrack?.startSample)
    // 10.7 ms are 472 samples, and 11 ms are 485.
    #expect(abs(start - 472) <= 2, "\(start)")
  }

  /// The lag at which two signals match best.
  private func lag(_ one: ArraySlice<Float>, of other: [Float], around position: Int) -> Int {
    let lags = -200...200
    let scores = lags.map { lag -> Float in
      zip(one, other[max(0, position + lag)...]).reduce(0) { $0 + $1.0 * $1.1 }
    }
    let best = scores.indices.max { scores[$0] < scores[$1] } ?? 0
    return lags.lowerBound + best
  }

  @Test func `Vorbis with the times of block ends has no gaps`() async throws {
    let path = directory.file("ends.mkv")
    // Impulses make the encoder change between blocks of 256 and 2048 samples.
    let tone = "aevalsrc='if(lt(mod(t,0.4),0.01),random(0),0.3*sin(500*t*t))':s=44100:d=3"
    try await FFmpeg.make(
      path,
      [
        "-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=3", "-f", "lavfi", "-i", tone, "-c:v",
        "mjpeg",
      ]
        + ["-c:a", "libvorbis", "-bsf:a", "setts=ts=TS+DURATION"])
    let wanted = try await FFmpeg.audio(of: path, channelCount: 1)[0]
    let found = try Asset(path: path).audio()[0]
    let lag = lag(wanted[60_000..<62_400], of: found, around: 60_000)
    let differing = (1_500..<112_400).filter { abs(wanted[$0] - found[$0 + lag]) > 1e-4 }
    #expect(differing.isEmpty, "\(differing.count) samples from \(differing.first ?? 0)")
  }

  @Test(arguments: [
    (["libvorbis", "-q:a", "8"], "mkv"), (["libvorbis", "-q:a", "8"], "mp4"),
    (["aac", "-b:a", "256k"], "mkv"),
    (["aac", "-b:a", "256k"], "mp4"), (["mp2", "-b:a", "384k"], "mkv"),
  ])
  func `Audio in each container format keeps start and end times`(
    codec: [String], container: String
  ) async throws {
    let source = directory.file("source.wav")
    try await FFmpeg.make(
      source, ["-f", "lavfi", "-i", "anoisesrc=r=48000:d=0.7:a=0.4:c=pink:seed=1"])
    let path = directory.file("clip.\(container)")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.72", "-i", source, "-c:v", "libx264"]
        + ["-preset", "ultrafast", "-bf", "0", "-c:a"] + codec)
    let wanted = try await FFmpeg.audio(of: source, channelCount: 1)[0]
    let asset = try Asset(path: path)
    let found = try asset.audio()[0]
    // Times in Matroska are rounded to 48 samples. The first audio block and the video are rounded
    // differently.
    let most = container == "mkv" ? 24 : 1
    for position in [300, 16_000, 31_000] {
      let lag = lag(wanted[position..<position + 1_200], of: found, around: position)
      #expect(abs(lag) <= most, "\(codec[0]) at \(position): \(lag)")
    }
    for (name, mode) in [("copy", ExportMode.passthrough()), ("made", .constant(FrameRate(25)))] {
      var settings = ExportSettings(path: directory.file("\(name).mov"), mode: mode)
      settings.audioCodec = .pcm
      try await ExportSession(Composition(asset), of: asset).export(settings)
      let written = try await FFmpeg.audio(of: settings.path, channelCount: 1)[0]
      for position in [300, 16_000, 31_000] {
        let lag = lag(wanted[position..<position + 1_200], of: written, around: position)
        #expect(abs(lag) <= most, "\(name) of \(codec[0]) at \(position): \(lag)")
      }
    }
  }
}
