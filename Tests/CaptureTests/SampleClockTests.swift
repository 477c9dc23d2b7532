// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture

/// A least-squares line by the textbook formula over all timestamps, in integers relative to the
/// first timestamp.
private struct SlowLine {
  var stamps: [(sample: Int64, nanoseconds: Int64)] = []
  let rate: Int64
  /// The slope in nanoseconds per sample.
  ///
  /// It does not change while the timestamps span too little time.
  var slope: (rise: Int128, run: Int128)

  init(rate: Int64) {
    self.rate = rate
    slope = (1_000_000_000, Int128(rate))
  }

  /// The sums of x, y, x·x and x·y over all timestamps: x is the sample number and y the time.
  private var sums: (x: Int128, y: Int128, xx: Int128, xy: Int128) {
    var sums: (x: Int128, y: Int128, xx: Int128, xy: Int128) = (0, 0, 0, 0)
    for stamp in stamps {
      let x = Int128(stamp.sample - stamps[0].sample)
      let y = Int128(stamp.nanoseconds - stamps[0].nanoseconds)
      sums = (sums.x + x, sums.y + y, sums.xx + x * x, sums.xy + x * y)
    }
    return sums
  }

  mutating func observe(_ sample: Int64, _ nanoseconds: Int64) {
    stamps.append((sample, nanoseconds))
    if stamps.count > SampleClock.stampCapacity { stamps.removeFirst() }
    while stamps[0].sample < sample - SampleClock.longestSpan.samples { stamps.removeFirst() }
    guard nanoseconds - stamps[0].nanoseconds >= SampleClock.shortestSpan else { return }
    let (n, sums) = (Int128(stamps.count), sums)
    let rise = n * sums.xy - sums.x * sums.y
    let run = n * sums.xx - sums.x * sums.x
    let deviation = rise * Int128(rate) - 1_000_000_000 * run
    if deviation.magnitude * 1_000 <= (1_000_000_000 * run).magnitude { slope = (rise, run) }
  }

  /// The time of a sample, rounded down.
  func nanoseconds(ofSample sample: Int64) -> Int64 {
    let (n, sums) = (Int128(stamps.count), sums)
    let x = Int128(sample - stamps[0].sample)
    let above = sums.y * slope.run + slope.rise * (n * x - sums.x)
    let (quotient, remainder) = above.quotientAndRemainder(dividingBy: n * slope.run)
    return stamps[0].nanoseconds + Int64(remainder < 0 ? quotient - 1 : quotient)
  }
}

struct SampleClockTests {
  @Test(arguments: 0..<10)
  func `Audio sample times match an exact least-squares fit`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed) &+ 7)
    let rate = [8_000, 44_100, 48_000, 192_000].randomElement(using: &random) ?? 48_000
    let drift = Int64.random(in: -200...200, using: &random)
    let jitter = Int64.random(in: 0...5_000_000, using: &random)
    let period = Int64.random(in: 32...Int64(rate / 20), using: &random)
    var clock = SampleClock(nominalRate: Int64(rate))
    var slow = SlowLine(rate: Int64(rate))
    var sample = Int64.random(in: -1_000_000...1_000_000_000_000, using: &random)
    let first = sample
    let epoch = Int64.random(in: 0...1_000_000_000_000_000, using: &random)
    for round in 0..<1_500 {
      sample += period
      // Sometimes 40 timestamps in a row are missing.
      if Int.random(in: 0..<300, using: &random) == 0 { sample += 40 * period }
      let exact =
        Int128(sample - first) * 1_000_000_000 * 1_000_000
        / (Int128(rate) * Int128(1_000_000 + drift))
      let time = epoch + Int64(exact) + Int64.random(in: 0...jitter, using: &random)
      clock.observe(sample: sample, nanoseconds: time)
      slow.observe(sample, time)
      guard round % 50 == 0 || round > 1_490 else { continue }
      for ahead in [-period, 0, 1, 12_345] {
        let ours = clock.nanoseconds(ofSample: sample + ahead, rounding: .towardNegativeInfinity)
        #expect(ours == slow.nanoseconds(ofSample: sample + ahead), "stamp \(round)")
      }
    }
    let slope = Rational(slow.slope.rise, over: slow.slope.run)
    #expect(clock.nanosecondsPerSample == slope)
  }

  @Test(arguments: [-200, -50, 0, 50, 200] as [Int64], [44_100, 48_000, 96_000] as [Int64])
  func `Audio sample times are within 0.4 ms despite 4 ms of jitter`(
    drift: Int64, rate: Int64
  ) throws {
    var random = SeededGenerator(seed: UInt64(bitPattern: drift) &+ UInt64(rate))
    let jitter: Int64 = 4_000_000
    var clock = SampleClock(nominalRate: rate)
    func truth(_ sample: Int64) -> Int64 {
      Int64(Int128(sample) * 1_000_000_000 * 1_000_000 / (Int128(rate) * Int128(1_000_000 + drift)))
    }
    let seconds = 10
    var worst: Int64 = 0
    for number in 1...Int64(100 * seconds) {
      let sample = number * rate / 100
      clock.observe(
        sample: sample,
        nanoseconds: truth(sample) + Int64.random(in: 0...jitter, using: &random))
      guard number > 500 else { continue }
      let time = try #require(clock.nanoseconds(ofSample: sample, rounding: .halfAwayFromZero))
      // The measured times include the mean delay of the timestamps, half of the jitter.
      worst = max(worst, (time - truth(sample) - jitter / 2).magnitude.asInt64)
    }
    #expect(worst < 400_000, "\(worst) ns")
    let measured = 1_000_000_000 / clock.nanosecondsPerSample.doubleValue
    let partsPerMillion = (measured / Double(rate) - 1) * 1_000_000
    #expect(abs(partsPerMillion - Double(drift)) < 40, "\(partsPerMillion) ppm")
  }

  @Test func `An audio sample clock has no time before a first timestamp`() {
    var clock = SampleClock(nominalRate: 48_000)
    #expect(clock.nanoseconds(ofSample: 0, rounding: .towardZero) == nil && !clock.isSet)
    clock.observe(sample: 480, nanoseconds: 5_000_000_000)
    #expect(clock.nanoseconds(ofSample: 0, rounding: .towardZero) == 4_990_000_000)
    #expect(clock.nanoseconds(ofSample: 960, rounding: .towardZero) == 5_010_000_000)
    // A second timestamp of the same sample is ignored.
    clock.observe(sample: 480, nanoseconds: 6_000_000_000)
    #expect(clock.nanoseconds(ofSample: 480, rounding: .towardZero) == 5_000_000_000)
  }

  @Test func `Restarting an audio sample clock keeps the measured rate`() {
    var clock = SampleClock(nominalRate: 48_000)
    // The clock of the card is 100 ppm slow.
    for number in 0..<600 as Range<Int64> {
      clock.observe(sample: 480 * number, nanoseconds: 10_001_000 * number)
    }
    #expect(clock.samples(inNanoseconds: 10_001_000_000) == 480_000)
    clock.restart()
    #expect(!clock.isSet)
    clock.observe(sample: 1_000_000, nanoseconds: 70_000_000_000)
    #expect(
      clock.nanoseconds(ofSample: 1_480_000, rounding: .halfAwayFromZero) == 80_001_000_000)
  }

  @Test func `Extreme timestamps do not crash the audio sample clock`() {
    var random = SeededGenerator(seed: 99)
    let strange: [Int64] = [.min, .min + 1, -1, 0, 1, 1 << 24, 1 << 38, 1 << 62, .max]
    for _ in 0..<200 {
      var clock = SampleClock(nominalRate: strange.randomElement(using: &random) ?? 1)
      for _ in 0..<200 {
        let sample = strange.randomElement(using: &random) ?? 0
        let time = strange.randomElement(using: &random) ?? 0
        let (near, overflow) = sample.addingReportingOverflow(
          Int64.random(in: -5_000_000...5_000_000, using: &random))
        clock.observe(sample: overflow ? sample : near, nanoseconds: time)
        _ = clock.nanoseconds(ofSample: sample, rounding: .halfAwayFromZero)
        _ = clock.samples(inNanoseconds: time)
      }
    }
  }
}

extension UInt64 {
  fileprivate var asInt64: Int64 { Int64(clamping: self) }
}
