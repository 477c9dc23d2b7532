// SPDX-License-Identifier: Apache-2.0

/// Divides the frames of a track where their rate changes permanently.
///
/// Cameras change their rate in dim light, and phones on purpose. The frames of each part have
/// a rate of their own. A single gap divides nothing.
package enum FrameRateSegments {
  /// The number of intervals that show a new rate.
  private static let window = 24
  /// The number of examined intervals that must agree on the new rate.
  private static let agreeing = 20

  /// Returns the ranges of frames with a constant rate, by index.
  ///
  /// Two ranges that follow each other share a frame, which ends the last interval of one and begins
  /// the first interval of the next.
  package static func ranges(of ticks: [Int64]) -> [ClosedRange<Int>] {
    guard ticks.count > 1 else { return ticks.isEmpty ? [] : [0...0] }
    let intervals = zip(ticks, ticks.dropFirst()).map { Double($1 - $0) }
    var ranges: [ClosedRange<Int>] = []
    var start = 0
    var index = 0
    var known = level(intervals, at: 0)?.median
    while index < intervals.count {
      defer { index += 1 }
      guard let level = level(intervals, at: index) else { continue }
      guard let last = known else {
        known = level.median
        continue
      }
      guard abs(level.median - last) > 1.01 + 0.2 * last, level.isSteady,
        abs(intervals[index] - level.median) <= tolerance(level.median)
      else { continue }
      ranges.append(start...index)
      start = index
      known = level.median
    }
    ranges.append(start...ticks.count - 1)
    return ranges.filter { $0.count > 1 }
  }

  private static func tolerance(_ interval: Double) -> Double { 0.2 * interval + 1.01 }

  /// The median interval of the window that begins at an index, and whether most intervals in the
  /// window agree with this median.
  private static func level(
    _ intervals: [Double], at index: Int
  ) -> (median: Double, isSteady: Bool)? {
    guard index + window <= intervals.count else { return nil }
    let values = intervals[index..<index + window]
    let median = values.sorted()[window / 2]
    let count = values.count { abs($0 - median) <= tolerance(median) }
    return (median, count >= agreeing)
  }
}
