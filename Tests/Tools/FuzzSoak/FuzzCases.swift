// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAnalysis
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRecognition
import OvercrankRetiming
import TestSupport

/// Numbered test cases.
///
/// Each is a damaged input and the operations on it.
struct FuzzCases {
  struct Movie {
    let name: String
    let bytes: [UInt8]
    /// The range of the movie's bytes that contains most header fields.
    let index: Range<Int>
  }

  let directory: Scratch
  let movies: [Movie]
  /// The undamaged movies as assets.
  let assets: [Asset]
  /// An undamaged image to be drawn into frames.
  let logo: [UInt8]
  /// An undamaged movie with a time map.
  let mapped: [UInt8]
  private let project: String
  private let sidecar: String
  private let hasMistakes: Bool
  private let isForeign: Bool
  /// The frames with codes; nil if the cases are planted mistakes, none of which reads a code.
  private let codes: DamagedCodes?
  let streams: Streams

  /// Makes the undamaged inputs.
  ///
  /// With `planted`, a deliberately faulty reader is used. With `foreign`, all cases are those of
  /// ``foreignMovie(_:)``.
  init(planted hasMistakes: Bool, foreign isForeign: Bool) async throws {
    (self.hasMistakes, self.isForeign) = (hasMistakes, isForeign)
    codes = hasMistakes ? nil : try await DamagedCodes()
    directory = try Scratch()
    streams = try await Streams(in: directory)
    for (number, order) in ["0", "2"].enumerated() {
      try await FFmpeg.makeClip(
        directory.file("flags-\(number).mov"), frames: 8,
        ["-s", "64x48", "-c:v", "libx264", "-preset", "veryfast", "-g", "4", "-bf", order])
    }
    var movies: [Movie] = []
    var assets: [Asset] = []
    // Two movies are enough for cases that make deliberate mistakes.
    for (name, recipe) in Self.recipes().prefix(hasMistakes ? 2 : .max) {
      let path = directory.file("\(name).\(recipe.container)")
      try recipe.write(to: path)
      assets.append(try Asset(path: path))
      let bytes = try bytes(of: path)
      movies.append(
        Movie(name: "\(name).\(recipe.container)", bytes: bytes, index: Self.index(of: bytes)))
    }
    self.movies = movies
    self.assets = assets
    logo = try Self.logo(of: assets[0])
    mapped = hasMistakes ? [] : try Self.mappedMovie(assets[0], assets[1], in: directory)
    var composition = try Composition(assets[0])
    try composition.setSpeedRamp(
      SpeedRamp(from: .normal, to: Speed(Rational(1, over: 8)), easing: .easeInOut),
      in: TimeRange(start: MediaTime(microseconds: 100_000), end: MediaTime(microseconds: 200_000)))
    try composition.freezeFrame(at: MediaTime(microseconds: 50_000), for: MediaTime(seconds: 1))
    project = try OpenTimelineDocument(composition, name: "fuzz").text()
    sidecar = Self.sidecar
  }

  private static func recipes() -> [(String, MovieRecipe)] {
    var plain = MovieRecipe.constant(60, count: 24, timescale: 60_000)
    plain.audio = MovieRecipe.Audio()
    plain.audio?.sampleCount = 19_200
    plain.metadata = [
      "com.android.capture.fps": "240", "com.overcrank.recording": "{\"device\":1}",
    ]
    plain.language = "ger"
    plain.displayMatrix = [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30]
    var front = plain.h264(gop: 8, reordered: true)
    front.container = "mp4"
    front.hasIndexInFront = true
    var fragments = plain.h264(gop: 6, reordered: false)
    fragments.fragmentMicroseconds = 100_000
    var hevc = MovieRecipe.constant(60, count: 20)
    hevc.codec = "libx265"
    hevc.pixelFormat = .yuv420p
    hevc.keyFrameInterval = 10
    hevc.hasReorderedFrames = true
    hevc.options = ["preset": "ultrafast", "x265-params": "log-level=none:pools=1:frame-threads=1"]
    var ffv1 = MovieRecipe.constant(24, count: 8, timescale: 24)
    ffv1.codec = "ffv1"
    ffv1.pixelFormat = .yuv420p
    var late = plain.h264(gop: 12, reordered: true)
    late.times = late.times.map { $0 - 5_000 }
    late.end -= 5_000
    return [
      ("plain", plain), ("front", front), ("fragments", fragments), ("hevc", hevc),
      ("ffv1", ffv1), ("late", late),
    ]
  }

  private static func index(of bytes: [UInt8]) -> Range<Int> {
    let name = Array("moov".utf8)
    let start = (0..<max(0, bytes.count - 4)).last { Array(bytes[$0..<$0 + 4]) == name } ?? 0
    return start..<min(bytes.count, start + 4_096)
  }

  private static let sidecar = """
    <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>
    <key>adjustmentFormatIdentifier</key><string>com.apple.video.slomo</string>
    <key>adjustmentData</key><dict><key>slowMotion</key><dict><key>rate</key><real>0.125</real>
    <key>regions</key><array><dict><key>timeRange</key><dict><key>start</key><dict>
    <key>value</key><integer>100</integer><key>timescale</key><integer>600</integer></dict>
    <key>duration</key><dict><key>value</key><integer>90</integer><key>timescale</key>
    <integer>600</integer></dict></dict></dict></array></dict></dict></dict></plist>
    """

  /// Runs a case and describes its outcome.
  func outcome(of number: UInt64) async throws -> String {
    var random = SeededGenerator(seed: number &* 31 &+ 7)
    let kind = Int.random(in: 0..<10, using: &random)
    do {
      if hasMistakes, let mistake = PlantedMistakes.Kind(of: number) {
        return try await outcome(of: mistake, &random)
      }
      if isForeign { return try await foreignMovie(&random) }
      // Only every ninth case searches for codes, so that the inputs of the other cases stay the
      // same.
      if let codes, number % 9 == 8 { return try codes.outcome(&random) }
      // Every eleventh case opens a movie with a damaged saved index.
      if number % 11 == 6, !hasMistakes { return try damagedIndex(&random) }
      // Every thirteenth case exports or joins a damaged movie.
      if number % 13 == 4, !hasMistakes { return try damagedSource(&random) }
      // Every seventeenth case measures or exports a movie with a damaged time map.
      if number % 17 == 11, !hasMistakes { return try await damagedTimeMap(&random) }
      // Another case of each seventeen reads joined streams, flags and durations of other programs.
      if number % 17 == 3, !hasMistakes { return try await foreignMovie(&random) }
      // Every nineteenth case cuts an HEVC movie with damaged parameter sets or slices.
      if number % 19 == 5, !hasMistakes { return try await damagedUnits(&random) }
      // Every seventh case reads an input that was made to crash a program.
      if number % 7 == 2, !hasMistakes { return try hostile(&random) }
      switch kind {
      case 0..<5: return try await damagedMovie(&random)
      case 5, 6: return try await damagedProject(&random)
      case 7: return try await damagedMarkers(&random)
      default: return try await wildPlan(&random)
      }
    } catch let error {
      return error is MediaError
        ? "\(type(of: error)): \(error)" : "FOREIGN \(type(of: error)): \(error)"
    }
  }

  private func damagedMovie(_ random: inout SeededGenerator) async throws -> String {
    let movie = movies[Int.random(in: 0..<movies.count, using: &random)]
    var mutation = Mutation(random: random)
    let bytes = mutation.movie(movie.bytes, index: movie.index)
    let path = try directory.write(bytes, as: "d-\(movie.name)")
    random = mutation.random
    if hasMistakes { return "\(try PlantedMistakes.boxCount(in: bytes[...])) boxes" }
    let asset = try Asset(path: path)
    _ = asset.frameTimingRows()
    try audit(asset, &random)
    if let frames = asset.videoTrack?.frames {
      var reader = try FrameReader(asset)
      for _ in 0..<3 {
        let index = Int.random(in: 0..<frames.entries.count, using: &random)
        // A frame may be unreadable, but later frames may be readable.
        do throws(MediaError) { _ = try reader.mediaFrame(at: index) } catch { continue }
      }
    }
    if Int.random(in: 0..<3, using: &random) == 0 {
      return try "\(movie.name) " + measure(asset, beside: assets[0], &random)
    }
    try play(Composition(asset), asset, &random)
    return try await "\(movie.name) " + exports(Composition(asset), asset, &random)
  }

  /// Removes a part of an HEVC movie whose parameter sets, or the first bytes of whose slices, are damaged.
  private func damagedUnits(_ random: inout SeededGenerator) async throws -> String {
    guard let number = movies.firstIndex(where: { $0.name.hasPrefix("hevc") }) else { return "" }
    let movie = movies[number]
    var bytes = movie.bytes
    let name = Array("hvcC".utf8)
    let sets = movie.index.dropLast(4).first { Array(bytes[$0..<$0 + 4]) == name } ?? 0
    let slices = PacketLayout(assets[number])?.locations.map { Int($0.position) } ?? []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let slice = slices.randomElement(using: &random) ?? sets
      let range = Bool.random(using: &random) ? sets + 4..<sets + 130 : slice..<slice + 12
      let position = Int.random(in: range, using: &random)
      if Bool.random(using: &random) {
        bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      } else {
        bytes[position] =
          [0, 255, .random(in: 0...255, using: &random)]
          .randomElement(using: &random) ?? 0
      }
    }
    let asset = try Asset(path: directory.write(bytes, as: "u-\(movie.name)"))
    var composition = try Composition(asset)
    let cuts = try (0..<2).map { _ in
      try MediaTime(
        composition.duration.seconds * Rational(.random(in: 0...20, using: &random), over: 20))
    }
    if let part = try? TimeRange(start: cuts.min() ?? .zero, end: cuts.max() ?? .zero) {
      try? composition.removeTimeRange(part)
    }
    return try await "\(movie.name) units " + exports(composition, asset, &random)
  }

  /// Audits a movie, with or without its images, and draws the chart.
  private func audit(_ asset: Asset, _ random: inout SeededGenerator) throws {
    guard let frames = asset.videoTrack?.frames else { return }
    let rate = [nil, 60, 240, FrameRate(60_000, over: 1_001)].randomElement(using: &random) ?? nil
    let audit = try TimingAudit(
      of: asset, expecting: rate, comparesImages: Int.random(in: 0..<4, using: &random) == 0)
    let chart = TimingChart(audit, frames: frames, title: asset.path)
    guard audit.frameCount == frames.entries.count, chart.svg().hasSuffix("</svg>\n") else {
      throw WrongPlayback(description: "an audit of \(audit.frameCount) frames")
    }
  }

  private func damagedProject(_ random: inout SeededGenerator) async throws -> String {
    var mutation = Mutation(random: random)
    let text = mutation.text(project)
    random = mutation.random
    let read = try OpenTimelineDocument(parsing: text) { (_) throws(MediaError) in
      try assets[0].mediaSource()
    }
    _ = try OpenTimelineDocument(read.composition, name: "again").text()
    return try await "project " + exports(read.composition, assets[0], &random)
  }

  private func damagedMarkers(_ random: inout SeededGenerator) async throws -> String {
    var mutation = Mutation(random: random)
    let media = try assets[0].mediaSource()
    let markers: SlowMotionMarkers
    if Bool.random(using: &mutation.random) {
      markers = try SlowMotionMarkers(aae: mutation.text(sidecar))
    } else {
      let length = Int.random(in: 0..<80, using: &mutation.random)
      var bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &mutation.random) }
      // Some Android markers get a plausible entry count.
      if length > 8 { bytes.replaceSubrange(4..<8, with: [0, 0, 0, UInt8((length - 8) / 12)]) }
      markers = try SlowMotionMarkers(android: bytes, duration: media.duration)
    }
    random = mutation.random
    return try await "markers " + exports(markers.composition(of: media), assets[0], &random)
  }

  /// Applies edits with extreme numbers to a composition.
  private func wildPlan(_ random: inout SeededGenerator) async throws -> String {
    let position = Int.random(in: 0..<assets.count, using: &random)
    let asset = assets[position]
    var composition = try Composition(asset)
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      do {
        try composition.edit { edited in
          switch Int.random(in: 0..<7, using: &random) {
          case 0:
            try edited.insertTimeRange(
              range(asset.duration, &random), of: asset.mediaSource(), at: time(edited, &random))
          case 1: try edited.removeTimeRange(range(edited.duration, &random))
          case 2:
            try edited.scaleTimeRange(
              range(edited.duration, &random), toDuration: time(edited, &random))
          case 3:
            try edited.setSpeedRamp(
              SpeedRamp(from: speed(&random), to: speed(&random), easing: .linear),
              in: range(edited.duration, &random))
          case 4: try edited.freezeFrame(at: time(edited, &random), for: time(edited, &random))
          case 5: try edited.reverse(range(edited.duration, &random))
          default: try edited.insertEmptyTimeRange(range(edited.duration, &random))
          }
        }
      } catch is MediaError {}
    }
    try composition.validateSegments()
    try play(composition, asset, &random)
    return try await "plan " + exports(composition, asset, &random)
  }

  private func time(
    _ composition: Composition, _ random: inout SeededGenerator
  ) throws -> MediaTime {
    switch Int.random(in: 0..<6, using: &random) {
    case 0:
      return MediaTime(
        .random(in: .min...Int64.max, using: &random),
        over: .random(in: 1...Int32.max, using: &random))
    case 1: return MediaTime(.random(in: -3...3, using: &random), over: 1_000_000)
    case 2: return MediaTime(.random(in: 0...100, using: &random), over: .max)
    default:
      let scale = Int32.random(in: 1...100_000, using: &random)
      return MediaTime(
        .random(in: 0...Int64(scale), using: &random), over: scale)
    }
  }

  private func range(_ end: MediaTime, _ random: inout SeededGenerator) throws -> TimeRange {
    let times = try [0, 1].map { _ in
      let part = Rational(Int64.random(in: 0...997, using: &random))
      return try MediaTime(end.seconds * part / Rational(997))
    }
    return try TimeRange(start: times[0], end: times[1])
  }

  private func speed(_ random: inout SeededGenerator) throws -> Speed {
    try Speed(
      Rational(
        Int128(Int64.random(in: 1...1_000_000, using: &random)),
        over: Int128(Int64.random(in: 1...1_000_000, using: &random))))
  }

  /// Plans both kinds of export, and starts one of them.
  func exports(
    _ composition: Composition, _ asset: Asset, _ random: inout SeededGenerator
  ) async throws -> String {
    let session = try ExportSession(composition, of: [asset])
    let container = Bool.random(using: &random) ? "mov" : "mp4"
    var settings = ExportSettings(path: directory.file("out.\(container)"), mode: .passthrough())
    settings.overwrites = true
    settings.mode = .passthrough(
      boundary: CutPolicy.allCases.randomElement(using: &random) ?? .auto)
    settings.audioTimePitchAlgorithm = [.varispeed, .mute].randomElement(using: &random) ?? .mute
    if Int.random(in: 0..<4, using: &random) == 0 {
      var rendering = RenderSettings(encoding: .mjpeg)
      rendering.removesFlicker = Bool.random(using: &random)
      if Bool.random(using: &random) {
        rendering.burnIn = try burnIn(time(composition, &random), &random)
      }
      if Int.random(in: 0..<3, using: &random) == 0 {
        let isGIF = Bool.random(using: &random)
        settings.path = directory.file(isGIF ? "out.gif" : "out.webp")
        rendering.encoding = isGIF ? .gif : .webp(quality: .random(in: -1...101, using: &random))
        if Bool.random(using: &random) {
          settings.fileLengthLimit = .random(in: -1...40_000, using: &random)
        }
      }
      settings.mode = .constant(30, rendering)
    } else if Int.random(in: 0..<6, using: &random) == 0 {
      settings.mode = .constant(
        30, RenderSettings(encoding: .h264(EncoderSettings(preset: "ultrafast"))))
      settings.fileLengthLimit = .random(in: -1...40_000, using: &random)
    }
    // An export may last for years, so it is cancelled after 300 progress checks.
    var asked = 0
    let report: ExportReport
    do throws(MediaError) {
      report = try session.export(
        settings,
        isCancelled: {
          asked += 1
          return asked > 300
        })
    } catch {
      guard error.code != .cancelled else { return "cancelled" }
      throw error
    }
    // A GIF or WebP file is not a movie and has no movie index.
    guard !report.path.hasSuffix(".gif"), !report.path.hasSuffix(".webp") else {
      return "exported \(report.framesEncoded) frames of an image"
    }
    let result = try Asset(path: report.path)
    if settings.mode.isPassthrough, assets.contains(where: { $0.path == asset.path }),
      report.framesEncoded == 0, report.framesCopied > 0
    {
      try await judge(report.path, report.framesCopied, asset)
    }
    return "exported \(result.duration.doubleValue) s"
  }

  /// Checks a passthrough export of a whole movie.
  ///
  /// `ffmpeg` must decode only frames of the source, and at least as many as were copied.
  private func judge(_ copy: String, _ copiedCount: Int64, _ asset: Asset) async throws {
    let source = try await CopyJudge.frames(
      of: asset.path, countsHidden: true, ignoresEdits: true)
    let known = Set(source.map(\.hash))
    let shown = try await CopyJudge.frames(of: copy, countsHidden: true)
    let others = shown.count { !known.contains($0.hash) }
    guard others == 0, Int64(shown.count) >= copiedCount else {
      throw WrongCopy(
        description: "\(shown.count) frames for \(copiedCount), \(others) of them broken")
    }
  }

  /// Makes a deliberate mistake that the case must report.
  private func outcome(
    of mistake: PlantedMistakes.Kind, _ random: inout SeededGenerator
  ) async throws -> String {
    switch mistake {
    case .skippedPacket:
      let asset = assets[0]
      let copy = directory.file("skipped.mov")
      try await PlantedMistakes.copy(asset.path, to: copy, skipping: 5)
      try await judge(copy, Int64(asset.videoTrack?.frameCount ?? 0), asset)
      return "copied"
    case .unescapedTitle:
      try check("hit\u{1B}[2J", shownAs: Array("hit\u{1B}[2J".utf8))
      return "shown"
    case .uncheckedConversion:
      let degrees = Double.random(in: 120...180, using: &random)
      return "\(PlantedMistakes.nanoseconds(ofDegrees: degrees))"
    }
  }
}

/// The error for an export whose frames differ in another decoder.
struct WrongCopy: Error, CustomStringConvertible {
  let description: String
}
