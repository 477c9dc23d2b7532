// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import LibAV
import MediaTiming

/// Which packets a passthrough export copies, and the time each of them gets.
///
/// Each run of segments that is continuous in its source is one monotone map, under which nothing
/// is dropped or reordered: where only the speed changes, no key frame is needed. Where the source
/// jumps there is a cut, and decoding must be able to start there.
struct PassthroughPlan {
  /// A packet to copy.
  struct Frame {
    /// Its place in the source's order of decoding.
    let decodeIndex: Int
    /// When it is shown, in ticks of ``PassthroughPlan/timescale``.
    let pts: Int64
    /// When it is decoded; filled in for all frames together.
    var dts: Int64 = 0
    /// How long it lasts in the file's table of times.
    var duration: Int64 = 0
  }

  /// Packets in the order in which they are written.
  private(set) var frames: [Frame] = []
  /// Ticks per second in which as many times as can be are whole.
  let timescale: Int32
  /// The end of the last frame, in ticks.
  private(set) var endTicks: Int64 = 0
  /// The farthest that a time was rounded, in seconds.
  private(set) var maxTimeError = Rational.zero
  /// The key frames that cuts rely on, by their place in the order of decoding.
  private(set) var cutPackets: [(decodeIndex: Int, cut: Rational)] = []

  private static let smallestTimescale: Int128 = 240_000
  private static let largestTimescale: Int128 = 10_000_000

  init(_ composition: Composition, _ table: FrameTable, path: String) throws {
    timescale = try Self.timescale(composition, table)
    for run in try Self.runs(composition, path) { try append(run, table, path) }
    try closeTimes(Rational(composition.duration))
  }

  // MARK: Runs

  /// Mappings that follow each other in the source as they do in the composition.
  private struct Run {
    var mappings: [TimeMapping]
    var start: MediaTime
    var end: MediaTime
  }

  private static func runs(_ composition: Composition, _ path: String) throws -> [Run] {
    var runs: [Run] = []
    for segment in composition.segments {
      guard let mapping = segment.mapping else {
        throw ExportError(
          .unsupportedSource,
          "the composition has an empty part at \(segment.target.secondsText) s",
          hint: "export it at a constant rate with --fps")
      }
      if let last = runs.last, last.end == mapping.source.start {
        runs[runs.count - 1].mappings.append(mapping)
        runs[runs.count - 1].end = mapping.source.end
      } else {
        runs.append(
          Run(mappings: [mapping], start: mapping.source.start, end: mapping.source.end))
      }
    }
    return runs
  }

  private mutating func append(_ run: Run, _ table: FrameTable, _ path: String) throws {
    guard let first = table.index(at: run.start) else {
      throw ExportError(
        .unsupportedSource, "\(path) has no frame at \(run.start.secondsText) s",
        hint: "see slowmo info")
    }
    let startTime = Rational(run.start)
    // Frames that begin inside the run, and the one that is on when it begins.
    var last = first
    while last + 1 < table.entries.count,
      try seconds(table, table.entries[last + 1].ticks) < Rational(run.end)
    {
      last += 1
    }
    try checkCuts(run, first, last, table, path)
    let shown = (first...last).map { (table.entries[$0].decodeIndex, $0) }
    var remaining = run.mappings[...]
    var times: [Int: Int64] = [:]
    for (decodeIndex, index) in shown {
      let time = max(try seconds(table, table.entries[index].ticks), startTime)
      while remaining.count > 1, let mapping = remaining.first,
        time >= Rational(mapping.source.end)
      {
        remaining.removeFirst()
      }
      guard let mapping = remaining.first else { continue }
      times[decodeIndex] = try round(mapping.targetSeconds(of: time))
    }
    for (decodeIndex, _) in shown.sorted(by: { $0.0 < $1.0 }) {
      guard let pts = times[decodeIndex] else { continue }
      frames.append(Frame(decodeIndex: decodeIndex, pts: pts))
    }
  }

  // MARK: Cuts

  private mutating func checkCuts(
    _ run: Run, _ first: Int, _ last: Int, _ table: FrameTable, _ path: String
  ) throws {
    let entries = table.entries
    if first > 0 {
      guard entries[first].isKeyFrame else {
        throw refusal("starts", at: run.start, table, path) { entries[$0].isKeyFrame }
      }
      cutPackets.append((entries[first].decodeIndex, Rational(run.start)))
    }
    guard last + 1 < entries.count else { return }
    func isFreeEnd(_ index: Int) -> Bool {
      // No frame after the end may be decoded before one that is kept.
      let kept = entries[first...max(first, index)].map(\.decodeIndex).max() ?? 0
      return entries[min(index + 1, entries.count - 1)...].allSatisfy { $0.decodeIndex > kept }
    }
    guard isFreeEnd(last) else {
      throw refusal("ends", at: run.end, table, path) { $0 > first && isFreeEnd($0 - 1) }
    }
  }

  /// Why a cut is not free, and where the nearest ones are that are.
  private func refusal(
    _ verb: String, at cut: MediaTime, _ table: FrameTable, _ path: String,
    isFree: (Int) -> Bool
  ) -> ExportError {
    let place = table.index(at: cut) ?? table.entries.count - 1
    let before = stride(from: place, through: 0, by: -1).first(where: isFree)
    let after = ((place + 1)..<max(place + 1, table.entries.count)).first(where: isFree)
    let free = [before, after].compactMap { index in
      index.flatMap { try? table.time(ofFrame: Int64($0)) }.map { "\($0.secondsText) s" }
    }
    return ExportError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(verb) at \(cut.secondsText) s, where no picture can be decoded by itself",
      hint: free.isEmpty
        ? "export it at a constant rate with --fps"
        : "cut at \(free.joined(separator: " or ")), or render it with --fps")
  }

  // MARK: Times

  private func seconds(_ table: FrameTable, _ ticks: Int64) throws -> Rational {
    try Rational(Int128(ticks), Int128(table.timescale))
  }

  /// The one rounding of a time: to the nearest tick, halves away from zero.
  private mutating func round(_ seconds: Rational) throws -> Int64 {
    let exact = try seconds.multiplied(by: Rational(Int64(timescale)))
    let ticks = exact.rounded(.halfAwayFromZero)
    guard let value = Int64(exactly: ticks) else {
      throw TimingError(.overflow, "the time \(seconds) s in ticks of 1/\(timescale) s")
    }
    let error = try Rational(ticks, Int128(timescale)).subtracting(seconds)
    maxTimeError = max(maxTimeError, error < .zero ? try error.negated() : error)
    return value
  }

  /// Gives every frame its decoding time and its duration.
  ///
  /// Decoding times are the presentation times in order, moved back just so far that no frame is
  /// decoded after it is shown; where no frame is reordered, they are the same.
  private mutating func closeTimes(_ duration: Rational) throws {
    endTicks = try round(duration)
    let sorted = frames.map(\.pts).sorted()
    for (time, next) in zip(sorted, sorted.dropFirst()) where time == next {
      throw ExportError(
        .unsupportedSource,
        "two frames would share the time \(time)/\(timescale) s: the speed is too high to copy",
        hint: "choose a lower speed, or render it with --fps")
    }
    guard let last = sorted.last, last < endTicks else {
      throw ExportError(
        .unsupportedSource, "the last frame would have no duration",
        hint: "choose a lower speed, or render it with --fps")
    }
    let delay = zip(sorted, frames).map { $0 - $1.pts }.max() ?? 0
    for index in frames.indices {
      frames[index].dts = sorted[index] - delay
      frames[index].duration =
        (index + 1 < sorted.count ? sorted[index + 1] : endTicks) - sorted[index]
    }
  }

  /// The smallest timescale between 240 000 and 10 000 000 in which all times are whole; where
  /// there is none, 240 000, or the source's if that is finer.
  private static func timescale(_ composition: Composition, _ table: FrameTable) throws -> Int32 {
    var common = Int128(table.timescale)
    func include(_ seconds: Rational) -> Bool {
      let divisor = greatestCommonDivisor(common, seconds.denominator)
      let (product, overflow) = (common / divisor).multipliedReportingOverflow(
        by: seconds.denominator)
      guard !overflow, product <= largestTimescale else { return false }
      common = product
      return true
    }
    let tick = try Rational(1, Int128(table.timescale))
    for segment in composition.segments {
      guard let mapping = segment.mapping else { continue }
      let stretch = try mapping.target.durationInSeconds
        .divided(by: mapping.source.durationInSeconds)
      // A frame at tick k is shown at target.start + (k·tick − source.start)·stretch.
      let offset = try Rational(mapping.target.start)
        .subtracting(Rational(mapping.source.start).multiplied(by: stretch))
      guard include(try tick.multiplied(by: stretch)), include(offset),
        include(Rational(mapping.target.start)), include(Rational(mapping.target.end))
      else { return max(Int32(smallestTimescale), table.timescale) }
    }
    let factor = (smallestTimescale + common - 1) / common
    let scaled = common * max(1, factor)
    return Int32(clamping: scaled <= largestTimescale ? scaled : common)
  }

  private static func greatestCommonDivisor(_ first: Int128, _ second: Int128) -> Int128 {
    var (a, b) = (first, second)
    while b != 0 { (a, b) = (b, a % b) }
    return a
  }
}

extension Rational {
  /// A time in seconds.
  init(_ time: MediaTime) { self = time.seconds }
}
