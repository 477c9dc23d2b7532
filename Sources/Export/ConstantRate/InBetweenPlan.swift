// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

/// The captured frames of an export that synthesizes frames, each with the output frames that lie
/// between it and the next one.
///
/// Times are source seconds, negated in reverse playback, so that they ascend. An output time is
/// thus exact at any speed, also on ramps.
struct InBetweenPlan: Sendable {
  /// A captured frame, or a gap of the composition.
  struct Entry: Sendable {
    /// The frame; nil for a gap.
    let frame: ConstantRatePlan.Frame?
    let time: Double
    /// True if playback continues from the previous entry to this one, false at jumps.
    var isConnected: Bool
    /// The times of the output frames from this frame up to the next one.
    var instants: [Double] = []
  }

  /// The entries that are needed, in playback order.
  let entries: [Entry]
  /// The number of output frames that are not at a captured frame.
  let synthesizedCount: Int64

  init(
    _ segments: [TrackSegment], _ slots: OutputFrameGrid, _ paths: [String],
    _ tables: [FrameTable]
  ) throws {
    let runs = try PlaybackRun.runs(of: segments, paths)
    var all: [Entry] = []
    var slot: Int64 = 0
    for (number, run) in runs.enumerated() {
      let isLast = number == runs.count - 1
      let end = isLast ? slots.count : try slots.count(before: runs[number + 1].target.seconds)
      defer { slot = max(slot, end) }
      guard slot < end else { continue }
      guard let source = run.source else {
        all.append(
          Entry(
            frame: nil, time: 0, isConnected: false,
            instants: [Double](repeating: 0, count: Int(end - slot))))
        continue
      }
      all += try Self.entries(
        of: run, source, tables[source], path: paths[source], slots, slot..<end)
    }
    (entries, synthesizedCount) = Self.needed(of: all)
  }

  /// Returns all frames of a run, with the output frames between them.
  private static func entries(
    of run: PlaybackRun, _ source: Int, _ table: FrameTable, path: String, _ slots: OutputFrameGrid,
    _ range: Range<Int64>
  ) throws -> [Entry] {
    let shown = try run.frames(of: table, path: path)
    // The frame after the range shows where the motion at its end goes.
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
    for slot in range {
      let time = slots.seconds(of: slot)
      while mapping + 1 < run.mappings.count, run.mappings[mapping].target.end.seconds <= time {
        mapping += 1
      }
      let target = run.mappings[mapping].target
      let inside = min(max(time, target.start.seconds), target.end.seconds)
      let instant = sign * (try run.mappings[mapping].sourceSeconds(of: inside)).doubleValue
      while position + 1 < result.count, result[position + 1].time <= instant { position += 1 }
      // A frozen instant shows a captured frame.
      let isFrozen = run.mappings[mapping].motion == .hold
      result[position].instants.append(
        isFrozen ? result[position].time : max(instant, result[position].time))
    }
    return result
  }

  /// Returns the entries that output frames need, and the number of output frames between two of
  /// them.
  private static func needed(of all: [Entry]) -> (entries: [Entry], synthesizedCount: Int64) {
    var result: [Entry] = []
    var count: Int64 = 0
    var previous: Int?
    for (number, entry) in all.enumerated() {
      var between = 0
      if number > 0, entry.isConnected {
        let start = all[number - 1]
        between = start.instants.count { Self.isBetween($0, start.time, entry.time) }
      }
      count += Int64(between)
      guard between > 0 || !entry.instants.isEmpty else { continue }
      var kept = entry
      kept.isConnected = entry.isConnected && previous == number - 1
      previous = number
      result.append(kept)
    }
    return (result, count)
  }

  private static func isBetween(_ instant: Double, _ start: Double, _ end: Double) -> Bool {
    let tolerance = Double(FrameSequenceInterpolator.tolerance)
    let part = (instant - start) / (end - start)
    return part > tolerance && part < 1 - tolerance
  }
}
