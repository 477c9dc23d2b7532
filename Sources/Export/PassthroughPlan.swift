// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
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
    /// How long it is shown; of the last one that is decoded, how long the last one is shown.
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

  init(_ composition: Composition, _ table: FrameTable, path: String) throws {
    timescale = try ExportTimescale.choose(composition, table)
    let cuts = CutFinder(table, path: path)
    for run in try Self.runs(composition) { try append(run, table, cuts) }
    try closeTimes(composition.duration.seconds)
  }

  /// Frames of the source that are not copied.
  func skippedCount(of table: FrameTable) -> Int64 {
    Int64(table.entries.count - Set(frames.lazy.map(\.decodeIndex)).count)
  }

  // MARK: Runs

  /// Mappings that follow each other in the source as they do in the composition.
  private struct Run {
    var mappings: [TimeMapping]
    var start: MediaTime
    var end: MediaTime
  }

  private static func runs(_ composition: Composition) throws(ExportError) -> [Run] {
    var runs: [Run] = []
    for segment in composition.segments {
      guard let mapping = segment.mapping else {
        throw ExportError(
          .unsupportedSource,
          "the composition plays nothing at \(segment.target.secondsText) s, and a copy has no "
            + "picture for that",
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

  private mutating func append(_ run: Run, _ table: FrameTable, _ cuts: CutFinder) throws {
    let shown = try cuts.frames(from: run.start, to: run.end)
    var mappings = run.mappings[...]
    var times: [(decodeIndex: Int, pts: Int64)] = []
    times.reserveCapacity(shown.count)
    for index in shown {
      // The frame that is on when the run begins is shown from its beginning.
      let time = max(try table.time(ofFrame: Int64(index)), run.start)
      while mappings.count > 1, let mapping = mappings.first, time >= mapping.source.end {
        mappings.removeFirst()
      }
      guard let mapping = mappings.first else { continue }
      times.append(
        (
          table.entries[index].decodeIndex, try round(mapping.targetSeconds(of: time.seconds))
        ))
    }
    times.sort { $0.decodeIndex < $1.decodeIndex }
    frames += times.map { Frame(decodeIndex: $0.decodeIndex, pts: $0.pts) }
  }

  // MARK: Times

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
    let order = frames.indices.sorted { frames[$0].pts < frames[$1].pts }
    let sorted = order.map { frames[$0].pts } + [endTicks]
    for (time, next) in zip(sorted, sorted.dropFirst()) where time >= next {
      throw ExportError(
        .unsupportedSource,
        "two frames would share the time \(time)/\(timescale) s: the speed is too high to copy",
        hint: "choose a lower speed, or render it with --fps")
    }
    let delay = zip(sorted, frames).map { $0 - $1.pts }.max() ?? 0
    for (place, index) in order.enumerated() {
      frames[index].duration = sorted[place + 1] - sorted[place]
      frames[place].dts = sorted[place] - delay
    }
    // A track's length is the sum of the steps between decoding times; the last of them must
    // bring it to the end of the last frame that is shown.
    if frames.count > 0 {
      frames[frames.count - 1].duration = endTicks - sorted[frames.count - 1]
    }
  }
}
