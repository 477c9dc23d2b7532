// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport

extension FuzzCases {
  /// Whole transport streams with clocks and codec parameters of their own.
  struct Streams {
    fileprivate static let packetLength = 188
    let parts: [[UInt8]]

    /// Makes the streams, 8 frames each.
    init(in directory: Scratch) async throws {
      let codecs = [
        ["libx264", "-preset", "ultrafast", "-g", "4", "-bf", "0"],
        ["libx264", "-preset", "veryfast", "-g", "8", "-bf", "2", "-profile:v", "high"],
        ["mpeg2video", "-g", "4", "-bf", "2"],
      ]
      var parts: [[UInt8]] = []
      for (number, codec) in codecs.enumerated() {
        for start in [10, 100] {
          let path = directory.file("part-\(number)-\(start).ts")
          try await FFmpeg.make(
            path,
            ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.32,hue=h=\(start + 60 * number)"]
              + ["-f", "lavfi", "-i", "sine=\(300 + start):r=48000:d=0.3", "-c:v"] + codec
              + ["-c:a", "mp2", "-output_ts_offset", "\(start)"])
          parts.append(try bytes(of: path))
        }
      }
      self.parts = parts
    }
  }

  /// The completeness of a foreign file.
  private enum ForeignState {
    /// All frames can be read.
    case whole
    /// Packets are missing or damaged.
    case damaged
    /// The codec changes within a track, so that no track has all frames.
    case changingCodec
  }

  /// Exports a stream of joined recordings, or a movie with changed flags and times, and compares it
  /// with what ffmpeg decodes.
  ///
  /// A wrong frame is a failure unless a note or a warning reports the cause.
  func foreignMovie(_ random: inout SeededGenerator) async throws -> String {
    let isStream = Int.random(in: 0..<3, using: &random) > 0
    let (name, bytes, state) = try isStream ? stream(&random) : flagged(&random)
    let path = try directory.write(bytes, as: name)
    do {
      return try await "\(name): \(exportForeign(path, state, &random))"
    } catch let error as MediaError where state == .whole && !error.message.contains("clock of") {
      // A file whose tracks disagree on their clock may be refused.
      throw WrongCopy(description: "\(name) is refused: \(error)")
    }
  }

  /// Exports a file, and compares it with what ffmpeg decodes.
  private func exportForeign(
    _ path: String, _ state: ForeignState, _ random: inout SeededGenerator
  ) async throws -> String {
    let asset = try Asset(path: path)
    guard let track = asset.videoTrack else { return "no video" }
    let shown = try await images(of: path)
    if state == .whole { try compare(asset, with: shown, &random) }
    var settings = ExportSettings(path: directory.file("foreign.mov"), mode: .passthrough())
    settings.overwrites = true
    settings.audioTimePitchAlgorithm = .mute
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    let copied = try await images(of: report.path)
    let isReported = state != .whole && !report.warnings.isEmpty
    guard isReported || state != .changingCodec else {
      throw WrongCopy(description: "no warning says that the codec changes")
    }
    let wrong = copied.count { !Set(shown).contains($0) }
    if !isReported, wrong > 0 || copied.count < shown.count {
      throw WrongCopy(
        description: "\(copied.count) frames of \(shown.count), \(wrong) of them wrong")
    }
    return "\(track.frameCount) frames, \(report.warnings.count) warnings"
  }

  /// The decoded frames, as ffmpeg decodes them with one thread.
  private func images(of path: String) async throws -> [[UInt8]] {
    let all = try await FFmpeg.converted(
      path,
      ["-map", "0:v:0", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p"],
      decoding: ["-threads", "1"])
    let length = 64 * 48 * 3 / 2
    return stride(from: 0, to: all.count, by: length).map { Array(all[$0..<$0 + length]) }
  }

  /// Reads some frames in random order, and compares them with the decoded ones.
  private func compare(
    _ asset: Asset, with shown: [[UInt8]], _ random: inout SeededGenerator
  ) throws {
    let count = asset.videoTrack?.frameCount ?? 0
    guard count == shown.count else {
      throw WrongCopy(description: "\(count) frames of \(shown.count)")
    }
    var reader = try FrameReader(asset)
    var writer = try RawFrameWriter(PixelFormat(rawValue: "yuv420p"))
    for _ in 0..<6 {
      let index = Int.random(in: 0..<count, using: &random)
      guard try writer.data(of: index, from: &reader) == shown[index] else {
        throw WrongCopy(description: "frame \(index) of \(count) is another one")
      }
    }
  }

  /// One to three recordings, joined byte by byte; some have lost packets and changed flags.
  private func stream(
    _ random: inout SeededGenerator
  ) throws -> (name: String, bytes: [UInt8], state: ForeignState) {
    let length = Streams.packetLength
    var (bytes, state): ([UInt8], ForeignState) = ([], .whole)
    // H.264, MPEG-2, or one after the other.
    let candidates = [0..<4, 4..<6, 0..<6][Int.random(in: 0..<3, using: &random)]
    var isMPEG2: Bool?
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let number = Int.random(in: candidates, using: &random)
      if let isMPEG2, isMPEG2 != (number >= 4) { state = .changingCodec }
      isMPEG2 = number >= 4
      var part = streams.parts[number]
      for _ in 0..<Int.random(in: 0...2, using: &random) {
        let packet = Int.random(in: 3..<part.count / length, using: &random) * length
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
          // A lost packet.
          part.removeSubrange(packet..<packet + length)
          if state == .whole { state = .damaged }
        case 1:
          // transport_error_indicator.
          part[packet + 1] |= 0x80
          if state == .whole { state = .damaged }
        case 2 where part[packet + 3] & 0x20 != 0 && part[packet + 4] > 0:
          // discontinuity_indicator, random_access_indicator or another flag without data.
          part[packet + 5] ^= [0x80, 0x40, 0x20].randomElement(using: &random) ?? 0
        case 3:
          // transport_priority.
          part[packet + 1] ^= 0x20
        default: break
        }
      }
      bytes += part
    }
    return ("joined.ts", bytes, state)
  }

  /// A movie of which flags or durations were changed.
  private func flagged(
    _ random: inout SeededGenerator
  ) throws -> (name: String, bytes: [UInt8], state: ForeignState) {
    let name = "flags-\(Int.random(in: 0..<2, using: &random)).mov"
    var movie = try PatchedMovie(directory.file(name))
    let table = "moov/trak/mdia/minf/stbl"
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        // track_enabled, track_in_movie and track_in_preview.
        try movie.set(UInt32.random(in: 0...7, using: &random), at: 0, of: "moov/trak/tkhd")
      case 1:
        // A sample that is marked as a key frame.
        let count = Int(try movie.number(4, at: 4, of: "\(table)/stss"))
        let entry = Int.random(in: 0..<count, using: &random)
        try movie.set(
          UInt32.random(in: 1...8, using: &random), at: 8 + 4 * entry, of: "\(table)/stss")
      default:
        // The duration of the first frames.
        try movie.set(
          [UInt32(1), 512, 5_000].randomElement(using: &random) ?? 1, at: 12,
          of: "\(table)/stts")
      }
    }
    return ("changed-\(name)", movie.bytes, .whole)
  }
}
