// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Audio in formats that an output file cannot have.
///
/// These are sample rates that AAC lacks, rates below 8 kHz, formats that change within a stream or
/// between the clips of a project, and PCM that MOV cannot describe. `ffmpeg` decodes each result.
/// The tone is a sweep, so that a shift by one sample is found.
struct ConvertedAudioTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A sweep from 200 to 1400 Hz in one second, as an FFmpeg expression.
  private static let sweep = "0.5*sin(2*PI*(200*t+600*t*t))"

  private func clip(_ name: String, rate: Int, channels: Int = 1, _ audio: [String]) async throws
    -> Asset
  {
    let path = directory.file(name)
    let source = Array(repeating: Self.sweep, count: channels).joined(separator: "|")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=64x48:rate=30:duration=0.8", "-f", "lavfi", "-i"]
        + ["aevalsrc=\(source):s=\(rate):d=0.8", "-c:v", "mjpeg"] + audio)
    return try Asset(path: path)
  }

  /// The first audio channel of a file, decoded at 48 kHz.
  private func audio(of path: String) async throws -> [Float] {
    let bytes = try await FFmpeg.converted(
      path, ["-map", "0:a:0", "-af", "aresample=48000", "-ac", "1", "-f", "f32le"])
    return bytes.withUnsafeBytes { buffer in
      (0..<buffer.count / 4).map {
        Float(bitPattern: buffer.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self))
      }
    }
  }

  /// The delay of exported audio against the sweep, around an instant, in samples of the export.
  private func delay(
    _ samples: [Float], at seconds: Double, from start: Double = 0, rate: Int = 48_000
  ) -> Int? {
    let first = Int(seconds * Double(rate))
    guard samples.count >= first + 4_800 else { return nil }
    let sweep = (first - 400..<first + 4_400).map { index in
      let t = Double(index) / Double(rate) - start
      return Float(sin(2 * .pi * (200 * t + 600 * t * t)))
    }
    let sums = (-400...400).map { (shift: Int) -> Float in
      var sum: Float = 0
      for index in 0..<4_000 { sum += samples[first + index] * sweep[400 + index - shift] }
      return sum
    }
    return sums.indices.max { sums[$0] < sums[$1] }.map { $0 - 400 }
  }

  private func export(
    _ composition: Composition, of assets: [Asset], as name: String
  ) throws -> ExportReport {
    let settings = ExportSettings(path: directory.file(name), mode: .passthrough())
    return try ExportSession(composition, of: assets).export(settings)
  }

  @Test(arguments: [11_024, 37_000, 176_400, 192_000])
  func `Audio at a sample rate that AAC lacks is resampled`(rate: Int) async throws {
    let asset = try await clip("clip.mov", rate: rate, ["-c:a", "pcm_s16le"])
    let report = try export(Composition(asset), of: [asset], as: "made.mp4")
    #expect(report.warnings.contains { $0.contains("resampled from \(rate) to") })
    let made = try await audio(of: report.path)
    for time in [0.05, 0.4, 0.65] { #expect(abs(delay(made, at: time) ?? 99) <= 1) }
  }

  @Test func `Audio sampled below 8 kHz can be slowed down`() async throws {
    let asset = try await clip("clip.mov", rate: 6_000, ["-c:a", "pcm_s16le"])
    var trimmed = Composition()
    try trimmed.insertTimeRange(range(200, 800), of: asset.mediaSource(), at: .zero)
    let report = try export(trimmed, of: [asset], as: "trim.mov")
    #expect(try Asset(path: report.path).audioTrack?.sampleRate == 6_000)
    let made = try await audio(of: report.path)
    #expect(abs(delay(made, at: 0.1, from: -0.2) ?? 99) <= 8)
    let half = try asset.retimed([(range(0, 800), speed(1, 2))])
    let slow = try export(half, of: [asset], as: "slow.mov")
    #expect(slow.audio?.samples == 12_800)
    #expect(slow.warnings.contains { $0.contains("resampled from 6000 to 8000 Hz") })
  }

  @Test func `Audio clips of different formats play in one composition`() async throws {
    let mono = try await clip("mono.mov", rate: 48_000, ["-c:a", "pcm_s16le"])
    let stereo = try await clip("stereo.mov", rate: 44_100, channels: 2, ["-c:a", "pcm_s16le"])
    var composition = Composition()
    for asset in [stereo, mono] {
      try composition.insertTimeRange(
        range(0, 800), of: asset.mediaSource(), at: composition.duration)
    }
    let report = try export(composition, of: [stereo, mono], as: "made.mov")
    let track = try #require(try Asset(path: report.path).audioTrack)
    #expect(track.sampleRate == 48_000 && track.channelCount == 2)
    #expect(report.warnings.count == 2)
    let made = try await audio(of: report.path)
    for time in [0.05, 0.4, 0.65] {
      #expect(abs(delay(made, at: time) ?? 99) <= 1)
      #expect(abs(delay(made, at: time + 0.8, from: 0.8) ?? 99) <= 1)
    }
  }

  @Test func `Audio that changes channels or sample rate stays complete`() async throws {
    for (name, rate, layout) in [
      ("two", 48_000, "stereo"), ("six", 48_000, "5.1"), ("low", 44_100, "stereo"),
    ] {
      let source = Array(repeating: Self.sweep, count: layout == "5.1" ? 6 : 2)
        .joined(separator: "|")
      try await FFmpeg.make(
        directory.file("\(name).ac3"),
        ["-f", "lavfi", "-i", "aevalsrc=\(source):s=\(rate):d=0.768:c=\(layout)", "-c:a", "ac3"])
    }
    for second in ["six", "low"] {
      let joined = try directory.write(
        bytes(of: directory.file("two.ac3")) + bytes(of: directory.file("\(second).ac3")),
        as: "joined.ac3")
      let asset = try Asset(path: joined)
      var reader = try AudioReader(asset)
      // AC-3 delays the audio by 256 samples, once for each joined part.
      let rate = try #require(asset.audioTrack).sampleRate
      let samples = try reader.samples(from: 0, count: rate * 3 / 2)[0]
      #expect(abs(delay(samples, at: 0.3, rate: rate) ?? 999) <= 256, "\(second)")
      #expect((samples[rate...].map(abs).max() ?? 0) > 0.2, "\(second)")
    }
  }

  @Test func `Blu-ray PCM is converted to a kind of PCM that MOV can store`() async throws {
    let asset = try await clip(
      "clip.m2ts", rate: 48_000, channels: 2,
      ["-c:v", "libx264", "-c:a", "pcm_bluray", "-f", "mpegts", "-mpegts_m2ts_mode", "1"])
    let report = try export(Composition(asset), of: [asset], as: "made.mov")
    #expect(try Asset(path: report.path).audioTrack?.codec == .pcm)
    let made = try await audio(of: report.path)
    for time in [0.1, 0.4] { #expect(abs(delay(made, at: time) ?? 99) <= 1) }
  }
}
