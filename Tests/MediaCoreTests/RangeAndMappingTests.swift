// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore
import TestSupport
import Testing

/// Properties of ``TimeRange``, ``TimeMapping``, ``Speed`` and ``FrameRate``.
struct RangeAndMappingTests {
  @Test func `Containment and overlap of time ranges are exact`() {
    forAll(.range) { random in
      let (first, second) = try (random.range(), random.range())
      let time = try random.time()
      let (start, end) = (Fraction(first.start), Fraction(first.end))
      let (otherStart, otherEnd) = (Fraction(second.start), Fraction(second.end))
      let isInside =
        start.compared(to: Fraction(time)) <= 0 && Fraction(time).compared(to: end) < 0
      if first.contains(time) != isInside { return "\(first) contains \(time)" }
      let holds = start.compared(to: otherStart) <= 0 && otherEnd.compared(to: end) <= 0
      if first.contains(second) != holds { return "\(first) contains \(second)" }
      if first.isEmpty != (start.compared(to: end) == 0) { return "\(first) is empty" }
      let latest = start.compared(to: otherStart) < 0 ? otherStart : start
      let earliest = end.compared(to: otherEnd) < 0 ? end : otherEnd
      let isShared = latest.compared(to: earliest) < 0
      if first.overlaps(second) != isShared { return "\(first) overlaps \(second)" }
      let shared = first.intersection(second)
      if (shared != nil) != isShared {
        return "\(first) meets \(second) in \(String(describing: shared))"
      }
      if let shared,
        Fraction(shared.start).compared(to: latest) != 0
          || Fraction(shared.end).compared(to: earliest) != 0
      {
        return "\(first) meets \(second) in \(shared)"
      }
      let duration = Result { () throws(MediaError) in try MediaTime(first.duration) }
      return complaint(.success(first.duration), expected: end - start)
        ?? complaint(duration, expected: end - start).map { "\(first) lasts \($0)" }
    }
  }

  @Test func `Adjacent ranges do not overlap`() throws {
    let (first, second) = try (range(0, 1), range(1, 2))
    #expect(!first.overlaps(second))
    #expect(first.intersection(second) == nil)
    #expect(try range(0, 2).intersection(range(1, 3)) == range(1, 2))
    #expect(code { _ = try range(2, 1) } == .emptyRange)
    let second1 = MediaTime(seconds: 1)
    #expect(
      code { _ = try TimeRange(start: second1, duration: MediaTime(seconds: -1)) } == .emptyRange)
    #expect(code { _ = try TimeRange(duration: MediaTime(seconds: -1)) } == .emptyRange)
    #expect(
      code { _ = try TimeRange(start: second1, duration: MediaTime(seconds: .max)) } == .overflow)
  }

  @Test func `A time mapping is exact in both directions or overflows`() {
    forAll(.anyMapping) { random in
      let (source, target) = try (random.range(), random.range())
      guard !source.isEmpty, !target.isEmpty else {
        let refusal = code { _ = try TimeMapping(source: source, target: target) }
        return refusal == .emptyRange ? nil : "\(source) to \(target) is mapped"
      }
      return try mappingComplaint(
        TimeMapping(source: source, target: target), at: random.rational(), mayOverflow: true)
    }
  }

  /// Times of the sizes for which the documentation promises no overflow.
  @Test func `A time mapping within the documented limits never overflows`() {
    forAll(.boundedMapping) { random in
      let bits = random.below(2) == 0 ? 53 : 32
      let scales = (0..<5).map { _ in Int32(1 + random.below(1_000_000)) }
      // Up to 2^53 ticks, both ends of a range have the same timescale. Below 2^32 ticks, the ends
      // of both ranges and the mapped time may have five different timescales.
      let source = try random.range(bits, scales[0], bits == 53 ? scales[0] : scales[1])
      let target = try random.range(bits, scales[2], bits == 53 ? scales[2] : scales[3])
      guard let source, let target else { return nil }
      let time = try random.time(bits: bits, timescale: scales[4]).seconds
      return try mappingComplaint(
        TimeMapping(source: source, target: target), at: time, mayOverflow: false)
    }
  }

  private func mappingComplaint(
    _ mapping: TimeMapping, at time: Rational, mayOverflow: Bool
  ) -> String? {
    let (source, target) = (mapping.source, mapping.target)
    let (start, end) = (Fraction(source.start), Fraction(source.end))
    let (targetStart, targetEnd) = (Fraction(target.start), Fraction(target.end))
    let speed = (end - start) / (targetEnd - targetStart)
    let there = mapping.targetSeconds(of: time)
    let back = mapping.sourceSeconds(of: time)
    let ratio = Result { () throws(MediaError) in try mapping.speed().fraction }
    let wrong =
      complaint(
        there, expected: (Fraction(time) - start) / speed + targetStart, mayOverflow: mayOverflow)
      ?? complaint(
        back, expected: (Fraction(time) - targetStart) * speed + start, mayOverflow: mayOverflow)
      ?? complaint(ratio, expected: speed)
    if let wrong { return "\(source) to \(target) at \(time): \(wrong)" }
    // If `mayOverflow` is false, an overflow is a mistake.
    for result in [there, back] where !mayOverflow && !result.isValid {
      return "\(source) to \(target) at \(time): \(result)"
    }
    return nil
  }

  @Test func `Frames captured at 240 fps play at 1/8 speed at 30 fps`() throws {
    let mapping = try TimeMapping(source: range(1, 2), target: range(5, 13))
    #expect(try mapping.speed() == Speed(Rational(1, over: 8)))
    #expect(
      mapping.targetSeconds(of: Rational(1 * 240 + 1, over: 240)) == Rational(5 * 30 + 1, over: 30))
    #expect(mapping.sourceSeconds(of: Rational(13)) == Rational(2))
  }

  @Test func `Frame rates are exact and ordered by their exact values`() {
    forAll(.frameRate) { random in
      let (above, below) = (random.int64(), random.int64())
      let quotient = Rational(Int128(above), over: Int128(below))
      let rate = Result { () throws(MediaError) in try FrameRate(quotient) }
      if FrameRate(exactly: quotient) != (try? rate.get()) { return "\(quotient), exactly" }
      let other = FrameRate(Int(random.timescale()), over: Int(random.timescale()))
      switch rate {
      case .success(let rate):
        let exact = Fraction(BigInt(above), BigInt(below))
        if Fraction(rate.framesPerSecond).compared(to: exact) != 0 {
          return "\(rate), not \(exact)"
        }
        if (rate < other) != (exact.compared(to: Fraction(other.framesPerSecond)) < 0) {
          return "\(rate) < \(other)"
        }
        let isPeriod =
          Fraction(rate.frameDuration).compared(to: Fraction(exact.below, exact.above)) == 0
        return try isPeriod && FrameRate(frameDuration: rate.frameDuration) == rate
          ? nil : "\(rate) lasts \(rate.frameDuration)"
      case .failure(let error):
        if below > 0, above <= 0 { return error.code == .notPositive ? nil : "\(error)" }
        // A rational number needs a denominator above zero.
        if below <= 0 { return error.code == .overflow ? nil : "\(error)" }
        let exact = Fraction(BigInt(above), BigInt(below)).inLowestTerms
        let fits = exact.above.fits(Int32.self) && exact.below.fits(Int32.self)
        return error.code == .overflow && !fits ? nil : "\(above)/\(below): \(error)"
      }
    }
  }

  @Test func `A speed is positive and divides durations exactly`() {
    forAll(.speed) { random in
      let (time, fraction) = try (random.time(), random.rational())
      guard fraction > .zero else {
        return code { _ = try Speed(fraction) } == .notPositive ? nil : "\(fraction) is a speed"
      }
      let speed = try Speed(fraction)
      if Fraction(speed.stretch).compared(to: Fraction(Rational.one) / Fraction(fraction))
        != 0
      {
        return "the stretch of \(speed) is \(speed.stretch)"
      }
      let duration = Result { () throws(MediaError) in try speed.targetDuration(of: time) }
      return complaint(duration, expected: Fraction(time) / Fraction(fraction)).map {
        "\(time) at \(speed): \($0)"
      }
    }
  }
}

private func range(_ start: Int64, _ end: Int64) throws -> TimeRange {
  try TimeRange(start: MediaTime(seconds: start), end: MediaTime(seconds: end))
}

extension SeededGenerator {
  fileprivate mutating func range() throws -> TimeRange {
    let (first, second) = try (time(), time())
    return try TimeRange(start: min(first, second), end: max(first, second))
  }

  /// A time range that is not empty, or nil if the random times made none.
  fileprivate mutating func range(
    _ bits: Int, _ startScale: Int32, _ endScale: Int32
  ) throws -> TimeRange? {
    let first = try time(bits: bits, timescale: startScale)
    let second = try time(bits: bits, timescale: endScale)
    let range = try TimeRange(start: min(first, second), end: max(first, second))
    return range.isEmpty ? nil : range
  }
}
