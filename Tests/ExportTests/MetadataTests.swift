// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

/// Metadata in exports.
///
/// Every tag of a source is in the result, or the report names it as lost.
@Suite(.enabled(if: FFmpeg.isInstalled))
struct MetadataTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// Runs ffmpeg to make a fixture.
  private func make(_ name: String, _ arguments: [String]) async throws -> Asset {
    let path = directory.file(name)
    let made = try await run("ffmpeg", ["-v", "error", "-y"] + arguments + [path])
    try #require(made.status == 0, "\(made.errors)")
    return try Asset(path: path)
  }

  /// Metadata that a user would miss, as ffprobe prints it, one fact per line.
  private func facts(_ path: String) async throws -> Set<String> {
    let probed = try await run(
      "ffprobe",
      ["-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_chapters", path])
    let document = try probed.document()
    var facts: Set<String> = []
    func tags(_ object: Any?, _ kind: String, _ keys: Set<String>? = nil) {
      for (key, value) in object as? [String: String] ?? [:] where keys?.contains(key) ?? true {
        facts.insert("\(kind) \(key)=\(value)")
      }
    }
    let format = document["format"] as? [String: Any]
    var global = format?["tags"] as? [String: String] ?? [:]
    for own in ["major_brand", "minor_version", "compatible_brands", "encoder"] {
      global[own] = nil
    }
    // Each export has a note of its own.
    global["comment"] = global["comment"].flatMap { TimeMapNote(comment: $0) == nil ? $0 : nil }
    tags(global, "file")
    for stream in document["streams"] as? [[String: Any]] ?? [] {
      let kind = stream["codec_type"] as? String ?? ""
      guard kind == "video" || kind == "audio" else { continue }
      tags(stream["tags"], kind, ["language"])
      for key in [
        "color_range", "color_space", "color_transfer", "color_primaries", "sample_aspect_ratio",
      ] {
        if let value = stream[key] { facts.insert("\(kind) \(key)=\(value)") }
      }
      for data in stream["side_data_list"] as? [[String: Any]] ?? [] {
        for (key, value) in data where key != "displaymatrix" {
          facts.insert("\(kind) \(data["side_data_type"] ?? "") \(key)=\(value)")
        }
      }
    }
    return facts
  }

  /// Exports the asset with a slow range in every container and mode, and compares the metadata.
  private func check(_ asset: Asset, sizes: Bool = true) async throws {
    let composition = try asset.retimed([(range(200, 700), speed(1, 4))])
    let source = try await facts(asset.path)
    for container in ["mov", "mp4"] {
      for mode in [ExportMode.passthrough(), .constant(FrameRate(30))] {
        var settings = ExportSettings(path: directory.file("out.\(container)"), mode: mode)
        settings.overwrites = true
        let report = try await ExportSession(composition, of: asset).export(settings)
        let kept = try await facts(report.path)
        // The language codes of QuickTime and of ISO 639-2 differ for French.
        let same = ["audio language=fre": "audio language=fra"]
        let missing = source.filter { fact in
          !kept.contains(fact) && !kept.contains(same[fact] ?? fact)
            && !kept.contains(where: { same[$0] == fact })
            && !report.lostMetadata.contains { fact.contains($0) }
        }
        #expect(missing.isEmpty, "\(container) \(mode): \(missing.sorted())")
        // Players that do not know the tag read the box.
        let hasBox = try bytes(of: report.path).firstRange(of: Array("loci".utf8)) != nil
        #expect(hasBox == source.contains { $0.hasPrefix("file location=") })
      }
    }
  }

  private static let tags = [
    "-metadata", "title=A drop of milk", "-metadata", "make=Overcrank",
    "-metadata", "model=Bench", "-metadata", "location=+48.2082+016.3738/",
    "-metadata", "com.apple.quicktime.location.ISO6709=+48.2082+016.3738+170.000/",
    "-metadata", "com.apple.quicktime.make=Overcrank", "-metadata", "artist=Worthington",
    "-metadata", "com.apple.quicktime.creationdate=2024-05-06T07:08:09+0200",
    "-metadata", "creation_time=2024-05-06T05:08:09.000000Z",
    "-metadata", "com.android.capture.fps=240.000000", "-movflags", "use_metadata_tags",
  ]

  private func plain() throws -> Asset {
    let recipe = MovieRecipe.constant(100, count: 100).h264(gop: 25, reordered: true)
    return try .made(recipe, in: directory)
  }

  @Test(arguments: ["mov", "mp4"])
  func `Export keeps the tags and rotation and colors of the source`(
    container: String
  ) async throws {
    var recipe = MovieRecipe.constant(100, count: 100).h264(gop: 25, reordered: true)
    recipe.displayMatrix = [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30]
    let rotated = try await make(
      "turned.\(container)",
      [
        "-i", Asset.made(recipe, in: directory).path, "-f", "lavfi", "-i", "sine=d=1", "-map",
        "0:v",
        "-map", "1:a",
        "-c:v", "copy", "-c:a", "aac", "-bsf:v",
        "h264_metadata=sample_aspect_ratio=4/3:colour_primaries=1:transfer_characteristics=1"
          + ":matrix_coefficients=1:video_full_range_flag=0",
        "-metadata:s:v", "language=ger", "-metadata:s:a",
        container == "mov" ? "language=fra" : "language=fre",
      ] + Self.tags)
    let source = try await facts(rotated.path)
    for expected in [
      "file make=Overcrank", container == "mp4" ? "audio language=fre" : "audio language=fra",
      "file location=+48.2082+016.3738/", "video color_space=bt709",
      "video Display Matrix rotation=-90",
      "file com.android.capture.fps=240.000000", "video sample_aspect_ratio=4:3",
    ] {
      #expect(source.contains(expected), "\(expected) is not in \(source.sorted())")
    }
    try await check(rotated)
  }

  @Test func `HDR10 metadata of the track or of its frames is exported`() async throws {
    let inFrames = try await make(
      "hdr.mov",
      [
        "-i", plain().path, "-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le",
        "-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc",
        "-tag:v", "hvc1", "-x265-params",
        "log-level=none:open-gop=0:hdr10=1:repeat-headers=1:colorprim=bt2020:transfer=smpte2084"
          + ":colormatrix=bt2020nc:max-cll=1000,400:master-display="
          + "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)",
      ])
    try await check(inFrames)
    // An encoded track has the HDR10 metadata, and a passthrough export of it keeps the metadata.
    var settings = ExportSettings(
      path: directory.file("track.mov"), mode: .constant(FrameRate(50)))
    settings.overwrites = true
    let report = try await ExportSession(Composition(inFrames), of: inFrames).export(settings)
    let inTrack = try Asset(path: report.path)
    let found = try await facts(report.path)
    #expect(found.contains("video Content light level metadata max_content=1000"), "\(found)")
    #expect(
      found.contains("video Mastering display metadata max_luminance=10000000/10000")
        || found.contains("video Mastering display metadata max_luminance=1000/1"), "\(found)")
    try await check(inTrack)
  }

  /// A movie in HLG with 10 bits, whose sample description claims Dolby Vision.
  private func dolbyVision() async throws -> Asset {
    let plain = try await make(
      "hlg.mp4",
      [
        "-i", plain().path, "-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le",
        "-color_primaries", "bt2020", "-color_trc", "arib-std-b67", "-colorspace", "bt2020nc",
        "-tag:v", "hvc1", "-x265-params",
        "log-level=none:colorprim=bt2020:transfer=arib-std-b67:colormatrix=bt2020nc",
      ])
    return try claimingDolbyVision(plain.path, directory.file("dolby.mp4"))
  }

  @Test func `Frames that are encoded again are not Dolby Vision`() async throws {
    let asset = try await dolbyVision()
    let track = try #require(asset.videoTrack)
    let dolby = try #require(track.dolbyVision)
    #expect((dolby.profile, dolby.level, dolby.compatibility) == (8, 4, 4))
    #expect(track.bitDepth == 10 && track.pixelFormat == PixelFormat(rawValue: "yuv420p10le"))
    #expect(track.colorPrimaries == "bt2020" && track.transferFunction == "arib-std-b67")
    #expect(track.yCbCrMatrix == "bt2020nc" && !track.isFullRange && (track.bitRate ?? 0) > 0)
    for (encoding, isPlayed) in [(VideoEncoding.h264(), false), (.hevc(), true)] {
      var settings = ExportSettings(
        path: directory.file("out.mp4"),
        mode: .constant(FrameRate(30), RenderSettings(encoding: encoding)))
      settings.overwrites = true
      let report = try await ExportSession(Composition(asset), of: asset).export(settings)
      #expect(report.lostMetadata == ["Dolby Vision configuration"])
      #expect(report.warnings.contains { $0.contains("High 10") } != isPlayed)
      let made = try #require(try Asset(path: report.path).videoTrack)
      #expect(made.dolbyVision == nil && made.transferFunction == "arib-std-b67")
    }
    // A copy keeps it if it has copied frames, and counts the frames that are encoded.
    var counts: [Int64] = []
    for (start, end) in [(0, 200), (0, 220), (0, 240), (100, 240)] as [(Int64, Int64)] {
      var settings = ExportSettings(path: directory.file("cut.mp4"), mode: .passthrough())
      settings.overwrites = true
      let cut = try composition(of: asset, [(start, end)])
      let report = try await ExportSession(cut, of: asset).export(settings)
      let made = try #require(try Asset(path: report.path).videoTrack)
      #expect(made.dolbyVision == (report.framesCopied > 0 ? dolby : nil))
      #expect(report.framesWithoutRPU == (report.framesCopied > 0 ? report.framesEncoded : 0))
      #expect(
        report.lostMetadata.contains("Dolby Vision configuration") == (report.framesCopied == 0))
      counts.append(report.framesCopied > 0 ? report.framesEncoded : -1)
    }
    #expect(counts.contains { $0 > 0 } && counts.last == -1, "\(counts)")
    var reader = try FrameReader(asset)
    var png = PNGWriter()
    let image = try png.data(of: 7, from: &reader)
    // Primaries of BT.2020, HLG, RGB, full range; the sum is that of Python's zlib.crc32.
    let chunk: [UInt8] = [0, 0, 0, 4] + Array("cICP".utf8) + [9, 18, 0, 1, 0x4E, 0xA7, 0xF7, 0x90]
    #expect(Array(image[33..<49]) == chunk)
    let pixels = try image.withUnsafeBytes {
      try DecodedImage(
        decoding: $0, codec: "png", width: track.width, height: track.height, bytesPerPixel: 3)
    }
    #expect(Set(pixels.bytes).count > 1)
    var copy = ExportSettings(path: directory.file("copy.mp4"), mode: .passthrough())
    copy.overwrites = true
    let report = try await ExportSession(Composition(asset), of: asset).export(copy)
    #expect(report.lostMetadata.isEmpty)
    #expect(try Asset(path: report.path).videoTrack?.dolbyVision == track.dolbyVision)
  }

  @Test func `Languages that MOV cannot store are reported as lost`() async throws {
    var recipe = MovieRecipe.constant(50, count: 10)
    recipe.container = "mp4"
    for (language, isKept) in [("fre", true), ("slo", true), ("swe", true), ("glg", false)] {
      recipe.language = language
      let asset = try Asset.made(recipe, in: directory, language)
      for container in ["mov", "mp4"] {
        var settings = ExportSettings(
          path: directory.file("out.\(container)"), mode: .passthrough())
        settings.overwrites = true
        let report = try await ExportSession(Composition(asset), of: asset).export(settings)
        let isNamed = report.lostMetadata == ["language=\(language)"]
        #expect(isNamed == (container == "mov" && !isKept))
        let found = try Asset(path: report.path).videoTrack?.format.metadata["language"]
        #expect((found == "und" || found == nil) == isNamed, "\(found ?? "none")")
      }
    }
  }

  @Test func `A constant-rate export names tracks that it drops`() async throws {
    let subtitled = try await make(
      "subtitled.mov",
      [
        "-i", plain().path, "-f", "srt", "-i", try subtitles(), "-c:v", "copy", "-c:s",
        "mov_text", "-timecode", "01:02:03:04",
      ])
    let report = try ExportSession(Composition(subtitled), of: subtitled)
      .plan(ExportSettings(path: directory.file("out.mov"), mode: .constant(FrameRate(30))))
    #expect(report.lostMetadata == ["subtitle track (mov_text)", "timecode track"])
  }

  private func subtitles() throws -> String {
    let path = directory.file("subtitles.srt")
    try "1\n00:00:00,100 --> 00:00:00,500\nsplash\n".write(
      toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  /// A movie of one second with three chapters.
  private func chaptered() async throws -> Asset {
    let list = directory.file("chapters.txt")
    let text = [(0, 300, "before"), (300, 600, "the hit"), (600, 1_000, "after")]
      .map { "[CHAPTER]\nTIMEBASE=1/1000\nSTART=\($0.0)\nEND=\($0.1)\ntitle=\($0.2)\n" }
      .joined()
    try (";FFMETADATA1\n" + text).write(toFile: list, atomically: true, encoding: .utf8)
    return try await make(
      "chapters.mov",
      ["-i", plain().path, "-f", "ffmetadata", "-i", list, "-map_chapters", "1", "-c", "copy"])
  }

  @Test func `Chapter times follow speed changes in every export mode`() async throws {
    let asset = try await chaptered()
    #expect(asset.chapters.map(\.title) == ["before", "the hit", "after"])
    // The composition plays the chapter “the hit” at a quarter of the speed, and later once more
    // from its middle.
    var composition = try asset.retimed([(range(300, 600), speed(1, 4))])
    try composition.insertTimeRange(
      range(450, 700), of: asset.mediaSource(), at: composition.duration)
    let expected: [(String, Int128, Int128)] = [
      ("before", 0, 300), ("the hit", 300, 1_500), ("after", 1_500, 1_900),
      ("the hit", 1_900, 2_050), ("after", 2_050, 2_150),
    ]
    for container in ["mov", "mp4"] {
      for mode in [ExportMode.passthrough(), .constant(FrameRate(30))] {
        var settings = ExportSettings(path: directory.file("out.\(container)"), mode: mode)
        settings.overwrites = true
        let report = try await ExportSession(composition, of: asset).export(settings)
        #expect(report.lostMetadata.isEmpty)
        let result = try Asset(path: report.path)
        #expect(result.chapters.map(\.title) == expected.map(\.0))
        #expect(result.chapters.map(\.start) == (expected.map { Rational($0.1, over: 1_000) }))
        #expect(result.chapters.map(\.end) == (expected.map { Rational($0.2, over: 1_000) }))
        // A second passthrough export keeps the chapters. The track with chapter titles does not
        // count as lost.
        settings.path = directory.file("again.\(container)")
        settings.mode = .passthrough()
        let again = try await ExportSession(Composition(result), of: result).export(settings)
        #expect(again.lostMetadata.isEmpty)
        #expect(try Asset(path: again.path).chapters.count == expected.count)
      }
    }
  }

  @Test func `Composition markers are added to the chapters of a movie`() async throws {
    let asset = try await chaptered()
    var composition = try asset.retimed([(range(300, 600), speed(1, 4))])
    // The first marker is the start of a chapter, the second is inside that chapter, and the last
    // one is after the end.
    composition.markers = try [("the hit", 300), ("mark1", 900), ("late", 5_000)].map {
      name, time in
      CompositionMarker(
        name, try TimeRange(start: .milliseconds(time), end: .milliseconds(time)))
    }
    for mode in [ExportMode.passthrough(), .constant(FrameRate(30))] {
      var settings = ExportSettings(path: directory.file("marked.mov"), mode: mode)
      settings.overwrites = true
      let report = try await ExportSession(composition, of: asset).export(settings)
      #expect(report.lostMetadata == ["marker late"])
      let result = try Asset(path: report.path)
      #expect(
        result.chapters.map { "\($0.title) \($0.start.doubleValue)..\($0.end.doubleValue)" }
          == ["before 0.0..0.3", "the hit 0.3..0.9", "mark1 0.9..1.5", "after 1.5..1.9"])
      let mark = try #require(result.marks.first { $0.name == "mark1" })
      #expect(mark.time == .milliseconds(900))
      #expect(mark.frameIndex == result.videoTrack?.frames.index(at: mark.time))
      #expect(try result.resolve(TimeExpression(parsing: "@mark1")) == mark.time)
    }
  }

  @Test func `An exported marker keeps its frame and capture time`() throws {
    let path = directory.file("source.mov")
    try MovieRecipe.constant(240, count: 100, timescale: 240_000).write(to: path)
    let asset = try Asset(path: path)
    var composition = try Composition(asset)
    // A 240th of a second is not a whole number of milliseconds.
    let time = MediaTime(37, over: 240)
    composition.markers = [CompositionMarker("hit", try TimeRange(start: time, end: time))]
    for container in ["mov", "mp4"] {
      let settings = ExportSettings(
        path: directory.file("marked.\(container)"), mode: .passthrough())
      let report = try ExportSession(composition, of: asset).export(settings)
      let result = try Asset(path: report.path)
      let mark = try #require(result.marks.first)
      #expect(mark.name == "hit" && mark.frameIndex == 37 && mark.time == time)
      #expect(mark.captureTime == result.captureTimes()[37])
    }
  }

  @Test func `Chapter times follow ramps and freeze frames and reversal`() async throws {
    let asset = try await chaptered()
    var composition = try Composition(asset)
    try composition.freezeFrame(at: .milliseconds(450), for: .milliseconds(1_000))
    var settings = ExportSettings(
      path: directory.file("out.mov"), mode: .constant(FrameRate(30)))
    settings.overwrites = true
    func chapters() throws -> [String] {
      let report = try ExportSession(composition, of: asset).export(settings)
      return try Asset(path: report.path).chapters.map {
        "\($0.title) \($0.start.doubleValue)..\($0.end.doubleValue)"
      }
    }
    #expect(try chapters() == ["before 0.0..0.3", "the hit 0.3..1.6", "after 1.6..2.0"])
    try composition.reverse(range(0, 2_000))
    #expect(try chapters() == ["after 0.0..0.4", "the hit 0.4..1.7", "before 1.7..2.0"])
    composition = try .ramped(
      asset.mediaSource(),
      points: [
        Composition.SpeedPoint(.milliseconds(300), .normal),
        Composition.SpeedPoint(.milliseconds(600), speed(1, 2)),
      ])
    // 0.3 s play at a mean speed of 3/4, and the rest plays at half speed.
    #expect(try chapters() == ["before 0.0..0.3", "the hit 0.3..0.7", "after 0.7..1.5"])
  }
}
