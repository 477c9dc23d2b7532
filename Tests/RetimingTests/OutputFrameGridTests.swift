// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

struct OutputFrameGridTests {
  @Test(
    "An export rounds a partial last frame up to a whole one",
    arguments: [
      // The duration in seconds, frames per second, source ticks per second, and the expected frame
      // count.
      ((11, 1), (30, 1), 12_800, 330), ((4, 1), (30, 1), 12_800, 120),
      ((41, 10), (30, 1), 12_800, 123), ((1, 1000), (30, 1), 12_800, 1),
      ((1, 100_000), (30, 1), 12_800, 1), ((1, 1), (30_000, 1001), 90_000, 30),
      // A duration that is one tick too long adds no output frame. A duration that is more than one
      // tick too long does.
      ((12_801, 12_800), (30, 1), 12_800, 30), ((128_011, 128_000), (30, 1), 12_800, 31),
      ((12_801, 12_800), (30, 1), 12_801, 31),
      // Here a tick is longer than an output frame. A remainder of nearly a whole output frame adds
      // one output frame, and a remainder below half adds none.
      ((29, 25), (30, 1), 25, 35), ((26, 25), (30, 1), 25, 31), ((59, 30), (25, 1), 30, 49),
    ])
  func counts(
    duration: (Int64, Int64), rate: (Int64, Int64), ticks: Int64, expected: Int64
  ) throws {
    let slots = try OutputFrameGrid(
      duration: Rational(Int128(duration.0), over: Int128(duration.1)),
      rate: FrameRate(Int(rate.0), over: Int(rate.1)), sourceTick: Rational(1, over: Int128(ticks)))
    #expect(slots.count == expected)
  }

  @Test func `The output frame grid refuses invalid durations`() throws {
    let rate = FrameRate(30)
    for (duration, tick) in [(Rational(0), Rational(0)), (Rational(1), Rational(-1))] {
      let error = #expect(throws: MediaError.self) {
        try OutputFrameGrid(duration: duration, rate: rate, sourceTick: tick)
      }
      #expect(error?.code == .invalidMappings)
    }
    let huge = Rational(.max, over: 7)
    let error = #expect(throws: MediaError.self) {
      try OutputFrameGrid(duration: huge, rate: rate, sourceTick: .zero)
    }
    #expect(error?.code == .notExact)
  }

  @Test(
    "Sampling by hold or nearest shows the due or nearest frame",
    arguments: 0..<500 as Range<UInt64>)
  func slotsShowWhatIsDueOrNearest(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let rates: [(Int64, Int64)] = [(30, 1), (24, 1), (30_000, 1001), (60, 1), (7, 3)]
    let (above, below) = rates.randomElement(using: &random) ?? (30, 1)
    let rate = FrameRate(Int(above), over: Int(below))
    // Frame times are jittered, sometimes equal, sometimes exactly on an output frame, sometimes
    // late or past the end.
    var tick: Int64 = .random(in: -200...2000, using: &random)
    let ticks = (0..<Int.random(in: 1...60, using: &random)).map { _ in
      tick +=
        [0, 1, 30, 200, 500, .random(in: 0...3000, using: &random)]
        .randomElement(using: &random) ?? 0
      return tick
    }
    let times = ticks.map { Rational(Int128($0), over: 6000) }
    let duration = Rational(.random(in: 1...30_000, using: &random), over: 6000)
    let slots = try OutputFrameGrid(
      duration: duration, rate: rate, sourceTick: Rational(1, over: 6000))

    func shown(_ sampling: FrameSampling) throws -> [Int] {
      let frames = try slots.frames(of: times, until: duration, sampling)
      #expect(zip(frames, frames.dropFirst()).allSatisfy { $0.parts != $1.parts })
      return frames.flatMap { Array(repeating: $0.parts[0].frame, count: Int($0.count)) }
    }
    func instant(_ slot: Int64) throws -> Rational {
      Rational(Int128(slot) * Int128(below), over: Int128(above))
    }

    // For each output frame, the held frame is the last source frame not after it, or else the
    // first source frame. The nearest frame is the earlier of two equally near frames, and the last
    // of frames with the same time.
    var held: [Int] = []
    var nearest: [Int] = []
    for slot in 0..<slots.count {
      #expect(slots.seconds(of: slot) == (try instant(slot)))
      // All times are in ticks, divided by the numerator of the frame rate.
      let due = slot * below * 6000
      held.append(ticks.lastIndex { $0 * above <= due } ?? 0)
      let minimum = ticks.map { abs($0 * above - due) }.min()
      let first = ticks.first { abs($0 * above - due) == minimum } ?? 0
      nearest.append(ticks.lastIndex(of: first) ?? 0)
    }
    #expect(try shown(.hold) == held)
    #expect(try shown(.nearest) == nearest)

    // The frame count is checked by its definition: the last output frame starts before the end,
    // and another one would have at most a tick left.
    let end = slots.seconds(of: slots.count)
    #expect(duration - end <= Rational(1, over: 6000))
    if slots.count > 1 {
      #expect(duration - slots.seconds(of: slots.count - 1) > Rational(1, over: 6000))
    }
  }

  @Test(
    "A blend weights each frame by its time in the output frame",
    arguments: 0..<100 as Range<UInt64>)
  func blendIsTheTimeOfEachFrame(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    // An output frame lasts 200 ticks.
    let (rate, scale): (Int64, Int128) = (30, 6000)
    var ticks: Int64 = 0
    let starts = (0..<Int.random(in: 1...60, using: &random)).map { _ in
      defer { ticks += [0, 7, 25, 200, 450].randomElement(using: &random) ?? 0 }
      return ticks
    }
    let end = ticks + .random(in: 1...300, using: &random)
    let slots = try OutputFrameGrid(
      duration: Rational(Int128(end), over: scale), rate: FrameRate(Int(rate)), sourceTick: .zero)
    let frames = try slots.frames(
      of: starts.map { Rational(Int128($0), over: scale) },
      until: Rational(Int128(end), over: scale),
      .blend)
    #expect(frames.reduce(0) { $0 + $1.count } == slots.count)
    var slot: Int64 = 0
    for image in frames {
      for _ in 0..<image.count {
        // The expected weights of source frames are counted tick by tick.
        var ticksOf: [Int: Int64] = [:]
        for tick in slot * 200..<min((slot + 1) * 200, end) {
          ticksOf[starts.lastIndex { $0 <= tick } ?? 0, default: 0] += 1
        }
        let total = ticksOf.values.reduce(0, +)
        #expect(image.parts.map(\.frame) == ticksOf.keys.sorted())
        for part in image.parts {
          let expected = Double(ticksOf[part.frame] ?? 0) / Double(total)
          #expect(abs(Double(part.share) / Double(image.total) - expected) < 1e-7)
        }
        slot += 1
      }
    }
  }

  @Test func `The output frame grid refuses frame times out of order`() throws {
    let slots = try OutputFrameGrid(
      duration: Rational(1), rate: FrameRate(30), sourceTick: Rational(1, over: 1000))
    for sampling in FrameSampling.allCases {
      #expect(try slots.frames(of: [], until: Rational(1), sampling) == [])
      let error = #expect(throws: MediaError.self) {
        try slots.frames(of: [Rational(1, over: 2), .zero], until: Rational(1), sampling)
      }
      #expect(error?.code == .notAscending)
      let alone = try slots.frames(of: [Rational(1, over: 2)], until: Rational(1), sampling)
      #expect(alone.map(\.count) == [30])
    }
  }
}
