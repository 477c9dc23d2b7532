// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The step of a driver's timestamps, estimated from the intervals of consecutive frames.
///
/// Some drivers take the time of a frame when a whole transfer completes. `uvcvideo` does so for an
/// isochronous camera: its transfers have up to 32 packets of 125 microseconds, so its timestamps
/// advance in steps of up to 4 ms. Drivers that wait in timer ticks have steps of 1, 4 or 10 ms. If
/// frames are closer together than the step, several frames have the same time.
struct TimestampQuantum {
  /// The step in microseconds.
  let microseconds: Double
  /// Whether all intervals are equal, so that the step may be a fraction of the interval.
  let isAssumed: Bool
  /// The distance between the mean and the median of the intervals, as a fraction of the step.
  ///
  /// Rounding makes two intervals of one frame rate, such as 4 and 8 ms. A late frame makes one
  /// interval longer and the next one shorter, so it does not change the mean.
  let meanShift: Double

  /// The number of intervals without which no step is estimated.
  private static let minimumCount = 12
  /// The least shift of the mean interval by rounding if some frames are late as well.
  private static let leastShift = 0.02
  /// The shortest step in microseconds.
  ///
  /// Shorter steps look like jitter, and never like a lost frame.
  static let shortest = 100.0
  /// The greatest distance of an interval from a multiple of the step, as a fraction of the step.
  static let tolerance = 0.12
  /// The jitter of intervals, in microseconds, in the order in which it is tried.
  ///
  /// A busy machine takes some times late. A step is found only if it is much longer than the jitter.
  private static let jitters = [shortest, 2 * shortest, 4 * shortest]
  /// The relative difference between two rates above which they are different rates, and not one
  /// rate measured with two crystals.
  private static let crystals = 0.002
  /// The greatest relative difference of intervals that count as equal.
  private static let spread = 0.04
  /// The duration of a packet of a high-speed bus, in microseconds.
  private static let packet = 125.0
  /// The longest step that is assumed from one repeated interval, in microseconds.
  private static let longestAssumed = 8_200.0

  /// Estimates the step of timestamps, or returns nil if none is apparent.
  ///
  /// - Parameters:
  ///   - intervals: The times between consecutive frames, in microseconds. The frame counter shows
  ///     no loss between the frames.
  ///   - period: The frame duration that the driver granted, in microseconds.
  init?(_ intervals: [Int64], granted period: Double) {
    guard intervals.count >= Self.minimumCount else { return nil }
    let sorted = intervals.sorted()
    guard Self.groups(of: sorted, jitter: Self.shortest).count > 1 else {
      guard let step = Self.assumed(from: sorted, granted: period) else { return nil }
      (microseconds, isAssumed, meanShift) = (step, true, 0)
      return
    }
    guard let step = Self.step(of: sorted), !Self.isLoss(step, sorted, granted: period) else {
      return nil
    }
    (microseconds, isAssumed) = (step, false)
    meanShift = Self.shift(of: sorted, step: step)
  }

  /// The distance between the mean and the median of intervals, as a fraction of the step.
  private static func shift(of sorted: [Int64], step: Double) -> Double {
    let mean = Double(sorted.reduce(0, +)) / Double(sorted.count)
    return abs(mean - Double(sorted[sorted.count / 2])) / step
  }

  /// The step of which all intervals are multiples, or nil.
  ///
  /// Intervals that occur once, because a frame was late, need not be multiples.
  private static func step(of sorted: [Int64]) -> Double? {
    for jitter in jitters {
      let groups = groups(of: sorted, jitter: jitter)
      let repeated = groups.filter { $0.count > 1 }
      let dropped = groups.count - repeated.count
      if dropped > 0, dropped * 6 <= sorted.count, let step = step(of: repeated),
        // Late frames do not change the mean interval, but rounding does.
        shift(of: Array(repeated.joined()), step: step) >= leastShift
      {
        return step
      }
      if let step = step(of: groups) { return step }
    }
    return nil
  }

  /// Whether an interval is a multiple of a step, as far as times are exact.
  static func isMultiple(_ interval: Double, of step: Double) -> Bool {
    let count = interval / step
    return abs(count - count.rounded()) <= tolerance
  }

  private static func step(of groups: [ArraySlice<Int64>]) -> Double? {
    let centers = groups.map { Double($0.reduce(0, +)) / Double($0.count) }
    guard let smallest = zip(centers.dropFirst(), centers).map(-).min() else { return nil }
    let sorted = groups.joined()
    guard sorted.count >= minimumCount else { return nil }
    // The step is fitted to all intervals.
    var (products, squares) = (0.0, 0.0)
    for interval in sorted {
      let count = (Double(interval) / smallest).rounded()
      products += Double(interval) * count
      squares += count * count
    }
    guard squares > 0 else { return nil }
    let step = products / squares
    let fits = sorted.allSatisfy { isMultiple(Double($0), of: step) }
    return fits && abs(step - smallest) <= tolerance * step ? step : nil
  }

  /// Whether intervals that differ by about one period are those of a camera that loses frames or
  /// delivers them late.
  ///
  /// Most intervals are then one granted period. If the driver rounds times, they are not.
  private static func isLoss(_ step: Double, _ sorted: [Int64], granted period: Double) -> Bool {
    guard abs(step / period - 1) < 0.25 else { return false }
    let median = Double(sorted[sorted.count / 2])
    let middle = Double(sorted[sorted.count * 3 / 4] - sorted[sorted.count / 4])
    return abs(median - period) <= crystals * period + min(middle, 2 * shortest)
  }

  /// Groups of intervals that differ only by jitter.
  private static func groups(of sorted: [Int64], jitter: Double) -> [ArraySlice<Int64>] {
    var groups: [ArraySlice<Int64>] = []
    var start = 0
    for index in sorted.indices.dropFirst()
    where Double(sorted[index] - sorted[index - 1]) >= jitter {
      groups.append(sorted[start..<index])
      start = index
    }
    groups.append(sorted[start...])
    return groups
  }

  /// The step if all intervals are equal although the driver granted another period, or nil.
  ///
  /// At 240 fps and a step of 4 ms, the first 23 intervals are 4 ms, and the next one is 8 ms. The
  /// intervals are then a whole number of packets.
  private static func assumed(from sorted: [Int64], granted period: Double) -> Double? {
    let mean = Double(sorted.reduce(0, +)) / Double(sorted.count)
    let packets = (mean / packet).rounded()
    guard packets >= 1, mean <= longestAssumed, abs(mean / packet / packets - 1) <= spread / 40,
      Double(sorted[sorted.count - 1] - sorted[0]) <= spread * mean,
      abs(mean / period - 1) > crystals
    else { return nil }
    return mean
  }
}
