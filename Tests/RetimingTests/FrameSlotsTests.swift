// SPDX-License-Identifier: Apache-2.0

import MediaTiming
import Retiming
import Testing

struct FrameSlotsTests {
  @Test(
    "The number of frames is the duration's, rounded up",
    arguments: [
      // Seconds, frames per second, ticks per second of the source, frames.
      ((11, 1), (30, 1), 12_800, 330), ((4, 1), (30, 1), 12_800, 120),
      ((41, 10), (30, 1), 12_800, 123), ((1, 1000), (30, 1), 12_800, 1),
      ((1, 100_000), (30, 1), 12_800, 1), ((1, 1), (30_000, 1001), 90_000, 30),
      // One tick too long makes no frame; a little more than that does.
      ((12_801, 12_800), (30, 1), 12_800, 30), ((128_011, 128_000), (30, 1), 12_800, 31),
      ((12_801, 12_800), (30, 1), 12_801, 31),
    ])
  func counts(
    duration: (Int64, Int64), rate: (Int64, Int64), ticks: Int64, expected: Int64
  ) throws {
    let slots = try FrameSlots(
      duration: Rational(Int128(duration.0), Int128(duration.1)),
      rate: FrameRate(rate.0, rate.1), sourceTick: Rational(1, Int128(ticks)))
    #expect(slots.count == expected)
  }

  @Test func `What cannot be cut into frames says so`() throws {
    let rate = try FrameRate(30, 1)
    for (duration, tick) in [(Rational(0), Rational(0)), (Rational(1), Rational(-1))] {
      let error = #expect(throws: RetimingError.self) {
        try FrameSlots(duration: duration, rate: rate, sourceTick: tick)
      }
      #expect(error?.code == .invalidMappings)
    }
    let huge = try Rational(.max, 7)
    let error = #expect(throws: RetimingError.self) {
      try FrameSlots(duration: huge, rate: rate, sourceTick: .zero)
    }
    #expect(error?.code == .notExact)
  }

  @Test("Each slot shows the last frame at or before it", arguments: 0..<500 as Range<UInt64>)
  func holdIsWhatAViewerSees(seed: UInt64) throws {
    var random = SeededGenerator(state: seed)
    let rates: [(Int64, Int64)] = [(30, 1), (24, 1), (30_000, 1001), (60, 1), (7, 3)]
    let (above, below) = rates.randomElement(using: &random) ?? (30, 1)
    let rate = try FrameRate(above, below)
    // Jittered, sometimes equal, sometimes on a slot exactly, sometimes late or past the end.
    var ticks: Int64 = .random(in: -200...2000, using: &random)
    let times = try (0..<Int.random(in: 1...60, using: &random)).map { _ in
      ticks +=
        [0, 1, 30, 200, 500, .random(in: 0...3000, using: &random)]
        .randomElement(using: &random) ?? 0
      return try Rational(Int128(ticks), 6000)
    }
    let duration = try Rational(.random(in: 1...30_000, using: &random), 6000)
    let slots = try FrameSlots(duration: duration, rate: rate, sourceTick: Rational(1, 6000))

    var sampler = HoldSampler(slots)
    var counts: [Int64] = []
    for time in times {
      if let count = try sampler.next(time) { counts.append(count) }
    }
    counts.append(sampler.finish())

    // Slot by slot: the last frame that is not after it, else the first.
    var expected = [Int64](repeating: 0, count: times.count)
    for slot in 0..<slots.count {
      let instant = try Rational(Int128(slot) * Int128(below), Int128(above))
      #expect(slots.seconds(of: slot) == instant)
      expected[times.lastIndex { $0 <= instant } ?? 0] += 1
    }
    #expect(counts == expected)
    #expect(counts.reduce(0, +) == slots.count)

    // The count itself, by trying: the last slot starts before the end, and the next would have
    // no more than a tick left.
    let end = slots.seconds(of: slots.count)
    #expect(try duration.subtracting(end) <= Rational(1, 6000))
    if slots.count > 1 {
      #expect(try duration.subtracting(slots.seconds(of: slots.count - 1)) > Rational(1, 6000))
    }
  }

  @Test func `Frames out of order are refused, and no frame shows nothing`() throws {
    let slots = try FrameSlots(
      duration: Rational(1), rate: FrameRate(30, 1), sourceTick: Rational(1, 1000))
    var sampler = HoldSampler(slots)
    #expect(sampler.finish() == 0)
    #expect(try sampler.next(Rational(1, 2)) == nil)
    let error = #expect(throws: RetimingError.self) { try sampler.next(.zero) }
    #expect(error?.code == .notAscending)
    #expect(sampler.finish() == 30)
  }
}
