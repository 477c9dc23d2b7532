// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

/// The captured frames from which an export synthesizes frames.
///
/// Each captured frame has the times of the output frames between it and the next captured frame.
///
/// With a shutter, each output frame is the average of several instants. Each of these instants is
/// then treated like an output frame.
///
/// Times are in source seconds. In reverse playback they are negated, so that they always ascend.
struct InBetweenPlan: Sendable {
  /// A captured frame, or a gap of the composition.
  struct Entry: Sendable {
    /// The captured frame; nil for a gap of the composition.
    let frame: ConstantRatePlan.Frame?
    let time: Double
    /// Whether playback continues from the previous entry to this one.
    ///
    /// False after a jump.
    var isConnected: Bool
    /// The times of the output frames from this captured frame up to the next one.
    var instants: [Double] = []
  }

  /// An instant at which an image is needed.
  private struct Instant {
    /// The time of the instant in the composition.
    let time: Rational
    /// The index of the `PlaybackRun` that shows the instant; nil for the run at the instant's
    /// composition time.
    var run: Int?
    /// The index of the captured frame to show; nil for an image of exactly this instant, which may
    /// have to be synthesized.
    var frame: Int?

    func isBefore(_ run: PlaybackRun, _ number: Int) -> Bool {
      self.run.map { $0 < number } ?? (time < run.target.seconds)
    }
  }

  /// The captured frames that the output frames need, in playback order.
  let entries: [Entry]
  /// The number of output frames that do not coincide with a captured frame.
  let synthesizedCount: Int64
  /// The instants whose images are averaged to each output frame; nil if no images are averaged.
  let exposures: [Exposure]?

  /// Finds the captured frames around each instant.
  ///
  /// - Parameters:
  ///   - segments: The segments of the composition.
  ///   - slots: The output frames.
  ///   - paths: The paths of the sources.
  ///   - tables: The frames of each source.
  ///   - exposures: The instants whose images are averaged to each output frame; nil if no images
  ///     are averaged.
  ///   - shown: The source frames to which the exposures refer, each with the index of its playback
  ///     run.
  /// - Throws: `MediaError` for a time at which a source has no frame, or that cannot be computed
  ///   exactly.
  init(
    _ segments: [TrackSegment], _ slots: OutputFrameGrid, _ paths: [String],
    _ tables: [FrameTable], exposures: [Exposure]?,
    of shown: [(frame: ConstantRatePlan.Frame?, run: Int)]
  ) throws {
    self.exposures = exposures
    let instants =
      exposures?.flatMap { exposure in
        exposure.times.enumerated().map { number, time in
          let shown = exposure.frames.map { shown[$0[number]] }
          return Instant(time: time, run: shown?.run, frame: shown?.frame?.index)
        }
      } ?? (0..<slots.count).map { Instant(time: slots.seconds(of: $0)) }
    let runs = try PlaybackRun.runs(of: segments, paths)
    var all: [Entry] = []
    var next = 0
    for (number, run) in runs.enumerated() {
      let first = next
      while next < instants.count,
        number == runs.count - 1 || instants[next].isBefore(runs[number + 1], number + 1)
      { next += 1 }
      guard first < next else { continue }
      guard let source = run.source else {
        all.append(
          Entry(
            frame: nil, time: 0, isConnected: false,
            instants: [Double](repeating: 0, count: next - first)))
        continue
      }
      all += try Self.entries(
        of: run, source, tables[source], path: paths[source], instants[first..<next])
    }
    let isBetween: [Bool]
    (entries, isBetween) = Self.needed(of: all)
    synthesizedCount = Self.synthesizedCount(isBetween, exposures)
  }

  /// Returns all captured frames of a playback run, with the instants between them.
  private static func entries(
    of run: PlaybackRun, _ source: Int, _ table: FrameTable, path: String,
    _ instants: ArraySlice<Instant>
  ) throws -> [Entry] {
    let shown = try run.frames(of: table, path: path)
    // The captured frame after the shown ones is included, because the last output frames are
    // synthesized from that frame.
    let last = min(shown.upperBound + 1, table.entries.count - 1)
    let sign: Double = run.isReversed ? -1 : 1
    let indices = (0...last - shown.lowerBound).map {
      run.isReversed ? last - $0 : shown.lowerBound + $0
    }
    var result = try indices.map { index in
      Entry(
        frame: .init(source: source, index: index),
        time: sign * (try table.time(ofFrame: Int64(index)).seconds.doubleValue),
        isConnected: index != indices.first)
    }
    var mapping = 0
    var position = 0
    for instant in instants {
      if let frame = instant.frame {
        // An earlier instant may have moved `position` beyond this frame, and `position` never goes
        // back.
        position = max(position, run.isReversed ? last - frame : frame - shown.lowerBound)
        result[position].instants.append(result[position].time)
        continue
      }
      let time = instant.time
      while mapping + 1 < run.mappings.count, run.mappings[mapping].target.end.seconds <= time {
        mapping += 1
      }
      let target = run.mappings[mapping].target
      let inside = min(max(time, target.start.seconds), target.end.seconds)
      // On an eased ramp, the times of a shutter cannot be computed exactly.
      let exact = sign * run.mappings[mapping].nearSourceSeconds(of: inside).doubleValue
      while position + 1 < result.count, result[position + 1].time <= exact { position += 1 }
      // While playback is frozen, the captured frame itself is shown.
      let isFrozen = run.mappings[mapping].motion == .hold
      result[position].instants.append(
        isFrozen ? result[position].time : max(exact, result[position].time))
    }
    return result
  }

  /// Returns the captured frames that output frames need, and for each instant whether it lies
  /// between two captured frames.
  private static func needed(of all: [Entry]) -> (entries: [Entry], isBetween: [Bool]) {
    var result: [Entry] = []
    var flags: [Bool] = []
    var previous: Int?
    for (number, entry) in all.enumerated() {
      var isNeeded = !entry.instants.isEmpty
      if number > 0 {
        let start = all[number - 1]
        let between = start.instants.map {
          entry.isConnected && isBetween($0, start.time, entry.time)
        }
        isNeeded = isNeeded || between.contains(true)
        flags += between
      }
      guard isNeeded else { continue }
      var kept = entry
      kept.isConnected = entry.isConnected && previous == number - 1
      previous = number
      result.append(kept)
    }
    flags += all.last?.instants.map { _ in false } ?? []
    return (result, flags)
  }

  /// Returns the number of output frames that have an instant between two captured frames.
  private static func synthesizedCount(_ isBetween: [Bool], _ exposures: [Exposure]?) -> Int64 {
    guard let exposures else { return Int64(isBetween.count { $0 }) }
    var start = 0
    return exposures.reduce(0) { count, exposure in
      defer { start += exposure.times.count }
      return count + (isBetween[start..<start + exposure.times.count].contains(true) ? 1 : 0)
    }
  }

  private static func isBetween(_ instant: Double, _ start: Double, _ end: Double) -> Bool {
    let tolerance = Double(FrameSequenceInterpolator.tolerance)
    let part = (instant - start) / (end - start)
    return part > tolerance && part < 1 - tolerance
  }
}
