// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A linear model of a sound card's sample times, fitted through its timestamps.
///
/// Single timestamps jitter because of interrupt latency, and the card's crystal runs at a slightly
/// different rate than the system clock. A least-squares line through many timestamps corrects
/// both. The fit uses only integers. A timestamp that leaves the window is therefore subtracted
/// from the sums without a rounding error. Nothing is allocated after creation.
package struct SampleClock: Sendable {
  /// The greatest number of timestamps that one line is fitted through.
  static let stampCapacity = 1_024
  /// The greatest distance between the first and the last timestamp of a fit, in samples and in
  /// nanoseconds.
  static let longestSpan = (samples: Int64(1) << 24, nanoseconds: Int64(1) << 38)
  /// The shortest span of timestamps from which the rate is computed, in nanoseconds.
  ///
  /// Over a short span the slope mostly reflects jitter. Before this span is reached, the clock
  /// uses the rate of the previous fit, or the nominal rate if there is none.
  static let shortestSpan: Int64 = 2_000_000_000
  /// The greatest relative deviation of a measured rate from the nominal rate: 1 / `rateTolerance`.
  ///
  /// The crystals of sound cards deviate less, so a fit that deviates more is wrong and is not
  /// used.
  static let rateTolerance: Int128 = 1_000

  private struct Stamp {
    var sample: Int64
    var nanoseconds: Int64
  }

  /// Sums over the timestamps of a fit, each relative to one timestamp, the origin.
  ///
  /// A fit has at most 2^10 timestamps, which lie within 2^26 samples and 2^39 ns of the origin.
  /// All products below are therefore less than 2^126 and do not overflow.
  private struct Sums {
    var x: Int128 = 0
    var y: Int128 = 0
    var xx: Int128 = 0
    var xy: Int128 = 0

    mutating func add(_ x: Int64, _ y: Int64, _ sign: Int128) {
      let (x, y) = (Int128(x), Int128(y))
      self.x += sign * x
      self.y += sign * y
      xx += sign * x * x
      xy += sign * x * y
    }
  }

  /// The ratio of nanoseconds (`rise`) to samples (`run`, above zero).
  private struct Slope {
    var rise: Int128
    var run: Int128
  }

  /// The nominal sample rate of the card, in samples per second.
  package let nominalRate: Int64
  // This is a ring of `count` timestamps. The oldest is at `first`.
  private var stamps: [Stamp]
  private var first = 0
  private var count = 0
  private var origin = Stamp(sample: 0, nanoseconds: 0)
  private var sums = Sums()
  private var slope: Slope

  /// Creates a clock for a nominal sample rate from 1 to 2^20.
  package init(nominalRate: Int64) {
    self.nominalRate = min(max(1, nominalRate), 1 << 20)
    stamps = Array(
      repeating: Stamp(sample: 0, nanoseconds: 0), count: Self.stampCapacity)
    slope = Slope(rise: 1_000_000_000, run: Int128(self.nominalRate))
  }

  /// Whether the clock has at least one timestamp.
  package var isSet: Bool { count > 0 }

  /// The duration of a sample in nanoseconds, within 1/1000 of the nominal value.
  package var nanosecondsPerSample: Rational {
    // The slope's `run` is above zero, so the division is valid.
    Rational(slope.rise, over: slope.run)
  }

  /// Adds the timestamp of a sample.
  ///
  /// If the sample is not after the previous one, the timestamp is ignored. If the sample is
  /// farther than ``longestSpan`` from the first timestamp of the fit, a new fit starts.
  package mutating func observe(sample: Int64, nanoseconds: Int64) {
    let stamp = Stamp(sample: sample, nanoseconds: nanoseconds)
    if count > 0, sample <= kept(count - 1).sample { return }
    while count > 0, count == Self.stampCapacity || !reaches(stamp, from: kept(0)) {
      removeFirst()
    }
    if count == 0 {
      restart()
      origin = stamp
    } else if sample - origin.sample > 2 * Self.longestSpan.samples
      || (nanoseconds - origin.nanoseconds).magnitude > 2 * Self.longestSpan.nanoseconds
    {
      moveOrigin(to: kept(0))
    }
    stamps[(first + count) % Self.stampCapacity] = stamp
    count += 1
    sums.add(sample - origin.sample, nanoseconds - origin.nanoseconds, 1)
    fit()
  }

  /// Discards the timestamps and keeps the measured sample rate.
  ///
  /// Call this after a loss of an unknown number of samples, because the fitted line does not
  /// continue after the loss.
  package mutating func restart() {
    first = 0
    count = 0
    sums = Sums()
  }

  /// The time of a sample in nanoseconds of the timestamps' clock.
  ///
  /// Nil before the first timestamp, and for samples too far from the timestamps.
  package func nanoseconds(ofSample sample: Int64, rounding: TimeRounding) -> Int64? {
    guard let offset = offset(ofSample: sample) else { return nil }
    guard let rounded = try? offset.rounded(rounding) else { return nil }
    let (time, overflow) = origin.nanoseconds.addingReportingOverflow(Int64(rounded))
    return overflow ? nil : time
  }

  /// The number of samples in a duration below 2^50 ns, rounded to the nearest whole number.
  package func samples(inNanoseconds nanoseconds: Int64) -> Int64 {
    let limit = Int64(1) << 50
    let time = Int128(min(max(-limit, nanoseconds), limit))
    let count = Rational(time * slope.run, over: slope.rise)
    // The slope's `rise` and `run` are above zero, so the quotient is valid.
    return (try? Int64(count.rounded(.halfAwayFromZero))) ?? 0
  }

  /// The exact time of a sample relative to the origin of the fit, in nanoseconds.
  private func offset(ofSample sample: Int64) -> Rational? {
    guard count > 0 else { return nil }
    let (x, overflow) = sample.subtractingReportingOverflow(origin.sample)
    guard !overflow, x.magnitude <= 4 * Self.longestSpan.samples.magnitude else { return nil }
    let n = Int128(count)
    // The line passes through the mean of the timestamps, (Σx / n, Σy / n), where x is a sample
    // index and y is a time.
    let above = sums.y * slope.run + slope.rise * (n * Int128(x) - sums.x)
    return Rational(above, over: n * slope.run)
  }

  private mutating func fit() {
    let (first, last) = (kept(0), kept(count - 1))
    guard last.nanoseconds - first.nanoseconds >= Self.shortestSpan else { return }
    let n = Int128(count)
    let fitted = Slope(rise: n * sums.xy - sums.x * sums.y, run: n * sums.xx - sums.x * sums.x)
    let second: Int128 = 1_000_000_000
    let deviation = fitted.rise * Int128(nominalRate) - second * fitted.run
    guard fitted.run > 0,
      deviation.magnitude * Self.rateTolerance.magnitude <= (second * fitted.run).magnitude
    else { return }
    slope = fitted
  }

  private func kept(_ index: Int) -> Stamp { stamps[(first + index) % Self.stampCapacity] }

  private mutating func removeFirst() {
    let stamp = kept(0)
    sums.add(stamp.sample - origin.sample, stamp.nanoseconds - origin.nanoseconds, -1)
    first = (first + 1) % Self.stampCapacity
    count -= 1
  }

  private func reaches(_ stamp: Stamp, from other: Stamp) -> Bool {
    let (samples, tooMany) = stamp.sample.subtractingReportingOverflow(other.sample)
    let (time, tooLong) = stamp.nanoseconds.subtractingReportingOverflow(other.nanoseconds)
    return !tooMany && !tooLong && samples <= Self.longestSpan.samples
      && time.magnitude <= Self.longestSpan.nanoseconds.magnitude
  }

  /// Makes another timestamp the origin of the sums, so that the sums stay too small to overflow.
  private mutating func moveOrigin(to stamp: Stamp) {
    origin = stamp
    sums = Sums()
    for index in 0..<count {
      let other = kept(index)
      sums.add(other.sample - stamp.sample, other.nanoseconds - stamp.nanoseconds, 1)
    }
  }
}
