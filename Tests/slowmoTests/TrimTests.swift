// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// The option `--trim` of `retime`, checked by the numbers painted in frames.
struct TrimTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  enum Kind: String, CaseIterable { case mjpeg, plain, reordered, openGOP, hevc }

  /// A movie of two seconds at 100 fps, in H.264 with a key frame every 0.2 s, or in HEVC every 0.8
  /// s.
  private func source(_ kind: Kind, hasAudio: Bool = true) throws -> String {
    var recipe = MovieRecipe.constant(100, count: 200)
    switch kind {
    case .mjpeg: break
    case .plain: recipe = recipe.h264(gop: 20, reordered: false)
    case .reordered: recipe = recipe.h264(gop: 20, reordered: true)
    case .openGOP:
      recipe = recipe.h264(
        gop: 20, reordered: true,
        options: ["x264-params": "bframes=2:b-adapt=0:b-pyramid=none:ref=2:open-gop=1"])
    case .hevc:
      recipe.codec = "libx265"
      recipe.pixelFormat = .yuv420p
      recipe.keyFrameInterval = 80
      recipe.hasReorderedFrames = true
      recipe.options = [
        "preset": "ultrafast", "crf": "12",
        "x265-params": "log-level=none:open-gop=0:bframes=2:b-adapt=0:min-keyint=80:scenecut=0",
      ]
    }
    if hasAudio {
      var audio = MovieRecipe.Audio()
      audio.codec = "pcm_s16le"
      audio.sampleCount = 96_000
      audio.clicks = Array(stride(from: 0, to: 96_000, by: 4_800))
      recipe.audio = audio
    }
    let path = scratch.file("\(kind.rawValue).mov")
    try recipe.write(to: path)
    return path
  }

  /// The numbers painted in the visible frames of a movie.
  ///
  /// Frames that are shown for one tick do not count as visible.
  private func numbers(_ asset: Asset) throws -> [Int?] {
    let frames = try #require(asset.videoTrack).frames
    var reader = try FrameReader(asset)
    return try frames.entries.indices.filter { frames.entries[$0].duration > 1 }
      .map { PaintedBlocks.number(in: try reader.mediaFrame(at: $0)) }
  }

  private func times(_ asset: Asset) throws -> [Rational] {
    let frames = try #require(asset.videoTrack).frames
    return try frames.entries.indices.filter { frames.entries[$0].duration > 1 }
      .map { try frames.time(ofFrame: Int64($0)).seconds }
  }

  /// Retimes a movie, and by default checks that the plan of a dry run matches the report.
  private func retimed(
    _ source: String, checksPlan: Bool = true, _ options: String...
  ) async throws -> Asset {
    try await retimed(source, checksPlan: checksPlan, options)
  }

  private func retimed(
    _ source: String, checksPlan: Bool = true, _ options: [String]
  ) async throws -> Asset {
    let output = scratch.file("out.mov")
    let arguments = ["retime", source, "-o", output, "-y", "--json"] + options
    let finished = try await run(slowmoPath, arguments)
    try #require(finished.status == 0, "\(finished.output)")
    let report = try finished.document()
    #expect(report["av_end_difference_ns"] as? Int ?? 0 == 0)
    if checksPlan {
      let plan = try await run(slowmoPath, arguments + ["--dry-run"]).document()
      #expect(plan["plan"] as? NSArray == report["plan"] as? NSArray)
      #expect(plan["cuts"] as? NSArray == report["cuts"] as? NSArray)
      #expect(plan["duration_ns"] as? Int == report["duration_ns"] as? Int)
    }
    return try Asset(path: output)
  }

  /// Time ranges as text, and the frames that begin in each.
  private static let ranges: [(text: String, frames: Range<Int>)] = [
    ("40f..120f", 40..<120), ("45f..113f", 45..<113), ("0f..1f", 0..<1), ("1f..2f", 1..<2),
    ("199f..end", 199..<200), ("-20f..-10f", 180..<190), ("100f+7f", 100..<107),
    ("0.5+0.25", 50..<75), ("-1.5s..1", 50..<100), ("start..2", 0..<200), ("..119f", 0..<119),
  ]

  @Test(arguments: Kind.allCases)
  func `Trimming keeps exactly the frames and audio of a range`(kind: Kind) async throws {
    let source = try source(kind)
    for (text, frames) in Self.ranges {
      // At a cut between key frames, more frames are kept or some frames are encoded.
      let trimmed = try await retimed(source, checksPlan: false, "--trim", text, "--copy")
      #expect(try numbers(trimmed) == frames.map { $0 }, "\(kind) \(text)")
      #expect(
        try times(trimmed) == (0..<frames.count).map { Rational(Int128($0), over: 100) },
        "\(kind) \(text)")
      #expect(trimmed.duration == MediaTime(microseconds: Int64(frames.count) * 10_000))
      #expect(trimmed.audioTrack?.sampleCount == Int64(frames.count) * 480)
    }
    let rendered = try await retimed(source, "--trim", "45f..113f", "--fps", "100")
    #expect(try numbers(rendered) == Array(45..<113))
    #expect(rendered.audioTrack?.sampleCount == 32640)
  }

  @Test(arguments: ["squeeze", "render"])
  func `The policies squeeze and render trim to the same frames`(boundary: String) async throws {
    let source = try source(.reordered, hasAudio: false)
    for (text, frames) in Self.ranges {
      let trimmed = try await retimed(
        source, checksPlan: false, "--trim", text, "--copy", "--boundary", boundary)
      #expect(try numbers(trimmed) == frames.map { $0 }, "\(text)")
      #expect(trimmed.audioTrack == nil)
    }
    let refused = try await slowmo(
      "retime", source, "-o", scratch.file("k.mov"), "--trim", "45f..113f", "--copy",
      "--boundary", "keyframe")
    #expect(refused.status == 65)
    #expect(refused.errors.contains("cut at 0.4 s or 0.6 s"), "\(refused.errors)")
  }

  @Test func `Passthrough export reverses only intra-frame video`() async throws {
    let plain = try source(.plain)
    let half = ["--trim", "45f..113f", "--speed", "-1/2"]
    let rendered = try await retimed(plain, half + ["--fps", "50", "--pitch", "varispeed"])
    #expect(try numbers(rendered) == (45..<113).reversed())
    let track = try #require(rendered.audioTrack)
    #expect(track.sampleCount == 2 * 68 * 480)
    let refused = try await run(
      slowmoPath, ["retime", plain, "-o", scratch.file("no.mov"), "--copy"] + half)
    #expect(refused.status == 65)
    #expect(refused.errors.contains("backwards from 1.13 to 0.45 s"), "\(refused.errors)")
    let copied = try await retimed(try source(.mjpeg), half + ["--copy"])
    #expect(try numbers(copied) == (45..<113).reversed())
  }

  @Test func `Audio is trimmed at the same position as video`() async throws {
    let trimmed = try await retimed(try source(.plain), "--trim", "45f..113f", "--copy")
    let track = try #require(trimmed.audioTrack)
    var reader = try AudioReader(trimmed)
    let samples = try reader.samples(from: 0, count: Int(track.sampleCount))[0]
    let clicks = samples.indices.filter {
      samples[$0] > 0.5 && ($0 == 0 || samples[$0 - 1] < 0.5)
    }
    // The audio clicks every 0.1 s of the source, and the trim starts at 0.45 s.
    #expect(clicks == (5...11).map { $0 * 4_800 - 21_600 })
  }

  @Test func `A speed range across the edge of a trim is shortened`() async throws {
    let source = try source(.plain)
    let inside = try await retimed(
      source, "--trim", "0.5..1.5", "--range", "100f..120f", "--speed", "1/2", "--copy", "--pitch",
      "varispeed")
    #expect(try numbers(inside) == Array(50..<150))
    let wanted = (50..<150).map { frame in
      frame < 100 ? frame - 50 : frame < 120 ? frame * 2 - 150 : frame - 30
    }
    #expect(try times(inside) == wanted.map { Rational(Int128($0), over: 100) })
    #expect(inside.audioTrack?.sampleCount == 57600)
    let across = try await retimed(
      source, "--trim", "0.5..1.5", "--range", "0.4..0.6", "--speed", "1/2", "--range", "1.4..end",
      "--speed", "2", "--copy", "--pitch", "mute")
    #expect(try numbers(across) == Array(50..<150))
    #expect(across.duration == MediaTime(microseconds: 200_000 + 800_000 + 50_000))
    let all = try await retimed(source, "--trim", "0.5..1.5", "--speed", "1/4", "--fps", "25")
    #expect(try numbers(all) == Array(50..<150))
    let conformed = try await retimed(
      source, "--trim", "50f..150f", "--playback-fps", "25", "--copy", "--pitch", "mute")
    #expect(try numbers(conformed) == Array(50..<150))
    #expect(try times(conformed) == (0..<100).map { Rational($0, over: 25) })
  }

  @Test(arguments: [
    ["--ramp", "0.2=1 0.8=1/8 1.2=1/8 1.8=2"],
    ["--ramp", "0.2=1 0.8=1/7 1.2=1/7 1.8=2", "--easing", "eased"],
    ["--preset", "impact", "--at", "1"], ["--preset", "landing", "--at", "1.3"],
    ["--preset", "pulse", "--at", "100f", "--speed", "1/5", "--width", "300ms"],
    ["--preset", "freeze", "--at", "1.2", "--width", "500ms"],
  ])
  func `Trimming inside a speed ramp keeps exactly the chosen frames`(
    options: [String]
  ) async throws {
    for kind in [Kind.mjpeg, .reordered] {
      let source = try source(kind)
      for (text, frames) in [("50f..150f", 50..<150), ("33f..142f", 33..<142)] {
        let output = scratch.file("out.mov")
        let finished = try await run(
          slowmoPath,
          ["retime", source, "-o", output, "-y", "--copy", "--pitch", "varispeed", "--trim", text]
            + options)
        try #require(finished.status == 0, "\(finished.errors)")
        #expect(try numbers(Asset(path: output)) == frames.map { $0 }, "\(kind) \(text) \(options)")
      }
    }
  }

  @Test func `Several --trim ranges export the same frames as a project`() async throws {
    let source = try source(.reordered)
    let joined = try await retimed(
      source, "--trim", "120f..143f", "--trim", "20f..31f", "--trim", "31f..40f", "--copy")
    let wanted = Array(120..<143) + Array(20..<40)
    #expect(try numbers(joined) == wanted)
    #expect(joined.audioTrack?.sampleCount == 20640)
    let project = scratch.file("parts.otio")
    for arguments in [
      ["retime", source, "-o", project, "--trim", "120f..143f", "--trim", "20f..40f"],
      ["edit", project, "-o", scratch.file("edited.mov"), "--copy"],
    ] {
      let finished = try await run(slowmoPath, arguments)
      try #require(finished.status == 0, "\(finished.errors)")
    }
    #expect(try numbers(Asset(path: scratch.file("edited.mov"))) == wanted)
  }

  @Test func `Invalid trims are rejected and write no file`() async throws {
    let source = try source(.mjpeg)
    let cases: [(options: [String], status: Int32, message: String)] = [
      (["--trim", "1..3"], 64, "the range 1..3 is not inside \(source), which ends at 2 s"),
      (["--trim", "0f..201f"], 64, "frame 201 in a source of 200 frames is after the end"),
      (["--trim", "1..1"], 64, "it is empty"),
      (
        ["--trim", "0..1", "--trim", "0.5..2"], 64,
        "the ranges 0..1 and 0.5..2 of \(source) overlap"
      ),
      (
        ["--trim", "0..1", "--range", "1..2", "--speed", "1/2"], 64,
        "--range 1..2 is outside the range of --trim"
      ),
      (
        ["--trim", "0..1", "--preset", "impact", "--at", "1"], 64,
        "--at 1 is outside the range of --trim"
      ),
      (
        ["--preset", "freeze", "--at", "1", "--speed", "1/2"], 64,
        "--preset freeze excludes --speed: set its duration with --width"
      ),
      (["--preset", "impact", "--at", "1", "--width", "0"], 64, "0"),
      (["--width", "1", "--trim", "0..1"], 64, "--width needs --preset"),
      (
        ["--preset", "impact", "--at", "1", "--speed", "1/2", "--speed", "1/4"], 64,
        "--preset takes at most one --speed, and no --range"
      ),
      ([], 64, "no change requested: use --speed, such as --speed 1/8, or --trim"),
    ]
    for (options, status, message) in cases {
      let finished = try await run(
        slowmoPath, ["retime", source, "-o", scratch.file("no.mov"), "--copy"] + options)
      #expect(finished.status == status, "\(options): \(finished.errors)")
      #expect(finished.errors.contains(message), "\(options): \(finished.errors)")
      #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
    }
    #expect(try scratch.names() == ["mjpeg.mov"])
    // A trim that ends with the source includes the freeze frame at the end of the source.
    let held = try await retimed(
      source, "--trim", "1..end", "--preset", "freeze", "--at", "end", "--copy", "--pitch", "mute")
    #expect(try numbers(held) == Array(100..<200))
    #expect(held.duration == MediaTime(seconds: 2))
  }

  @Test func `A speed preset uses the given speed and duration`() async throws {
    let source = try source(.mjpeg)
    // Around the given time, 0.6 s play at 1/4 speed: a third before and two thirds after. A ramp
    // of 0.3 s is on each side.
    let plan = try await slowmo(
      "retime", source, "-o", "no.mov", "--preset", "impact", "--at", "1", "--speed", "1/4",
      "--width", "600ms", "--copy", "--dry-run", "--json"
    ).document()
    let segments = try #require(plan["plan"] as? [[String: Any]])
    let sources = segments.map { segment in
      let source = segment["source"] as? [String: String]
      return "\(source?["start"] ?? "") \(source?["end"] ?? "") \(segment["speed"] ?? "")"
    }
    #expect(
      sources == [
        "0/1 1/2 1/1", "1/2 4/5 5/8", "4/5 7/5 1/4", "7/5 17/10 5/8", "17/10 2/1 1/1",
      ])
  }
}
