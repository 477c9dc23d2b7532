// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Tracks of a passthrough export besides its video and its first audio.
///
/// At each instant of a copy, such a track must show the same as in the source, at the source time that plays
/// then.
@Suite(.enabled(if: FFmpeg.isInstalled))
struct FurtherTrackTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A sample with its time in an asset.
  private struct Sample: Equatable {
    let start: Rational
    let end: Rational
    let bytes: [UInt8]
  }

  /// The samples of a track as libavformat reads them, in seconds after the first frame.
  private func samples(_ path: String, _ track: Int) throws -> [Sample] {
    let asset = try Asset(path: path)
    var demuxer = try Demuxer(opening: path)
    let base = demuxer.tracks[track].timeBase
    var samples: [Sample] = []
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track, let ticks = packet.pts ?? packet.dts else { continue }
      samples.append(
        Sample(
          start: Rational(ticks) * base - asset.origin,
          end: Rational(ticks + packet.duration) * base - asset.origin,
          bytes: packet.withBytes { [UInt8]($0) }))
    }
    return samples
  }

  private func track(_ path: String, _ tag: String) throws -> Int? {
    try Demuxer(opening: path).tracks.first { $0.otherName?.contains(tag) ?? false }?.index
  }

  private func plain(_ count: Int64 = 100, audio: MovieRecipe.Audio? = nil) throws -> Asset {
    var recipe = MovieRecipe.constant(100, count: count)
    recipe.audio = audio
    return try .made(recipe, in: directory, "plain")
  }

  private func make(_ name: String, _ arguments: [String]) async throws -> String {
    let path = directory.file(name)
    try await FFmpeg.make(path, arguments)
    return path
  }

  private func copy(
    _ composition: Composition, _ assets: [Asset], as name: String = "copy.mov"
  ) async throws -> ExportReport {
    var settings = ExportSettings(path: directory.file(name), mode: .passthrough())
    settings.overwrites = true
    let report = try await ExportSession(composition, of: assets).export(settings)
    let faults = try await MovieCheck.boxes([report.path])
    let warnings = try await MovieCheck.warnings(report.path)
    #expect(faults == "" && warnings == "", "\(faults) \(warnings)")
    return report
  }

  /// The source time that plays at an instant.
  private func source(_ time: Rational, _ composition: Composition) throws -> Rational? {
    let track = try #require(composition.track(.video))
    let segment = track.segments.first {
      $0.target.start.seconds <= time && time < $0.target.end.seconds
    }
    return try segment?.mapping?.sourceSeconds(of: time)
  }

  /// Compares what a track shows in a copy with what it shows in the source, between the instants at which
  /// either changes.
  private func compare(
    _ sources: [Sample], _ copies: [Sample], _ composition: Composition,
    _ value: (Sample, Rational) throws -> [UInt8]
  ) throws {
    #expect(!copies.isEmpty)
    var instants: Set<Rational> = []
    let duration = composition.duration.seconds
    for number in 0..<400 as Range<Int128> {
      instants.insert(duration * Rational(2 * number + 1, over: 800))
    }
    var (compared, wrong) = (0, 0)
    // A sample begins at the nearest tick.
    let slack = Rational(1, over: 10_000)
    for time in instants.sorted() {
      guard let at = try source(time, composition) else { continue }
      func shown(_ samples: [Sample], _ time: Rational) throws -> [UInt8]? {
        try samples.last { $0.start <= time && time < $0.end }.map { try value($0, time) }
      }
      let near = try [at - slack, at, at + slack].map { try shown(sources, $0) }
      guard near[0] == near[1], near[1] == near[2], let expected = near[1] else { continue }
      compared += 1
      if try shown(copies, time) != expected { wrong += 1 }
    }
    #expect(compared > 200 && wrong == 0, "\(wrong) of \(compared) at \(composition)")
  }

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `Timecodes in a copy count at the speed of the video`(seed: UInt64) async throws {
    let rate = ["25", "30000/1001", "100"][Int(seed % 3)]
    let drop = rate == "30000/1001" ? ";" : ":"
    let path = directory.file("coded.\(seed % 2 == 0 ? "mov" : "mp4")")
    try await FFmpeg.makeClip(
      path, frames: 100, rate: rate,
      ["-c:v", "mjpeg", "-timecode", "01:02:03\(drop)04"])
    let asset = try Asset(path: path)
    let number = try #require(try track(path, "timecode"))
    let composition = try Composition.random(asset, seed: seed, reverses: true)
    let report = try await copy(
      composition, [asset], as: seed.isMultiple(of: 3) ? "copy.mp4" : "copy.mov")
    #expect(report.lostMetadata.isEmpty)
    let stated = try FrameRate(parsing: rate).framesPerSecond
    try compare(
      samples(path, number), samples(report.path, try #require(try track(report.path, "timecode"))),
      composition
    ) { sample, time in
      let first = sample.bytes.reduce(0) { $0 << 8 | Int64($1) }
      let passed = try ((time - sample.start) * stated).rounded(.towardNegativeInfinity)
      return Array("\(first + Int64(passed))".utf8)
    }
    if composition.segments.first?.mapping?.sourceStart == .zero {
      for file in [path, report.path] {
        let found = try await FFmpeg.probe(file, "stream_tags=timecode")
        #expect(found.contains("01:02:03\(drop)04"), "\(found)")
      }
    }
  }

  @Test func `A whole copy keeps the timecode in one sample`() async throws {
    let path = try await make(
      "coded.mov", ["-i", try plain().path, "-c", "copy", "-timecode", "10:00:00:00"])
    let asset = try Asset(path: path)
    let report = try await copy(Composition(asset), [asset])
    let number = try #require(try track(report.path, "timecode"))
    #expect(
      try samples(report.path, number) == samples(path, try #require(try track(path, "timecode"))))
    // The video refers to its timecode.
    let tracks = try #require(SourceTracks(of: report.path))
    #expect(try #require(tracks.track(0)).references.map(\.tracks) == [[number]])
  }

  @Test func `Rendered audio keeps its reference to a timecode`() async throws {
    var audio = MovieRecipe.Audio()
    (audio.sampleCount, audio.clicks) = (48_000, [4_800])
    let coded = try await make(
      "coded.mov",
      ["-i", try plain(audio: audio).path, "-c", "copy", "-timecode", "10:00:00:00"])
    // FFmpeg lets only the video refer to the timecode.
    var source = try Demuxer(opening: coded)
    let timecode = try #require(try track(coded, "timecode"))
    var code = try #require(SourceTracks(of: coded)?.track(timecode))
    code.references = []
    let path = try directory.write([], as: "spoken.mov")
    var writer = try MovieWriter(
      path: path, settings: MovieWriter.Settings(container: .mov, movieTimescale: 1_000))
    let references = [MovieTrack.Reference(type: BoxType.timecode, tracks: [timecode])]
    for format in source.tracks where format.index != timecode {
      let timescale = try Int32((1 / format.timeBase).rounded(.halfAwayFromZero))
      _ = try writer.addTrack(format.parameters, timescale: timescale, references: references)
    }
    _ = writer.addTrack(copying: code)
    try writer.begin()
    while let packet = try source.nextPacket() {
      let ticks = try #require(packet.dts)
      guard packet.trackIndex != timecode else {
        try writer.append(
          packet.withBytes { [UInt8]($0) },
          MovieFileWriter.Sample(
            track: timecode, ticks: ticks, duration: packet.duration, isKeyFrame: true))
        continue
      }
      try writer.write(
        packet, track: packet.trackIndex, pts: try #require(packet.pts), dts: ticks,
        duration: packet.duration)
    }
    try writer.finish()
    let asset = try Asset(path: path)
    let slow = try asset.retimed([(range(200, 700), speed(1, 4))])
    for composition in [try Composition(asset), slow] {
      let tracks = try #require(SourceTracks(of: try await copy(composition, [asset]).path))
      for number in 0..<2 {
        #expect(try #require(tracks.track(number)).references.map(\.tracks) == [[timecode]])
      }
    }
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `Subtitles in a copy stay with the frames`(seed: UInt64) async throws {
    let text = directory.file("texts.srt")
    try "1\n00:00:00,100 --> 00:00:00,400\nsplash\n\n2\n00:00:00,500 --> 00:00:00,900\ndrop\n"
      .write(toFile: text, atomically: true, encoding: .utf8)
    let path = try await make(
      "titled.\(seed % 2 == 0 ? "mov" : "mp4")",
      ["-i", try plain().path, "-f", "srt", "-i", text, "-c:v", "copy", "-c:s", "mov_text"])
    let asset = try Asset(path: path)
    let composition = try Composition.random(asset, seed: seed, reverses: true)
    let report = try await copy(
      composition, [asset], as: seed == 1 ? "copy.mp4" : "copy.mov")
    #expect(report.lostMetadata.isEmpty)
    try compare(
      samples(path, try #require(try track(path, "subtitle"))),
      samples(report.path, try #require(try track(report.path, "subtitle"))), composition
    ) { sample, _ in sample.bytes }
  }

  /// Writes a movie with telemetry of ten samples a second and two images of chapters.
  private func telemetry(_ name: String, seed: UInt8 = 0) async throws -> String {
    try await FFmpeg.make(
      directory.file("image%d.jpg"), ["-f", "lavfi", "-i", "testsrc2=64x48:d=1:r=2"])
    let container = try #require(MovieContainer(path: name))
    var source = try Demuxer(opening: try plain().path)
    let path = try directory.write([], as: name)
    var writer = try MovieWriter(
      path: path, settings: MovieWriter.Settings(container: container, movieTimescale: 1_000))
    let video = try writer.addTrack(
      source.tracks[0].parameters, timescale: 1_000_000,
      references: [MovieTrack.Reference(type: MovieTrack.Reference.chapters, tracks: [2])])
    var entry = BoxBytes()
    entry.box(0x6770_6D64) { box in  // gpmd
      for number in [0, 1, 0] as [UInt32] { box.append(number) }
    }
    var header = BoxBytes()
    header.fullBox(0x6E6D_6864, version: 0, flags: 0) { _ in }  // nmhd
    var measured = MovieTrack(
      handler: 0x6D65_7461, name: "telemetry", timescale: 1_000, language: 0x55C4,
      mediaHeader: header.bytes, descriptions: [SampleDescription(entry.bytes)])
    measured.references = [MovieTrack.Reference(type: 0x6364_7363, tracks: [0])]  // cdsc
    let measurements = writer.addTrack(copying: measured)
    var images = try TrackMuxer.describe(
      TrackMuxer.Format(
        CodecParameters(videoCodec: "mjpeg", width: 64, height: 48), in: container,
        timescale: 1_000),
      first: Packet(copying: [UInt8](repeating: 7, count: 16)), path: "memory")
    images.flags = 2
    let chapters = writer.addTrack(copying: images)
    try writer.begin()
    var ticks: Int64 = 0
    while let packet = try source.nextPacket() {
      try writer.write(packet, track: video, pts: ticks, dts: ticks, duration: 10_000)
      ticks += 10_000
    }
    for number in 0..<10 as Range<Int64> {
      try writer.append(
        [seed, 1, 2, UInt8(number)],
        MovieFileWriter.Sample(
          track: measurements, ticks: number * 100, duration: 100, isKeyFrame: true))
    }
    for number in 0..<2 as Range<Int64> {
      try writer.append(
        TestSupport.bytes(of: directory.file("image\(number + 1).jpg")),
        MovieFileWriter.Sample(
          track: chapters, ticks: number * 500, duration: 500, isKeyFrame: true))
    }
    try writer.finish()
    return path
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `Telemetry and chapter images stay with the frames`(seed: UInt64) async throws {
    let path = try await telemetry("sensor.mov")
    let asset = try Asset(path: path)
    #expect(asset.otherTracks.count == 2)
    let composition = try Composition.random(asset, seed: seed, reverses: true)
    let report = try await copy(composition, [asset])
    #expect(report.lostMetadata.isEmpty)
    for number in [1, 2] {
      try compare(samples(path, number), samples(report.path, number), composition) { sample, _ in
        sample.bytes
      }
    }
    let (old, new) = (
      try #require(SourceTracks(of: path)), try #require(SourceTracks(of: report.path))
    )
    for number in 0..<3 {
      let tracks = (try #require(old.track(number)), try #require(new.track(number)))
      #expect(tracks.0.references.map(\.tracks) == tracks.1.references.map(\.tracks))
      if number > 0 { #expect(tracks.0.descriptions == tracks.1.descriptions) }
    }
  }

  @Test func `Another container keeps telemetry and names chapter images`() async throws {
    let path = try await telemetry("sensor.mov")
    let asset = try Asset(path: path)
    let report = try await copy(Composition(asset), [asset], as: "copy.mp4")
    #expect(report.lostMetadata == ["video track (mjpeg)"])
    #expect(try samples(path, 1) == samples(report.path, 1))
  }

  @Test func `Joined movies keep a track that each of them has`() async throws {
    let paths = try await [telemetry("a.mov", seed: 1), telemetry("b.mov", seed: 2)]
    let assets = try paths.map { try Asset(path: $0) }
    var composition = Composition()
    for asset in assets { try composition.append(asset, range: range(250, 1_000)) }
    let report = try await copy(composition, assets)
    #expect(report.lostMetadata.isEmpty)
    let found = try samples(report.path, 1).map { Int($0.bytes[0]) * 10 + Int($0.bytes[3]) }
    #expect(found == Array(12...19) + Array(22...29))
    let bare = try plain()
    var mixed = composition
    try mixed.append(bare)
    let other = try await copy(mixed, assets + [bare])
    #expect(other.lostMetadata.count == 4)
    #expect(try Asset(path: other.path).tracks.count == 1)
  }

  @Test(arguments: ["aac", "pcm_s16le"])
  func `A further audio track is copied with the first`(codec: String) async throws {
    let path = try await make(
      "two.mov",
      [
        "-i", try plain().path, "-f", "lavfi", "-i", "sine=300:d=1", "-f", "lavfi", "-i",
        "sine=700:d=1", "-map", "0:v", "-map", "1:a", "-map", "2:a", "-c:v", "copy", "-c:a", codec,
        "-metadata:s:a:1", "language=fra",
      ])
    let asset = try Asset(path: path)
    let report = try await copy(Composition(asset), [asset])
    #expect(report.lostMetadata.isEmpty)
    for number in 0..<2 {
      func audio(_ path: String) async throws -> [UInt8] {
        try await FFmpeg.converted(path, ["-map", "0:a:\(number)", "-f", "s16le"])
      }
      let expected = try await audio(path)
      #expect(expected.count > 40_000)
      #expect(try await audio(report.path) == expected)
    }
    let languages = try Asset(path: report.path).tracks(of: .audio).map(\.language)
    #expect(languages.last == "fra")
    let slow = try asset.retimed([(range(200, 700), speed(1, 4))])
    let rendered = try await copy(slow, [asset])
    #expect(rendered.lostMetadata == ["audio track (\(codec))"])
  }

  @Test func `Tracks of a fragmented movie are named as lost`() async throws {
    let path = try await make(
      "fragments.mp4",
      [
        "-i", try await telemetry("sensor.mp4"), "-map", "0:0", "-map", "0:1", "-c", "copy",
        "-movflags",
        "frag_keyframe",
      ])
    let asset = try Asset(path: path)
    let report = try await copy(Composition(asset), [asset], as: "copy.mp4")
    #expect(report.lostMetadata == ["data track (gpmd)"])
  }
}
