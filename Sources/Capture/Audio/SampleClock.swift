// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The line on which a sound card's samples lie in time, fitted through its time stamps.
///
/// Single stamps jitter by as much as the interrupt that took them was late, and a card's crystal
/// is not the clock's: the straight line of least squares through many stamps takes care of both.
/// The fit is in whole numbers throughout, so that the times are exact for the stamps seen, and a
/// stamp that leaves the window leaves no trace in the sums. It takes no memory after it is made.
package struct SampleClock: Sendable {
  /// The most stamps of a fit.
  static let stampCapacity = 1_024
  /// The most samples, and nanoseconds, from the first to the last stamp of a fit.
  static let longestSpan = (samples: Int64(1) << 24, nanoseconds: Int64(1) << 38)
  /// Until the stamps span so long, in nanoseconds, the rate is that of the card's label, or of
  /// the fit before: a slope through a few stamps says more of their jitter.
  static let shortestSpan: Int64 = 2_000_000_000
  /// How far the card's rate may be from its label, in parts of it: what is farther off is no
  /// crystal's doing.
  static let rateTolerance: Int128 = 1_000

  private struct Stamp {
    var sample: Int64
    var nanoseconds: Int64
  }

  /// Sums over the stamps, counted from the origin.
  ///
  /// With at most 2^10 stamps within 2^26 samples and 2^39 ns of it, every product below is less
  /// than 2^126.
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

  /// Nanoseconds (`rise`) in samples (`run`, above zero).
  private struct Slope {
    var rise: Int128
    var run: Int128
  }

  /// Samples a second by the card's label.
  package let nominalRate: Int64
  // A ring: `count` stamps from `first` on.
  private var stamps: [Stamp]
  private var first = 0
  private var count = 0
  private var origin = Stamp(sample: 0, nanoseconds: 0)
  private var sums = Sums()
  private var slope: Slope

  /// Makes the clock of a card that takes so many samples a second by its label, from 1 to 2^20.
  package init(nominalRate: Int64) {
    self.nominalRate = min(max(1, nominalRate), 1 << 20)
    stamps = Array(
      repeating: Stamp(sample: 0, nanoseconds: 0), count: Self.stampCapacity)
    slope = Slope(rise: 1_000_000_000, run: Int128(self.nominalRate))
  }

  /// Whether there is a stamp to go by.
  package var isSet: Bool { count > 0 }

  /// How long a sample lasts, in nanoseconds; within a thousandth of the label's.
  package var nanosecondsPerSample: Rational {
    // The run is above zero.
    Rational(slope.rise, over: slope.run)
  }

  /// Takes a stamp: that sample was heard at that time.
  ///
  /// One that is not about a later sample than the last says nothing new. One that is absurdly
  /// far from those before begins a new line.
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

  /// Forgets the stamps, but not the rate: samples were lost, nobody knows exactly how many.
  package mutating func restart() {
    first = 0
    count = 0
    sums = Sums()
  }

  /// When a sample is heard, in nanoseconds of the stamps' clock; nil before the first stamp, and
  /// for samples that are farther from the stamps than they may be from each other.
  package func nanoseconds(ofSample sample: Int64, rounding: TimeRounding) -> Int64? {
    guard let offset = offset(ofSample: sample) else { return nil }
    guard let rounded = try? offset.rounded(rounding) else { return nil }
    let (time, overflow) = origin.nanoseconds.addingReportingOverflow(Int64(rounded))
    return overflow ? nil : time
  }

  /// How many samples a time takes, rounded to the nearest; time in nanoseconds, below 2^50.
  package func samples(inNanoseconds nanoseconds: Int64) -> Int64 {
    let limit = Int64(1) << 50
    let time = Int128(min(max(-limit, nanoseconds), limit))
    let count = Rational(time * slope.run, over: slope.rise)
    // The rise is above zero, too.
    return (try? Int64(count.rounded(.halfAwayFromZero))) ?? 0
  }

  /// The exact time of a sample after the origin.
  private func offset(ofSample sample: Int64) -> Rational? {
    guard count > 0 else { return nil }
    let (x, overflow) = sample.subtractingReportingOverflow(origin.sample)
    guard !overflow, x.magnitude <= 4 * Self.longestSpan.samples.magnitude else { return nil }
    let n = Int128(count)
    // The line goes through the mean of the stamps, (Σx / n, Σy / n).
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

  /// Counts from another stamp on, so that the sums stay small.
  private mutating func moveOrigin(to stamp: Stamp) {
    origin = stamp
    sums = Sums()
    for index in 0..<count {
      let other = kept(index)
      sums.add(other.sample - stamp.sample, other.nanoseconds - stamp.nanoseconds, 1)
    }
  }
}
