// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankLibAV
import OvercrankMediaCore

/// Corrects the times of frames that contradict the order in which the decoder returns the frames.
///
/// For example, two frames have the same time, or the time of a frame is not between those of its
/// neighbors. As many times as possible are kept, such that the kept times ascend in the decoder's
/// order. The frames between two kept times get the decode times between those, if there is one for
/// each frame. Otherwise they get evenly spaced times. If whole ticks are too coarse for that, all
/// times are expressed in fractions of a tick.
struct CorrectedTimes {
  /// The packets in decode order, with corrected times.
  ///
  /// Times and durations are in units of 1 / ``refinement`` tick.
  let records: [PacketRecord]
  /// The number of units of the corrected times in one tick of the file.
  let refinement: Int64
  /// The number of frames whose time was replaced.
  let count: Int

  /// Corrects the times.
  ///
  /// Returns nil if this requires more units per tick than `largestRefinement`.
  ///
  /// - Parameters:
  ///   - records: All packets of the track in decode order.
  ///   - shown: The indices of the packets of all shown frames, in the order in which the decoder
  ///     returns the frames.
  ///   - largestRefinement: The greatest ``refinement``.
  init?(_ records: [PacketRecord], shown: [Int], largestRefinement: Int64) {
    let decoded = Set(records.compactMap(\.dts))
    let times = shown.map { records[$0].pts }
    let kept = Self.ascending(times) { decoded.contains($0) ? 2 : 1 }
    guard let first = kept.first, let last = kept.last,
      times.allSatisfy({ $0.magnitude < 1 << 56 })
    else { return nil }
    func duration(_ position: Int) -> Int64 { max(0, records[shown[position]].duration) }
    // Frames before the first kept time, or after the last one, have a kept neighbor on one side
    // only. Such frames continue the nearest known interval.
    let second = kept.count > 1 ? kept[1] : nil
    let opening = second.map { (times[$0] - times[first]) / Int64($0 - first) }
    var runs: [Run] = []
    if first > 0 {
      let step = max(1, opening ?? duration(first))
      let (start, overflow) = step.multipliedReportingOverflow(by: Int64(first))
      guard !overflow else { return nil }
      runs.append(Run(positions: 0..<first, from: times[first] &- start &- step, to: times[first]))
    }
    for (position, next) in zip(kept, kept.dropFirst()) where next - position > 1 {
      runs.append(Run(positions: position + 1..<next, from: times[position], to: times[next]))
    }
    if last + 1 < times.count {
      let before = kept.dropLast().last.map { (times[last] - times[$0]) / Int64(last - $0) }
      let step = max(1, duration(last) > 0 ? duration(last) : before ?? 1)
      let rest = Int64(times.count - last - 1)
      let isShared = times[(last + 1)...].allSatisfy { $0 == times[last] }
      let (length, overflow) = step.multipliedReportingOverflow(by: isShared ? 1 : rest + 1)
      guard !overflow else { return nil }
      runs.append(
        Run(positions: last + 1..<times.count, from: times[last], to: times[last] &+ length))
    }
    let all = decoded.sorted()
    for index in runs.indices { runs[index].take(all) }
    guard let refinement = Self.refinement(of: runs, atMost: largestRefinement) else { return nil }
    var corrected = records
    for index in corrected.indices {
      let (pts, overflow) = corrected[index].pts.multipliedReportingOverflow(by: refinement)
      let (length, lengthOverflow) = corrected[index].duration
        .multipliedReportingOverflow(by: refinement)
      guard !overflow, !lengthOverflow else { return nil }
      (corrected[index].pts, corrected[index].duration) = (pts, length)
    }
    for run in runs {
      for (number, position) in run.positions.enumerated() {
        corrected[shown[position]].pts = run.time(number, refinement)
      }
    }
    // If the time of the last frame was replaced, the frame lasts to the end of its run of replaced
    // times.
    if let run = runs.last, run.positions.upperBound == shown.count, let last = shown.last {
      corrected[last].duration = run.to * refinement - corrected[last].pts
    }
    self.records = corrected
    self.refinement = refinement
    count = runs.reduce(0) { $0 + $1.positions.count }
  }

  /// Consecutive frames whose times are replaced, and the kept times before and after them.
  private struct Run {
    let positions: Range<Int>
    let from: Int64
    let to: Int64
    /// The decode times between the kept times `from` and `to`; nil unless there is exactly one for
    /// each frame of the run.
    var decoded: [Int64]?

    var steps: Int64 { Int64(positions.count + 1) }

    init(positions: Range<Int>, from: Int64, to: Int64) {
      (self.positions, self.from, self.to) = (positions, from, to)
    }

    /// Sets `decoded` from all decode times of the track, which are in ascending order.
    mutating func take(_ all: [Int64]) {
      let start = all.partitioningIndex { $0 > from }
      let end = all.partitioningIndex { $0 >= to }
      if start <= end, end - start == positions.count { decoded = Array(all[start..<end]) }
    }

    func time(_ number: Int, _ refinement: Int64) -> Int64 {
      if let decoded { return decoded[number] * refinement }
      let ahead = Int128(to - from) * Int128(refinement) * Int128(number + 1) / Int128(steps)
      return from * refinement + Int64(ahead)
    }
  }

  /// The smallest number of units per tick with which all corrected times are whole numbers of units.
  ///
  /// The corrected times of a run of frames are evenly spaced between the times of its neighbors. If
  /// the number is above `limit`, the result is the smallest number with which corrected times still
  /// ascend after rounding. Nil if that number is above `limit`, too.
  private static func refinement(of runs: [Run], atMost limit: Int64) -> Int64? {
    var exact: Int64? = 1
    var least: Int64 = 1
    for run in runs where run.decoded == nil {
      let (part, needed) = (run.steps / gcd(run.to - run.from, run.steps), exact)
      exact = needed.flatMap { needed in
        let (product, overflow) = (needed / gcd(needed, part)).multipliedReportingOverflow(by: part)
        return overflow || product > limit ? nil : product
      }
      least = max(least, (run.steps + run.to - run.from - 1) / (run.to - run.from))
    }
    return exact ?? (least <= limit ? least : nil)
  }

  private static func gcd(_ a: Int64, _ b: Int64) -> Int64 { b == 0 ? a : gcd(b, a % b) }

  /// The positions of the strictly ascending subsequence of times with the greatest sum of weights.
  private static func ascending(_ times: [Int64], weight: (Int64) -> Int) -> [Int] {
    let ranks = Array(Set(times)).sorted()
    // A Fenwick tree: each node contains the best subsequence that ends at a time in its range of
    // ranks.
    var best = [(sum: Int, position: Int)](repeating: (0, -1), count: ranks.count + 1)
    var before = [Int](repeating: -1, count: times.count)
    for (position, time) in times.enumerated() {
      let rank = ranks.partitioningIndex { $0 >= time }
      var (chain, index) = ((sum: 0, position: -1), rank)
      while index > 0 {
        if best[index].sum > chain.sum { chain = best[index] }
        index &= index - 1
      }
      before[position] = chain.position
      let sum = chain.sum + weight(time)
      index = rank + 1
      while index <= ranks.count {
        if sum > best[index].sum { best[index] = (sum, position) }
        index += index & -index
      }
    }
    var chain = (sum: 0, position: -1)
    var index = ranks.count
    while index > 0 {
      if best[index].sum > chain.sum { chain = best[index] }
      index &= index - 1
    }
    var kept: [Int] = []
    var position = chain.position
    while position >= 0 {
      kept.append(position)
      position = before[position]
    }
    return kept.reversed()
  }
}
