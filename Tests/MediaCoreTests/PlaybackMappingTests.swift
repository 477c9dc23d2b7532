// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore
import TestSupport
import Testing

/// Ramps, reversals and freeze frames, compared with a model that integrates the speed with
/// fractions of any size.
struct PlaybackMappingTests {
  @Test func `The source time in a speed ramp is the integral of the speed`() {
    forAll(RunSize.cases(250, full: 1_000)) { random in
      let item = try random.playback()
      for _ in 0..<4 {
        let time = try random.instant(in: item.mapping.target)
        let found = try item.mapping.sourceSeconds(of: time)
        let expected = item.model.source(at: Fraction(time))
        if Fraction(found).compared(to: expected) != 0 {
          return "\(item.mapping) at \(time) shows \(found), not \(expected.inLowestTerms)"
        }
      }
      return nil
    }
  }

  @Test func `Mapping a source time to a target tick rounds only once`() {
    forAll(600) { random in
      let item = try random.playback()
      let timescale: Int32 = random.pick([1, 24, 600, 15_360, 240_000, 1_000_000, 10_000_000])
      let rounding = random.pick(TimeRounding.allCases)
      let placing = try PlaybackTicks(item.mapping, timescale: timescale)
      for _ in 0..<3 {
        let span = item.mapping.sourceEnd - item.mapping.sourceStart
        let time =
          span * Rational(Int128(random.below(1_001)), over: 1_000) + item.mapping.sourceStart
        let tick = try placing.tick(at: time, rounding: rounding)
        if let wrong = item.model.complaint(
          tick, ofSource: Fraction(time), timescale: timescale, rounding: rounding)
        {
          return "\(item.mapping), source \(time), 1/\(timescale) s, \(rounding): \(wrong)"
        }
      }
      return nil
    }
  }

  @Test func `A split time mapping plays the same as the whole one`() {
    forAll(RunSize.cases(250, full: 1_000)) { random in
      let item = try random.playback()
      var parts = [item.mapping]
      for _ in 0..<4 {
        let index = random.below(parts.count)
        let cut = try MediaTime(random.instant(in: parts[index].target, steps: 8))
        guard parts[index].target.start < cut, cut < parts[index].target.end else { continue }
        let (before, after) = try parts[index].split(at: cut)
        parts.replaceSubrange(index...index, with: [before, after])
      }
      var end = item.mapping.target.start
      for part in parts {
        if part.target.start != end { return "\(part) does not start at \(end)" }
        end = part.target.end
        let time = try random.instant(in: part.target, steps: 97)
        let found = Fraction(try part.sourceSeconds(of: time))
        let expected = item.model.source(at: Fraction(time))
        if found.compared(to: expected) != 0 {
          return "\(part) at \(time) shows \(found), not \(expected.inLowestTerms)"
        }
      }
      return end == item.mapping.target.end ? nil : "the parts end at \(end)"
    }
  }

  @Test func `Reversing a time mapping twice restores the mapping`() {
    forAll(RunSize.cases(125, full: 500)) { random in
      let mapping = try random.playback().mapping
      let mirrored = try mapping.reversed()
      if try mirrored.reversed() != mapping {
        return "\(mapping) changed when it was reversed twice"
      }
      let time = try random.instant(in: mapping.target)
      let other = mapping.target.start.seconds + mapping.target.end.seconds - time
      return try mirrored.sourceSeconds(of: time) == mapping.sourceSeconds(of: other)
        ? nil : "\(mapping) reversed at \(time)"
    }
  }

  @Test func `A speed ramp meets the speeds of the neighboring segments`() throws {
    for easing in SpeedRamp.Easing.allCases {
      let ramp = SpeedRamp(
        from: .normal, to: try Speed(Rational(1, over: 8)), easing: easing)
      let source = MediaTime(seconds: 9)
      let duration = try ramp.targetDuration(of: source)
      #expect(duration == MediaTime(seconds: 16))
      let mapping = try PlaybackMapping(
        ramp, source: TimeRange(duration: source), target: TimeRange(duration: duration))
      #expect(try mapping.speed(at: .zero) == .one)
      #expect(try mapping.speed(at: Rational(16)) == Rational(1, over: 8))
      #expect(try mapping.speed(at: Rational(8)) == Rational(9, over: 16))
      #expect(try mapping.meanSpeed() == Speed(Rational(9, over: 16)))
      #expect(try mapping.reversed().speed(at: .zero) == Rational(-1, over: 8))
      // Each part has the speeds that the whole ramp has at the same times.
      let parts = try mapping.split(at: MediaTime(seconds: 3))
      let speed = try mapping.speed(at: Rational(3))
      #expect(try parts.before.speed(at: Rational(3)) == speed)
      #expect(try parts.after.speed(at: Rational(3)) == speed)
    }
  }

  @Test func `A linear ramp to 1/8x has played 25/36 of its source halfway`()
    throws
  {
    let ramp = SpeedRamp(from: .normal, to: try Speed(Rational(1, over: 8)))
    let range = try TimeRange(duration: MediaTime(seconds: 9))
    let mapping = try PlaybackMapping(
      ramp, source: range, target: TimeRange(duration: MediaTime(seconds: 16)))
    // The source time is 8 s · (1 + 9/16)/2.
    #expect(try mapping.sourceSeconds(of: Rational(8)) == Rational(25, over: 4))
    let tick = try mapping.ticks(
      ofSource: Rational(25, over: 4), timescale: 240_000, rounding: .halfAwayFromZero)
    #expect(tick == 8 * 240_000)
  }

  @Test func `A freeze frame maps its target range to one source time`() throws {
    let held = try PlaybackMapping(
      holding: MediaTime(seconds: 3),
      target: TimeRange(start: MediaTime(seconds: 1), end: MediaTime(seconds: 5)))
    for time in [1, 2, 5] as [Int64] {
      #expect(try held.sourceSeconds(of: Rational(time)) == Rational(3))
      #expect(try held.speed(at: Rational(time)) == .zero)
      #expect(
        try held.ticks(ofSource: Rational(time), timescale: 10, rounding: .towardZero) == 10)
    }
    #expect(try held.meanSpeed() == nil)
    #expect(held.line == nil && !held.isReversed)
    let last = try PlaybackMapping(
      holding: MediaTime(seconds: 3), isBefore: true,
      target: TimeRange(duration: MediaTime(seconds: 1)))
    #expect(last.isReversed && last != held)
    #expect(try held.reversed() == held)
    #expect(throws: MediaError.self) {
      try PlaybackMapping(holding: .zero, target: TimeRange(duration: .zero))
    }
  }

  @Test func `A time mapping that overflows throws an error`() {
    forAll(2_000) { random in
      let ends = try [random.time(), random.time(), random.time(), random.time()]
      let speeds = try [random.rational(), random.rational()]
      do {
        let ramp = try SpeedRamp(
          from: Speed(speeds[0]), to: Speed(speeds[1]),
          easing: random.pick(SpeedRamp.Easing.allCases))
        let mapping = try PlaybackMapping(
          ramp, source: TimeRange(start: ends[0], end: ends[1]),
          target: TimeRange(start: ends[2], end: ends[3]))
        _ = try mapping.sourceSeconds(of: random.rational())
        _ = try mapping.split(at: random.time())
        _ = try mapping.ticks(
          ofSource: random.rational(), timescale: random.timescale(),
          rounding: random.pick(TimeRounding.allCases))
        _ = try mapping.speed(at: random.rational())
      } catch is MediaError {}
      return nil
    }
  }
}

/// A model of a mapping: the integral of the speed by Simpson's rule, which is exact for
/// polynomials of the third degree.
private struct PlaybackModel {
  var (source, target): (TimeRange, TimeRange)
  /// The first and last speed, and whether the change is eased; nil for a constant speed.
  var ramp: (from: Fraction, to: Fraction, isEaseInOut: Bool)?
  var isReversed = false

  private static func whole(_ number: Int) -> Fraction { Fraction(BigInt(number), 1) }

  private func speed(_ u: Fraction) -> Fraction {
    guard let ramp else { return Self.whole(1) }
    let weight =
      ramp.isEaseInOut ? u * u * (Self.whole(3) - Self.whole(2) * u) : u
    return ramp.from + (ramp.to - ramp.from) * weight
  }

  private func integral(to u: Fraction) -> Fraction {
    let middle = speed(u * Fraction(1, 2)) * Self.whole(4)
    return (speed(Self.whole(0)) + middle + speed(u)) * u * Fraction(1, 6)
  }

  func source(at time: Fraction) -> Fraction {
    let (start, end) = (Fraction(target.start), Fraction(target.end))
    var u = (time - start) / (end - start)
    if u.compared(to: Self.whole(0)) < 0 { u = Self.whole(0) }
    if u.compared(to: Self.whole(1)) > 0 { u = Self.whole(1) }
    if isReversed { u = Self.whole(1) - u }
    let (first, last) = (Fraction(source.start), Fraction(source.end))
    return first + (last - first) * integral(to: u) / integral(to: Self.whole(1))
  }

  /// -1 if a source time plays before an output instant, 1 if the source time plays after that
  /// instant, otherwise 0.
  private func order(_ time: Fraction, _ instant: Fraction) -> Int {
    // Outside of the target range the source does not move, so the side of the range decides.
    if instant.compared(to: Fraction(target.start)) < 0 { return 1 }
    if instant.compared(to: Fraction(target.end)) > 0 { return -1 }
    let order = time.compared(to: source(at: instant))
    return isReversed ? -order : order
  }

  /// Describes how a rounded tick is wrong, or returns nil.
  func complaint(
    _ tick: PlaybackTicks.RoundedTick, ofSource time: Fraction, timescale: Int32,
    rounding: TimeRounding
  ) -> String? {
    // The next lower tick is found by bisection. The bisection begins near the tick under test,
    // after a check that the exact instant is there.
    let scale = BigInt(timescale)
    func instant(_ twice: BigInt) -> Fraction { Fraction(twice, 2 * scale) }
    let found = 2 * BigInt(tick.ticks)
    var low = max(
      Fraction(target.start).above * 2 * scale / Fraction(target.start).below - 2, found - 4)
    var high = min(
      Fraction(target.end).above * 2 * scale / Fraction(target.end).below + 4, found + 4)
    guard low < high, order(time, instant(low)) >= 0, order(time, instant(high)) < 0 else {
      return "\(tick.ticks), which is more than two ticks off"
    }
    while high - low > 1 {
      let middle = (low + high) / 2
      if order(time, instant(middle)) >= 0 { low = middle } else { high = middle }
    }
    // The exact instant is at `low` half ticks, or between `low` and the next half tick.
    let isOnHalf = order(time, instant(low)) == 0
    let quarters = Fraction(2 * low + (isOnHalf ? 0 : 1), 4)
    let expected = quarters.rounded(rounding, isFiner: false)
    guard BigInt(tick.ticks) == expected else { return "\(tick.ticks), not \(expected)" }
    // The reported rounding error is at least the true error, and not much larger.
    let error = Fraction(tick.error)
    let position = Fraction(BigInt(tick.ticks), scale)
    let slack = Fraction(1, 64 * scale)
    let nearest = [position - error, position + error].contains { side in
      order(time, side - slack) * order(time, side + slack) <= 0
    }
    let within = order(time, position - error) >= 0 && order(time, position + error) <= 0
    return nearest && within ? nil : "an error of \(error) at \(tick.ticks)"
  }
}

extension SeededGenerator {
  /// A random time mapping with durations as in real movies, and its model.
  fileprivate mutating func playback() throws -> (mapping: PlaybackMapping, model: PlaybackModel) {
    let scales: [Int32] = [1, 24, 240, 600, 1_001, 15_360, 48_000, 90_000, 240_000]
    func range(_ random: inout SeededGenerator) throws -> TimeRange {
      let scale = random.pick(scales)
      let start = try random.time(bits: 24, timescale: scale)
      let length = Int64(1 + random.below(1 << 22))
      return try TimeRange(
        start: start, end: MediaTime(start.value + length, over: scale))
    }
    let (source, target) = (try range(&self), try range(&self))
    var model = PlaybackModel(source: source, target: target)
    var mapping: PlaybackMapping
    if below(5) == 0 {
      mapping = PlaybackMapping(try TimeMapping(source: source, target: target))
    } else {
      func speed(_ random: inout SeededGenerator) throws -> Speed {
        try Speed(Rational(Int128(1 + random.below(32)), over: Int128(1 + random.below(32))))
      }
      let ramp = SpeedRamp(
        from: try speed(&self), to: try speed(&self), easing: pick(SpeedRamp.Easing.allCases))
      mapping = try PlaybackMapping(ramp, source: source, target: target)
      model.ramp = (
        Fraction(ramp.from.fraction), Fraction(ramp.to.fraction), ramp.easing == .easeInOut
      )
    }
    if below(2) == 0 {
      mapping = try mapping.reversed()
      model.isReversed = true
    }
    return (mapping, model)
  }

  /// A random fraction of a range, including both ends.
  fileprivate mutating func instant(in range: TimeRange, steps: Int = 1_000) throws -> Rational {
    range.duration * Rational(Int128(below(steps + 1)), over: Int128(steps)) + range.start.seconds
  }
}
