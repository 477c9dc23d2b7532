// SPDX-License-Identifier: Apache-2.0

/// The frame period of a range of frames, and the periods without a frame.
///
/// Only the times of the frames are used. Timestamps of drivers may be late, but never early. A
/// late frame is followed by a short interval and counts as no gap.
struct FrameGrid {
  /// The frame period in ticks.
  let period: Double
  /// The gaps in order: the index of the frame before the gap, and the number of missing frames.
  let gaps: [(after: Int, count: Int)]
  /// The number of periods from the first frame to the last.
  let periodCount: Int
  /// Whether the intervals are multiples of the period, apart from jitter.
  let isRegular: Bool

  /// The fraction of a period by which a regular interval may differ from a multiple of the period.
  private static let tolerance = 0.3
  /// The fraction of the intervals between frames that must be regular.
  private static let regularShare = 0.85
  /// The period in ticks below which one interval does not show whether it spans one period or two.
  private static let coarse = 2.0
  /// The number of frames examined after a long interval: short intervals there show that the frame
  /// at the end of the long one was late.
  private static let lookahead = 3

  /// Finds the period of the frames, and the missing frames.
  ///
  /// - Parameters:
  ///   - ticks: At least two times in ascending order.
  ///   - isExact: Whether it is known that the period is a whole number of ticks.
  init(_ ticks: ArraySlice<Int64>, isExact: Bool = false) {
    let intervals = zip(ticks, ticks.dropFirst()).map { Double($1 - $0) }
    let period = Self.period(intervals.sorted(), isExact)
    self.period = period
    let isCoarse = period < Self.coarse && !isExact
    self.isCoarse = isCoarse
    let regular = intervals.count { interval in
      let count = Self.periods(interval, period, isCoarse)
      return abs(interval - count * period) <= Self.tolerance * period + 1
    }
    isRegular = Double(regular) >= Self.regularShare * Double(intervals.count)
    var gaps: [(after: Int, count: Int)] = []
    var sum = 0
    for (offset, _) in intervals.enumerated() {
      let index = ticks.startIndex + offset
      var periods = Int.max
      for next in 0...Self.lookahead where index + 1 + next < ticks.endIndex {
        let distance = Double(ticks[index + 1 + next] - ticks[index])
        periods = min(periods, Int(Self.periods(distance, period, isCoarse)) - next)
      }
      periods = max(1, periods)
      sum += periods
      if periods > 1, isRegular { gaps.append((index, periods - 1)) }
    }
    self.gaps = gaps
    periodCount = isRegular ? sum : intervals.count
  }

  /// Whether the times are too coarse for every gap of one frame to be found.
  ///
  /// An interval of one period and one of two periods may then have the same number of ticks.
  let isCoarse: Bool

  /// Returns the nearest number of periods in a distance, at least 1.
  private static func periods(_ distance: Double, _ period: Double, _ isCoarse: Bool) -> Double {
    // An interval is rounded by up to a tick. If the period is below two ticks, only gaps of
    // several frames are certain.
    max(1, ((distance - (isCoarse ? 0.6 : 0)) / period).rounded())
  }

  /// Returns the period that explains the most intervals: the longest of those that explain about
  /// equally many.
  private static func period(_ sorted: [Double], _ isExact: Bool) -> Double {
    var best = (score: -1.0, period: max(1, sorted[sorted.count / 2]))
    // Late frames make intervals vary around the period, so the mean of the short intervals is
    // tried as a period too.
    let short = sorted.prefix { $0 <= 1.5 * sorted[sorted.count / 2] }
    let starts =
      [0.1, 0.25, 0.5, 0.75].map { sorted[Int(Double(sorted.count - 1) * $0)] }
      + [short.reduce(0, +) / Double(max(1, short.count))]
    for start in starts.map({ max(1, $0) }) {
      let found = refined(start, sorted, isExact)
      if found.score > best.score + 0.02
        || found.score > best.score - 0.02 && found.period > best.period
      {
        best = found
      }
    }
    return best.period
  }

  /// Returns the mean period near an estimate, and the fraction of the intervals that it explains.
  private static func refined(
    _ start: Double, _ sorted: [Double], _ isExact: Bool
  ) -> (score: Double, period: Double) {
    var period = start
    var score = 0.0
    for pass in 0..<4 {
      var (sum, periods, explained, single) = (0.0, 0.0, 0, 0)
      for interval in sorted {
        let rounding =
          isExact ? 0 : period < coarse ? 0.6 : pass < 2 ? min(1, 0.45 * period) : 0
        let count = max(1, ((interval - rounding) / period).rounded())
        guard count <= 8, abs(interval - count * period) <= tolerance * period + 1 else { continue }
        explained += 1
        if count == 1 { single += 1 }
        sum += interval
        periods += count
      }
      // A divisor of the period would also explain the intervals, but few intervals are as short as
      // this divisor.
      guard periods > 0, single * 5 >= sorted.count else { return (0, period) }
      period = sum / periods
      score = Double(explained) / Double(sorted.count)
    }
    return (score, period)
  }
}
