// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Random edits of sources of many kinds and rates, exported by passthrough.
///
/// FFmpeg decodes each export. Its frames and their times are compared with a slow model that does
/// not know packets.
@Suite(.enabled(if: FFmpeg.isInstalled))
struct ExactnessTests {
  /// The only edit to run, for debugging: `OVERCRANK_PLAN=935`.
  private static let chosen = ProcessInfo.processInfo.environment["OVERCRANK_PLAN"]
    .flatMap { UInt64($0) }
  private static let firstPlan = chosen ?? 0
  /// The number of random edits: all with `Tests/run.sh --full`, otherwise the first of them.
  private static let planCount: UInt64 =
    chosen != nil
    ? 1 : UInt64(RunSize.cases(50, full: 1_000))

  @Test("Random passthrough exports show frames at exact times")
  func randomPlans() async throws {
    let sources = try await Source.all()
    // One edit per processor runs at a time, since most of the time is spent in starting ffmpeg.
    let outcomes = try await withThrowingTaskGroup(of: Outcome.self) { group in
      var next = Self.firstPlan
      var outcomes: [Outcome] = []
      func start() {
        guard next < Self.firstPlan + Self.planCount else { return }
        let seed = next
        next += 1
        group.addTask { try await Plan(seed: seed, sources).outcome() }
      }
      for _ in 0..<3 { start() }
      while let outcome = try await group.next() {
        outcomes.append(outcome)
        start()
      }
      return outcomes
    }
    let wrong = outcomes.filter { !$0.complaints.isEmpty }
    #expect(wrong.isEmpty, "\(wrong.count) of \(outcomes.count): \(wrong.prefix(3))")
    guard Self.chosen == nil else { return }
    // Each refusal has a reason, and few edits are refused.
    #expect(outcomes.count { $0.isRefused } * 5 <= outcomes.count)
    #expect(outcomes.contains { $0.encodedCount > 0 } && outcomes.contains { $0.hiddenCount > 0 })
    #expect(outcomes.contains { $0.isExact } && outcomes.contains { !$0.isExact && !$0.isRefused })
  }
}

/// The result of one random edit.
private struct Outcome: Sendable, CustomStringConvertible {
  let seed: UInt64
  let name: String
  var complaints: [String] = []
  var isRefused = false
  var isExact = false
  var encodedCount: Int64 = 0
  var hiddenCount: Int64 = 0

  var description: String { "plan \(seed) of \(name): \(complaints.prefix(4))" }
}

/// A decoded frame as `ffmpeg -f framemd5` reports it.
private struct DecodedFrame: Sendable {
  let ticks: Int64
  let duration: Int64
  let hash: Substring

  /// The frames of a file, and the number of ticks per second of their times.
  static func all(
    of path: String, ignoringEditList: Bool = false
  ) async throws -> (frames: [DecodedFrame], timescale: Int64) {
    let decoded = try await run(
      "ffmpeg",
      ["-v", "error", "-threads", "1", "-ignore_editlist", ignoringEditList ? "1" : "0"] + [
        "-i", path, "-map", "0:v", "-vsync", "passthrough", "-enc_time_base", "-1", "-f",
        "framemd5", "-",
      ])
    guard decoded.status == 0, decoded.errors.isEmpty else {
      throw Unexpected(description: "ffmpeg says of \(path): \(decoded.errors)")
    }
    var timescale: Int64 = 1
    let frames = decoded.output.split(separator: "\n").compactMap { line -> DecodedFrame? in
      if line.hasPrefix("#tb 0: 1/") { timescale = Int64(line.dropFirst(9)) ?? 1 }
      let fields = line.split { $0 == "," || $0 == " " }
      guard fields.count == 6, let ticks = Int64(fields[2]), let duration = Int64(fields[3])
      else { return nil }
      return DecodedFrame(ticks: ticks, duration: duration, hash: fields[5])
    }
    return (frames, timescale)
  }
}

/// A clip to take ranges from.
private struct Source: Sendable {
  let name: String
  let asset: Asset
  /// The times at which frames are shown, and then the end of the clip.
  ///
  /// They come from the recipe, not from the file.
  let times: [Rational]
  /// The hash of each frame that FFmpeg decodes.
  let hashes: [Substring]
  let isH264: Bool
  /// Keeps the directory of the clip from being deleted.
  let directory: Scratch

  private static let frameCount = 64

  /// A source of each kind at each frame rate.
  static func all() async throws -> [Source] {
    let directory = try Scratch()
    let kinds = ["h264", "reordered", "hevc", "mjpeg", "ffv1"]
    let rates: [(name: String, step: Int64, scale: Int32)] = [
      ("24", 1, 24), ("29.97", 1_001, 30_000), ("59.94", 1_001, 60_000), ("120", 5, 600),
      ("240", 1, 240), ("960", 1, 960), ("jittered", 0, 1_000_000), ("jittered 600", 0, 600),
    ]
    var sources: [Source] = []
    for (number, kind) in kinds.enumerated() {
      for (position, rate) in rates.enumerated() {
        var random = SeededGenerator(seed: UInt64(number * 100 + position))
        var recipe = MovieRecipe()
        recipe.timescale = rate.scale
        var time: Int64 = 0
        for _ in 0..<frameCount {
          recipe.times.append(time)
          let jitter = Int64(rate.scale) / 100
          time +=
            rate.step > 0 ? rate.step : .random(in: jitter / 3 + 1...jitter * 3, using: &random)
        }
        recipe.end = time
        recipe = encoded(recipe, kind, gop: [8, 16, 30][position % 3])
        let name = "\(kind) \(rate.name)"
        let asset = try Asset.made(recipe, in: directory, name)
        let hashes = try await DecodedFrame.all(of: asset.path).frames.map(\.hash)
        guard hashes.count == frameCount, Set(hashes).count == frameCount else {
          throw Unexpected(description: "\(name): \(Set(hashes).count) distinct frames")
        }
        sources.append(
          Source(
            name: name, asset: asset,
            times: (recipe.times + [time]).map { Rational(Int128($0), over: Int128(rate.scale)) },
            hashes: hashes, isH264: kind == "h264" || kind == "reordered", directory: directory))
      }
    }
    return sources
  }

  private static func encoded(_ recipe: MovieRecipe, _ kind: String, gop: Int) -> MovieRecipe {
    var recipe = recipe
    switch kind {
    case "h264": return recipe.h264(gop: gop, reordered: false)
    case "reordered": return recipe.h264(gop: gop, reordered: true)
    case "hevc":
      recipe.codec = "libx265"
      recipe.pixelFormat = .yuv420p
      recipe.keyFrameInterval = gop
      recipe.hasReorderedFrames = true
      recipe.options = [
        "preset": "ultrafast",
        "x265-params": "log-level=none:open-gop=0:bframes=2:b-adapt=0:scenecut=0:keyint=\(gop)"
          + ":min-keyint=\(gop):pools=1:frame-threads=1",
      ]
    case "ffv1":
      recipe.codec = "ffv1"
      recipe.pixelFormat = .yuv420p
      recipe.options = ["level": "3"]
    default: break
    }
    return recipe
  }
}

/// A random edit: ranges of one source, at random speeds.
private struct Plan {
  let seed: UInt64
  let source: Source
  let composition: Composition
  let boundary: CutPolicy

  /// A frame that must be visible, and when it starts.
  private struct Wanted {
    let number: Int
    let time: Rational
  }

  init(seed: UInt64, _ sources: [Source]) throws {
    var random = SeededGenerator(seed: seed &* 7_919 &+ 1)
    self.seed = seed
    source = sources[Int(seed) % sources.count]
    boundary = [.auto, .auto, .squeeze, .render][Int.random(in: 0..<4, using: &random)]
    let media = try source.asset.mediaSource()
    let times = source.times
    let duration = source.asset.duration
    /// A random source time, at the start of a frame or anywhere.
    func time() throws -> MediaTime {
      let position = Int.random(in: 0..<times.count - 1, using: &random)
      if Bool.random(using: &random) { return try MediaTime(times[position]) }
      let steps = Int128(duration.doubleValue * 48_000)
      return try MediaTime(
        Rational(Int128(Int64.random(in: 0..<Int64(steps), using: &random)), over: 48_000))
    }
    let speeds: [Rational] = [
      (1, 1), (1, 2), (1, 4), (1, 8), (1, 3), (2, 1), (3, 2), (1_000, 1_001),
    ]
    .map { Rational($0, over: $1) }
    var composition = Composition()
    var count = Int.random(in: 1...50, using: &random)
    while composition.segments.count < count {
      let ends = try [time(), time()].sorted()
      let part = try TimeRange(start: ends[0], end: ends[1])
      // Shorter ranges may contain no frame at low frame rates.
      guard part.duration > (Rational(1, over: 100)) else { continue }
      // One range in four continues where the previous range ended.
      let start = composition.segments.last?.mapping?.line?.source.end
      let continued = try start.map { try TimeRange(start: $0, end: max($0, ends[1])) }
      let range = Int.random(in: 0..<4, using: &random) == 0 ? continued ?? part : part
      guard range.duration > (Rational(1, over: 100)) else { continue }
      let speed = speeds.randomElement(using: &random) ?? .one
      do {
        try composition.edit { edited in
          let position = edited.duration
          try edited.insertTimeRange(range, of: media, at: position)
          let length = try MediaTime(range.duration / speed)
          try edited.scaleTimeRange(
            TimeRange(start: position, end: edited.duration), toDuration: length)
        }
      } catch let error as MediaError {
        // A sum of many odd fractions may not fit in a `MediaTime`. This range is then left out.
        guard error.code == .notExact || error.code == .overflow else { throw error }
        count = max(1, count - 1)
      }
    }
    self.composition = composition
  }

  /// The frames that must be visible: each frame whose display interval overlaps a range, from its
  /// start in that range.
  ///
  /// A range edge within the timestamp precision of a frame's time counts as that time.
  private func wanted() throws -> [Wanted] {
    let slack = try source.asset.slack()
    var wanted: [Wanted] = []
    var end: MediaTime?
    for segment in composition.segments {
      guard let line = segment.mapping?.line else { continue }
      let (start, stop) = (line.source.start.seconds, line.source.end.seconds)
      let stretch = line.target.duration / line.source.duration
      let (first, last) = (start + slack, stop - slack)
      for number in 0..<source.times.count - 1
      where source.times[number] < last && source.times[number + 1] > first {
        let isOn = end == line.source.start && wanted.last?.number == number
        if isOn { continue }
        let isFirst = source.times[number] <= first
        let offset = isFirst ? .zero : source.times[number] - start
        let time = line.target.start.seconds + offset * stretch
        wanted.append(Wanted(number: number, time: time))
      }
      end = line.source.end
    }
    return wanted
  }

  func outcome() async throws -> Outcome {
    var outcome = Outcome(
      seed: seed, name: "\(source.name), \(composition.segments.count) ranges, \(boundary)")
    let directory = try Scratch()
    var settings = ExportSettings(path: directory.file("out.mov"), mode: .passthrough())
    settings.mode = .passthrough(boundary: boundary)
    let report: ExportReport
    do throws(MediaError) {
      report = try await ExportSession(composition, of: source.asset).export(settings)
    } catch {
      outcome.isRefused = true
      // Cuts of H.264 are always possible, except with the cut policy squeeze.
      if error.code != .cutNotOnKeyFrame || source.isH264 && boundary != .squeeze {
        outcome.complaints.append("\(error)")
      }
      return outcome
    }
    outcome.encodedCount = report.framesEncoded
    outcome.hiddenCount = report.framesHidden
    try await judge(report, &outcome)
    return outcome
  }

  private func judge(_ report: ExportReport, _ outcome: inout Outcome) async throws {
    let (frames, timescale) = try await DecodedFrame.all(of: report.path)
    let wanted = try wanted()
    let end = composition.duration.seconds
    let scale = Rational(timescale)
    let exact = (wanted.map(\.time) + [end]).map { $0 * scale }
    outcome.isExact = exact.allSatisfy { $0.denominator == 1 }
    if outcome.isExact != (report.maxTimeError.wholeNanoseconds == 0) {
      outcome.complaints.append(
        "a time error of \(report.maxTimeError.wholeNanoseconds) ns is reported")
    }
    if timescale < 240_000 { outcome.complaints.append("\(timescale) ticks a second") }
    // The output must have an exact timescale if that timescale is at most 10 million ticks per
    // second. An exact timescale is the least common multiple of the denominators of all times.
    if !outcome.isExact, try hasExactTimescale(wanted.map(\.time) + [end]) {
      outcome.complaints.append("an exact timescale would fit")
    }
    // Each exact time is rounded once.
    let ticks = try exact.map { try $0.rounded(.halfAwayFromZero) }
    var position = 0
    var strangers: [Int] = []
    var hiddenRun: Int64 = 0
    for (index, frame) in frames.enumerated() {
      let next = index + 1 < frames.count ? frames[index + 1].ticks : Int64(ticks[wanted.count])
      if next <= frame.ticks { outcome.complaints.append("frame \(index) has no time of its own") }
      if position < wanted.count, ticks[position] == frame.ticks {
        if frame.hash != source.hashes[wanted[position].number] { strangers.append(index) }
        position += 1
        hiddenRun = 0
      } else {
        // A hidden frame may be shown for one tick, and consecutive hidden frames for 0.25 ms at
        // most.
        hiddenRun += next - frame.ticks
        if next - frame.ticks > 1 || hiddenRun * 4_000 > timescale {
          outcome.complaints.append("frame \(index) is seen from tick \(frame.ticks) to \(next)")
        }
      }
    }
    if position != wanted.count {
      outcome.complaints.append("\(position) of \(wanted.count) frames")
    }
    // An encoded frame may be identical to its source frame. So there may be fewer frames that
    // differ from the source than frames that were encoded.
    if strangers.count > Int(report.framesEncoded) {
      outcome.complaints.append(
        "\(strangers.count) other frames, \(report.framesEncoded) encoded")
    }
    // Frames hidden by the first cut are before time zero of the track, but count in its length.
    if report.cuts.first?.method != .hidden {
      let length = try await FFmpeg.probe(report.path, "stream=duration_ts", stream: "v")
      if length.first.flatMap({ Int128($0) }) != ticks[wanted.count] {
        outcome.complaints.append("it lasts \(length) ticks, not \(ticks[wanted.count])")
      }
    }
    if !strangers.isEmpty { try checkEncoded(report, wanted, ticks.map(Int64.init), &outcome) }
    guard seed % 5 == 0 else { return }
    // Without the edit list, the frames hidden by the first cut come first, and then the frames
    // that are shown with the edit list. Those hidden after the end follow, usually one or two.
    let all = try await DecodedFrame.all(of: report.path, ignoringEditList: true).frames
    let isSame = (0...min(8, Int(report.framesHidden))).contains { hidden in
      all.dropLast(hidden).suffix(frames.count).map(\.hash) == frames.map(\.hash)
    }
    if !isSame {
      outcome.complaints.append("other frames without the edit list")
    }
  }

  private func hasExactTimescale(_ times: [Rational]) throws -> Bool {
    var common: Int128 = Int128(source.asset.videoTrack?.timescale ?? 1)
    for time in times {
      var (a, b) = (common, time.denominator)
      while b != 0 { (a, b) = (b, a % b) }
      common = common / a * time.denominator
      if common > 10_000_000 { return false }
    }
    return true
  }

  /// Checks the numbers painted into encoded frames.
  private func checkEncoded(
    _ report: ExportReport, _ wanted: [Wanted], _ ticks: [Int64], _ outcome: inout Outcome
  ) throws {
    let result = try Asset(path: report.path)
    let entries = try #require(result.videoTrack).frames.entries
    let numbers = try result.numbers()
    // Frames are found by their times, since hidden frames may leave only one tick for a short
    // frame.
    let positions = Dictionary(uniqueKeysWithValues: zip(entries.map(\.ticks), entries.indices))
    for (frame, tick) in zip(wanted, ticks) {
      let shown = positions[tick].flatMap { numbers[$0] }
      guard shown == frame.number else {
        outcome.complaints.append(
          "\(shown.map(String.init) ?? "nothing") in place of \(frame.number) at tick \(tick)")
        return
      }
    }
  }
}
