// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Sample descriptions of sources, which a copy keeps only if they fit its packets.
struct SampleDescriptionTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func copy(
    _ paths: [String], as name: String = "copy.mov", boundary: CutPolicy = .auto,
    _ ranges: [TimeRange?] = []
  ) throws -> ExportReport {
    let assets = try paths.map { try Asset(path: $0) }
    var composition = Composition()
    for (number, asset) in assets.enumerated() {
      let whole = try TimeRange(start: .zero, end: asset.duration)
      let range = ranges.indices.contains(number) ? ranges[number] ?? whole : whole
      try composition.insertTimeRange(range, of: asset.mediaSource(), at: composition.duration)
    }
    var settings = ExportSettings(
      path: directory.file(name), mode: .passthrough(boundary: boundary))
    settings.overwrites = true
    return try ExportSession(composition, of: assets).export(settings)
  }

  private func images(_ path: String) async throws -> [UInt8] {
    try await FFmpeg.converted(
      path, ["-map", "0:v", "-f", "rawvideo", "-fps_mode", "passthrough"])
  }

  private func isRefused(_ export: () throws -> ExportReport) -> Bool {
    do { _ = try export() } catch let error as MediaError {
      return error.code == .unsupportedSource
    } catch {}
    return false
  }

  /// A movie of 20 frames whose parameter sets depend on the profile.
  private func plain(_ profile: String, _ container: String = "mov") async throws -> String {
    let path = directory.file("\(profile).\(container)")
    try await FFmpeg.makeClip(
      path, frames: 20, ["-c:v", "libx264", "-profile:v", profile, "-bf", "0"])
    return path
  }

  /// A movie of three parts, of which the second has another sample description.
  private func changing(_ container: MovieContainer = .mov) async throws -> (
    path: String, descriptions: [SampleDescription], images: [UInt8]
  ) {
    var (packets, descriptions): ([[Packet]], [SampleDescription]) = ([], [])
    var images: [UInt8] = []
    var parameters: CodecParameters?
    for profile in ["baseline", "high"] {
      let path = try await plain(profile, container.rawValue)
      images += try await self.images(path)
      descriptions += try #require(SourceDescriptions(ofTrack: 0, in: path)).descriptions
      var demuxer = try Demuxer(opening: path)
      parameters = parameters ?? demuxer.tracks[0].parameters
      packets.append([])
      while let packet = try demuxer.nextPacket() { packets[packets.count - 1].append(packet) }
    }
    #expect(Set(descriptions).count == 2)
    images += images[..<(images.count / 2)]
    let path = try directory.write([], as: "changing.\(container.rawValue)")
    var writer = try MovieWriter(
      path: path, settings: MovieWriter.Settings(container: container, movieTimescale: 30_000))
    let track = try writer.addTrack(
      try #require(parameters), timescale: 30_000, descriptions: descriptions)
    try writer.begin()
    var ticks: Int64 = 0
    for part in [0, 1, 0] {
      for packet in packets[part] {
        try writer.write(
          packet, track: track, pts: ticks, dts: ticks, duration: 1_000, description: part)
        ticks += 1_000
      }
    }
    try writer.finish()
    return (path, descriptions, images)
  }

  @Test func `An empty packet and a repeated time are refused`() async throws {
    var demuxer = try Demuxer(opening: try await plain("baseline"))
    var writer = try MovieWriter(
      path: try directory.write([], as: "refused.mov"),
      settings: MovieWriter.Settings(container: .mov, movieTimescale: 30_000))
    let track = try writer.addTrack(demuxer.tracks[0].parameters, timescale: 30_000)
    try writer.begin()
    let packet = try #require(try demuxer.nextPacket())
    let packets: [(Int64, Packet)] = [(0, packet), (1_000, try Packet(copying: [])), (0, packet)]
    for (ticks, packet) in packets {
      do throws(CallFailure) {
        try writer.write(packet, track: track, pts: ticks, dts: ticks, duration: 1_000)
        #expect(ticks == 0 && packet.byteCount > 0)
      } catch {
        #expect(error.operation == "store a frame at \(ticks) (decoded at \(ticks)) in")
      }
    }
    try writer.finish()
    #expect(try Asset(path: directory.file("refused.mov")).videoTrack?.frameCount == 1)
  }

  @Test func `A copy keeps all sample descriptions of a track`() async throws {
    let changed = try await changing()
    #expect(try Asset(path: changed.path).videoTrack?.frameCount == 60)
    let report = try copy([changed.path])
    #expect(report.framesCopied == 60)
    let stored = try #require(SourceDescriptions(ofTrack: 0, in: report.path))
    #expect(stored.descriptions == changed.descriptions)
    for path in [changed.path, report.path] { #expect(try await images(path) == changed.images) }
    // MP4 has other boxes in its descriptions than MOV.
    #expect(isRefused { try copy([changed.path], as: "copy.mp4") })
    let asset = try Asset(path: changed.path)
    var settings = ExportSettings(path: directory.file("made.mov"), mode: .constant(FrameRate(30)))
    settings.render { $0.encoding = .ffv1 }
    let made = try await ExportSession(Composition(asset), of: asset).export(settings)
    #expect(made.framesEncoded > 0)
  }

  @Test func `Joined movies keep the sample descriptions of all`() async throws {
    let first = try await plain("baseline")
    let changed = try await changing()
    let report = try copy([first, changed.path])
    #expect(try await images(report.path) == images(first) + changed.images)
    let stored = try #require(SourceDescriptions(ofTrack: 0, in: report.path))
    #expect(stored.descriptions == changed.descriptions)
  }

  @Test(arguments: ["libx264", "mpeg4"])
  func `Files that differ only in bit rate share a description`(codec: String) async throws {
    var (paths, expected): ([String], [UInt8]) = ([], [])
    for (name, frames) in [("short", 5), ("long", 25), ("longer", 45)] {
      let path = directory.file("\(name).mp4")
      try await FFmpeg.makeClip(path, frames: frames, ["-c:v", codec, "-bf", "0"])
      expected += try await images(path)
      paths.append(path)
    }
    let sources = try paths.map { try #require(SourceDescriptions(ofTrack: 0, in: $0)) }
    #expect(Set(sources.flatMap(\.descriptions)).count == 3)
    let report = try copy(paths, as: "copy.mp4")
    #expect(try await images(report.path) == expected)
    let stored = try #require(SourceDescriptions(ofTrack: 0, in: report.path)).descriptions
    #expect(stored == [sources[0].descriptions[0].withoutBitRates])
    #expect(stored[0] != sources[0].descriptions[0])
    // The rate of a single file is kept.
    let one = try copy([paths[0]], as: "copy.mp4")
    let kept = try #require(SourceDescriptions(ofTrack: 0, in: one.path)).descriptions
    #expect(kept == sources[0].descriptions)
  }

  @Test func `A join that would lose a sample description is refused`() async throws {
    let (mov, mp4) = (try await plain("baseline"), try await plain("baseline", "mp4"))
    let changed = try await changing().path
    // A MOV file cannot keep the descriptions of MP4.
    #expect(isRefused { try copy([changed, mp4]) })
    #expect(isRefused { try copy([mp4, changed]) })
    let changedMP4 = try await changing(.mp4).path
    #expect(isRefused { try copy([mov, changedMP4]) })
    #expect(try copy([mp4, changedMP4], as: "copy.mp4").framesCopied == 80)
  }

  @Test func `A description that no fragment uses prevents no copy`() throws {
    var recipe = MovieRecipe.constant(100, count: 50).h264(gop: 10, reordered: false)
    recipe.fragmentMicroseconds = 100_000
    let asset = try Asset.made(recipe, in: directory)
    var movie = try PatchedMovie(asset.path)
    let table = "moov/trak/mdia/minf/stbl/stsd"
    let entry = try #require(SourceDescriptions(ofTrack: 0, in: asset.path)).descriptions[0].bytes
    try movie.replace(table, with: [0, 0, 0, 0, 0, 0, 0, 2] + entry + entry)
    let unused = try directory.write(movie.bytes, as: "unused.mov")
    let report = try copy([unused])
    #expect(report.framesCopied == 50)
    #expect(try Asset(path: report.path).numbers() == (0..<50).map { $0 })
    try movie.set(UInt32(2), at: 8, of: "moov/mvex/trex")
    let used = try directory.write(movie.bytes, as: "used.mov")
    #expect(isRefused { try copy([used]) })
  }

  @Test func `Cuts are not rendered if any movie changes its description`() async throws {
    let paths = [try await plain("baseline"), try await changing().path]
    let ranges = [nil, try range(200, 1_900)]
    #expect(throws: MediaError.self) { try copy(paths, boundary: .render, ranges) }
    #expect(try copy(paths, boundary: .auto, ranges).framesEncoded == 0)
    #expect(try copy([paths[0]], boundary: .render, [try range(200, 500)]).framesEncoded > 0)
  }

  @Test(arguments: ["ai12", "avc1"])
  func `A byte stream without avcC gets a description`(tag: String) async throws {
    // The codec tags of AVC-Intra stand for a byte stream, whose packets have the parameter sets.
    let stream = directory.file("stream.mov")
    try await FFmpeg.makeClip(
      stream, frames: 20,
      ["-c:v", "libx264", "-flags", "-global_header", "-x264-params", "repeat-headers=1"]
        + ["-tag:v", "ai12"])
    var movie = try bytes(of: stream)
    #expect(movie.firstRange(of: Array("avcC".utf8)) == nil)
    let name = try #require(movie.firstRange(of: Array("ai12".utf8)))
    movie.replaceSubrange(name, with: Array(tag.utf8))
    let path = try directory.write(movie, as: "\(tag).mov")
    let expected = try await images(path)
    let byteCount = 20 * 160 * 120 * 3 / 2
    #expect(expected.count == byteCount)
    for container in ["mov", "mp4"] {
      let report = try copy([path], as: "copy.\(container)")
      #expect(try await images(report.path) == expected)
    }
  }

  /// A movie whose first track is audio, since a patch changes the first track.
  private func withAudio(_ codec: String, _ container: String) async throws -> String {
    let path = directory.file("audio.\(container)")
    try await FFmpeg.make(
      path,
      ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=30", "-f", "lavfi"]
        + ["-i", "sine=440:r=48000", "-t", "1", "-map", "1", "-map", "0", "-c:v", "libx264"]
        + ["-c:a", codec])
    return path
  }

  @Test func `Audio entries of version 1 in MP4 are described anew`() async throws {
    var movie = try PatchedMovie(await withAudio("aac", "mp4"))
    let table = "moov/trak/mdia/minf/stbl/stsd"
    try movie.set(UInt8(1), at: 0, of: table)
    try movie.set(UInt16(1), at: 24, of: table)
    let path = try directory.write(movie.bytes, as: "version.mp4")
    let expected = try await FFmpeg.audio(of: path, channelCount: 1)
    #expect(expected[0].count > 40_000)
    let report = try copy([path], as: "copy.mp4")
    #expect(report.audio?.algorithm == "copy")
    #expect(try await FFmpeg.audio(of: report.path, channelCount: 1) == expected)
  }

  @Test func `Legacy constant-rate audio is described anew`() async throws {
    let plain = try await withAudio("adpcm_ima_qt", "mov")
    var movie = try PatchedMovie(plain)
    let table = "moov/trak/mdia/minf/stbl"
    // Packets of 64 samples and 34 bytes, in the fields of version 1.
    for (offset, number) in [(44, 64), (48, 34), (52, 34), (56, 2)] as [(Int, UInt32)] {
      try movie.set(number, at: offset, of: "\(table)/stsd")
    }
    try movie.set(UInt16(0), at: 36, of: "\(table)/stsd")
    // The tables count samples instead of packets.
    let count = UInt32(try movie.number(4, at: 8, of: "\(table)/stsz")) * 64
    let runs = try (0..<Int(movie.number(4, at: 4, of: "\(table)/stsc"))).map { run in
      let numbers = try (0..<3).map {
        UInt32(try movie.number(4, at: 8 + 12 * run + 4 * $0, of: "\(table)/stsc"))
      }
      return [numbers[0], numbers[1] * 64, numbers[2]]
    }
    try movie.replace("\(table)/stsc", with: PatchedMovie.table(runs))
    var sizes = BoxBytes()
    for number in [0, 1, count] { sizes.append(number) }
    try movie.replace("\(table)/stsz", with: sizes.bytes)
    try movie.replace("\(table)/stts", with: PatchedMovie.table([[count, 1]]))
    let path = try directory.write(movie.bytes, as: "legacy.mov")
    let expected = try await FFmpeg.audio(of: plain, channelCount: 1)
    #expect(try await FFmpeg.audio(of: path, channelCount: 1) == expected)
    let report = try copy([path])
    #expect(report.audio?.algorithm == "copy")
    #expect(try await FFmpeg.audio(of: report.path, channelCount: 1) == expected)
  }
}
