// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Transport streams that were joined byte by byte, and streams with missing bytes.
struct JoinedRecordingTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// Makes a transport stream of half a second that begins at a time in seconds.
  private func stream(
    _ name: String, at start: Int, hasAudio: Bool = true, hasReorderedFrames: Bool = false
  ) async throws -> String {
    let path = directory.file("\(name).ts")
    let tone = name == "one" ? 400 : 700
    let audio =
      hasAudio ? ["-f", "lavfi", "-i", "sine=\(tone):r=48000:d=0.48", "-c:a", "mp2"] : []
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.48,hue=h=\(tone)"] + audio
        + ["-c:v", "libx264", "-preset", hasReorderedFrames ? "veryfast" : "ultrafast", "-g", "6"]
        + ["-bf", hasReorderedFrames ? "2" : "0", "-output_ts_offset", "\(start)"])
    return path
  }

  /// The luma and chroma of all frames, as FFmpeg decodes them.
  ///
  /// FFmpeg uses one thread, because several threads decode a damaged frame differently each time.
  private func images(_ path: String) async throws -> [UInt8] {
    try await FFmpeg.converted(
      path, ["-map", "0:v", "-fps_mode", "passthrough", "-f", "rawvideo"],
      decoding: ["-threads", "1"])
  }

  /// The frames of an asset in presentation order, as this library decodes them.
  private func read(_ asset: Asset) throws -> [UInt8] {
    var reader = try FrameReader(asset)
    var writer = try RawFrameWriter(PixelFormat(rawValue: "yuv420p"))
    // Frames with odd numbers are read first, so that the reader also goes back.
    let count = asset.videoTrack?.frameCount ?? 0
    var frames = [[UInt8]](repeating: [], count: count)
    for index in stride(from: 1, to: count, by: 2) {
      frames[index] = try writer.data(of: index, from: &reader)
    }
    for index in stride(from: 0, to: count, by: 2) {
      frames[index] = try writer.data(of: index, from: &reader)
    }
    return Array(frames.joined())
  }

  @Test(arguments: [
    (10, 10, true), (10, 12, true), (20, 14, false), (100, 10, true), (10, 90_000, false),
  ])
  func `Two joined recordings with separate clocks play in sequence`(
    start: Int, later: Int, hasAudio: Bool
  ) async throws {
    let one = try await stream("one", at: start, hasAudio: hasAudio)
    let other = try await stream("other", at: later, hasAudio: hasAudio)
    let path = try directory.write(bytes(of: one) + bytes(of: other), as: "joined.ts")
    let expected = try await images(one) + images(other)
    let asset = try Asset(path: path)
    let track = try #require(asset.videoTrack)
    #expect(track.frameCount == 24)
    #expect(asset.notes.count { $0.contains("clock restarts") } == 1)
    let duration = asset.duration.seconds
    #expect(duration >= Rational(96, over: 100) && duration < Rational(105, over: 100))
    #expect(try read(asset) == expected)
    let settings = ExportSettings(path: directory.file("copy.mov"), mode: .passthrough())
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(report.warnings.contains { $0.contains("clock restarts") })
    #expect(try await images(report.path) == expected)
    guard hasAudio else { return }
    // The audio of each recording starts with its video.
    let audio = try asset.audio()[0]
    let parts = try [one, other].map { try Asset(path: $0).audio()[0] }
    let restart = try track.frames.time(ofFrame: 12).seconds * 48_000
    let first = Int(try restart.rounded(.halfAwayFromZero))
    for (sample, offset, source) in [(3_000, 3_000, 0), (first + 9_000, 9_000, 1)] {
      let found = audio[sample..<sample + 2_000]
      let wanted = parts[source][offset..<offset + 2_000]
      let difference = zip(found, wanted).map { abs($0 - $1) }.max() ?? 1
      #expect(difference < 1e-3, "at \(sample)")
    }
    let copied = try await FFmpeg.audio(of: report.path, channelCount: 1)[0]
    #expect(abs(copied.count - audio.count) < 2_400)
  }

  @Test(arguments: [(10, 10, 100), (100, 100, 10), (100, 10, 100)])
  func `Joined recordings may differ in the order of frames`(
    first: Int, second: Int, third: Int
  ) async throws {
    // The first frame of the third recording has no decode time in the file, and libavformat derives
    // one from the second.
    let parts = [
      try await stream("one", at: first),
      try await stream("other", at: second, hasReorderedFrames: true),
      try await stream("three", at: third),
    ]
    let path = try directory.write(parts.flatMap { try bytes(of: $0) }, as: "joined.ts")
    var expected: [UInt8] = []
    for part in parts { expected += try await images(part) }
    let asset = try Asset(path: path)
    #expect(asset.videoTrack?.frameCount == 36)
    #expect(asset.duration.seconds < Rational(16, over: 10))
    #expect(try read(asset) == expected)
    let settings = ExportSettings(path: directory.file("copy.mov"), mode: .passthrough())
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(try await images(report.path) == expected)
  }

  @Test func `A file whose clock restarts in only one track is refused`() async throws {
    let one = try await stream("one", at: 20)
    // The audio of the second recording continues with the clock of the first.
    let other = directory.file("other.ts")
    try await FFmpeg.make(
      other,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.48", "-itsoffset", "10.48", "-f", "lavfi"]
        + ["-i", "sine=700:r=48000:d=2", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "mp2"]
        + ["-output_ts_offset", "10"])
    let path = try directory.write(bytes(of: one) + bytes(of: other), as: "joined.ts")
    let error = #expect(throws: MediaError.self) { try Asset(path: path) }
    #expect(error?.code == .invalidData)
    #expect(error?.message.contains("restarts in some of its tracks") == true)
  }

  @Test func `A time gap in one track does not count as a clock restart`() async throws {
    let path = directory.file("gap.ts")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=3", "-f", "lavfi"]
        + ["-i", "sine=400:r=48000:d=3,aselect='lt(t,0.5)+gt(t,2)'", "-c:v", "libx264"]
        + ["-preset", "ultrafast", "-c:a", "mp2"])
    let asset = try Asset(path: path)
    #expect(asset.notes == [] && asset.videoTrack?.frameCount == 75)
    #expect(asset.duration.seconds == 3)
  }

  @Test func `A frame with missing bytes is read and reported in a note`() async throws {
    let whole = try await stream("one", at: 1, hasAudio: false)
    var packets = try bytes(of: whole)
    // The lost packet is in the middle of the file and does not begin a frame.
    let video = stride(from: 0, to: packets.count, by: 188).filter {
      packets[$0 + 1] == 1 && packets[$0 + 2] == 0
    }
    let lost = try #require(video.dropFirst(video.count / 2).first)
    packets.removeSubrange(lost..<lost + 188)
    let path = try directory.write(packets, as: "lossy.ts")
    let asset = try Asset(path: path)
    #expect(asset.videoTrack?.frameCount == 12)
    #expect(asset.notes.contains { $0.contains("bytes are missing") })
    let stated = try await FFmpeg.probe(path, "packet=pts", stream: "v:0")
    #expect(stated.count == 12)
    #expect(try read(asset).count == 12 * 64 * 48 * 3 / 2)
    var settings = ExportSettings(path: directory.file("copy.mov"), mode: .passthrough())
    settings.overwrites = true
    let report = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(report.framesCopied == 12)
    #expect(report.warnings.contains { $0.contains("bytes are missing") })
    #expect(try await images(report.path) == images(path))
  }

  @Test func `Audio next to missing bytes is left out`() async throws {
    let path = try await stream("one", at: 10)
    var bytes = try bytes(of: path)
    // The first continuation packet of the audio, which has the second PID.
    let packets = stride(from: 0, to: bytes.count, by: 188).filter {
      bytes[$0 + 1] == 0x01 && bytes[$0 + 2] == 0x01
    }
    bytes.removeSubrange(packets[3]..<packets[3] + 188)
    let damaged = try directory.write(bytes, as: "damaged.ts")
    let (whole, asset) = try (Asset(path: path), Asset(path: damaged))
    #expect(asset.notes.contains { $0.contains("bytes are missing") })
    let (all, rest) = try (whole.audio()[0], asset.audio()[0])
    let equal = zip(all, rest).count { $0 == $1 }
    #expect(rest.count >= all.count - 2_304 && equal > all.count / 2)
    for (name, mode) in [("copy", ExportMode.passthrough()), ("made", .constant(FrameRate(25)))] {
      let settings = ExportSettings(path: directory.file("\(name).mov"), mode: mode)
      let report = try await ExportSession(Composition(asset), of: asset).export(settings)
      #expect(report.warnings.contains { $0.contains("bytes are missing") })
    }
  }
}
