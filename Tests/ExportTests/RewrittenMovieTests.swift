// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankMediaCore
import TestSupport
import Testing

/// Movies with a time map that another program rewrote.
///
/// Times are right, or refused, or rest on an assumption that is named; never wrong without a word.
struct RewrittenMovieTests {
  private static let rate: Int64 = 240
  private static let frameCount: Int64 = 96
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  /// A rewrite, by the options of ffmpeg, and what may be expected of its times.
  enum Rewrite: String, CaseIterable {
    case copy, copyToMP4, keepsTags, withoutMetadata, start, duration, timestamps, faster, reencoded
    case matroska, joined

    /// The options before and after the input.
    var options: (before: [String], after: [String]) {
      switch self {
      case .copy, .copyToMP4: ([], ["-c", "copy"])
      case .keepsTags: ([], ["-c", "copy", "-movflags", "use_metadata_tags"])
      case .withoutMetadata: ([], ["-c", "copy", "-map_metadata", "-1"])
      case .start: (["-ss", "0.1"], ["-c", "copy"])
      case .duration: ([], ["-c", "copy", "-t", "0.4"])
      case .timestamps: ([], ["-c", "copy", "-bsf:v", "setts=ts=TS*2"])
      case .faster: (["-itsscale", "0.5"], ["-c", "copy"])
      case .reencoded: ([], ["-c:v", "mpeg4", "-r", "30"])
      case .matroska: ([], ["-c", "copy"])
      case .joined: (["-f", "concat", "-safe", "0"], ["-c", "copy"])
      }
    }

    var fileName: String {
      switch self {
      case .matroska: "out.mkv"
      case .copyToMP4, .reencoded: "out.mp4"
      default: "out.mov"
      }
    }
  }

  /// How a movie was made from the source.
  enum Export: String, CaseIterable {
    case slow, part, rendered, trimmed
  }

  private func movie(_ export: Export, hasJitter: Bool) throws -> (asset: Asset, times: [Int64]) {
    var random = SeededGenerator(seed: 4)
    var recipe = MovieRecipe.constant(Self.rate, count: Self.frameCount).h264(
      gop: 8, reordered: false)
    if hasJitter {
      recipe.times = recipe.times.map { $0 == 0 ? 0 : $0 + .random(in: -700...700, using: &random) }
    }
    recipe.metadata = [
      "com.overcrank.recording":
        #"{"version":1,"device":"cam","mode":"m","first_capture_ns":5000000000,"first_sequence":1,"#
        + #""gaps":[]}"#,
      "com.overcrank.capture_frame_rate": "240/1",
    ]
    let source = try Asset.made(recipe, in: directory, "take")
    let composition =
      switch export {
      case .slow, .rendered:
        try source.retimed([(TimeRange(start: .zero, end: source.duration), try speed(1, 8))])
      case .part: try source.retimed([(try range(100, 300), try speed(1, 8))])
      case .trimmed:
        try Composition(source).trimmed(to: [range(100, 300)], of: source.mediaSource())
      }
    var settings = ExportSettings(
      path: directory.file("made.mov"),
      mode: export == .rendered
        ? .constant(FrameRate(30), RenderSettings(encoding: .mjpeg)) : .passthrough())
    settings.overwrites = true
    try ExportSession(composition, of: source).export(settings)
    return (try Asset(path: settings.path), recipe.times)
  }

  @Test(
    .enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"),
    arguments: Rewrite.allCases, Export.allCases)
  func `Rewritten movies give no wrong time without a word`(
    rewrite: Rewrite, export: Export
  ) async throws {
    for hasJitter in [false, true] {
      let (made, times) = try movie(export, hasJitter: hasJitter)
      var input = made.path
      if rewrite == .joined {
        input = try directory.write(
          Array("file '\(made.path)'\nfile '\(made.path)'\n".utf8), as: "list.txt")
      }
      let path = directory.file(rewrite.fileName)
      let options = rewrite.options
      try await FFmpeg.make(path, options.before + ["-i", input] + options.after)
      let asset = try Asset(path: path)
      let clock: CaptureClock
      do throws(MediaError) { clock = try asset.captureClock() } catch {
        #expect(error.code == .unknownCaptureTime)
        // A plain copy of a short map needs no refusal.
        let isPlain = [.copy, .copyToMP4, .keepsTags].contains(rewrite)
        #expect(!isPlain || hasJitter, "\(error.message)")
        // The way out that the error names.
        #expect(try asset.captureClock(.file).source == .file)
        #expect(try asset.captureClock(captureFrameRate: FrameRate(240)).source == .option)
        continue
      }
      guard clock.source != .file else {
        #expect(clock.assumption == .fileTimesAreReal)
        continue
      }
      for (index, number) in try asset.numbers().enumerated() {
        let number = try #require(number)
        let content = clock.map.frames[index].content
        guard content == .genuine else { continue }
        #expect(
          clock.map.captureTime(ofFrame: index)
            == MediaTime(microseconds: 5_000_000 + times[number]),
          "frame \(index) of \(path)")
      }
    }
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `Another program keeps the times of a slow movie`() async throws {
    for hasJitter in [false, true] {
      let (made, _) = try movie(.slow, hasJitter: hasJitter)
      let path = directory.file("copied.mp4")
      try await FFmpeg.make(path, ["-i", made.path, "-c", "copy"])
      let copy = try Asset(path: path)
      let (own, known) = (try copy.captureClock(), try made.captureClock())
      #expect(own.source == .map)
      #expect(own.timeScale == Rational(1, over: 8))
      for index in known.map.frames.indices {
        #expect(own.seconds(ofFrame: index) == known.seconds(ofFrame: index))
      }
    }
  }
}
