// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankFrameAccounting

/// What a camera says of its frames, and in which period each of them really came.
struct SaidFrames {
  /// What goes wrong with the numbers, one at a time.
  enum Fault: CaseIterable {
    /// Frames are lost, and counter and clock both tell.
    case loss
    /// Frames are lost, and the counter does not notice: only time tells.
    case silentLoss
    /// The counter jumps, and nothing is lost.
    case doubleCount
    /// A frame is lost, and the counter tells one frame too late.
    case lateGap
    /// The counter starts again at 0.
    case reset
    /// The counter stands still for one frame.
    case repeated
    /// The counter goes back a little.
    case backwards
    /// A frame's time is late by several periods, and the next comes in time.
    case lateFrame
    /// The clock wraps at 32 bits of microseconds.
    case clockWrap
  }

  var readings: [FrameObservation] = []
  var periods: [Int64] = []
  var counts: [Fault: Int] = [:]

  /// Makes `count` frames with a fault some time after the one before, when that has settled.
  init(
    count: Int, period: Double, jitter: Double, faults: [Fault], every distance: ClosedRange<Int>,
    start: UInt32, random: inout SeededGenerator
  ) {
    var place: Int64 = 0
    var sequence = start
    var clockOffset: Int64 = 0
    var delayedGap: UInt32 = 0
    var until = faults.isEmpty ? Int.max : 20 + Int.random(in: distance, using: &random)
    for index in 0..<count {
      var late = 0.0
      if index > 0 {
        place += 1
        sequence &+= 1 &+ delayedGap
        delayedGap = 0
      }
      // Of the very last frames nobody can say whether they are late or others lost.
      if index == until, index < count - 20, let fault = faults.randomElement(using: &random) {
        until = index + Int.random(in: distance, using: &random)
        counts[fault, default: 0] += 1
        let some = Int64.random(in: 1...4, using: &random)
        switch fault {
        case .loss:
          place += some
          sequence &+= UInt32(some)
        case .silentLoss: place += some
        case .doubleCount: sequence &+= 1
        case .lateGap:
          place += 1
          delayedGap = 1
        case .reset: sequence = 0
        case .repeated: sequence &-= 1
        case .backwards: sequence &-= UInt32(some + 1)
        case .lateFrame: late = Double.random(in: 1...5, using: &random)
        case .clockWrap: clockOffset -= 1 << 32
        }
      }
      let noise = Double.random(in: 0...1, using: &random) * jitter - jitter / 2
      let real = Int64((Double(place) + 10 + noise + late) * period)
      var said = FrameObservation(
        sequence: sequence, microseconds: 7_000_000_000 + real + clockOffset)
      said.arrival = 7_000_000_000 + Int64((Double(place) + 11 + max(0, late)) * period)
      readings.append(said)
      periods.append(place)
    }
  }

  /// The periods that the books find, by frame.
  func judged(granted period: Double) -> [Int64] {
    var clock = TimestampUnwrapper(period: Int64(period))
    var timeline = FrameTimeline(period: period)
    var steps: [Int64] = []
    for reading in readings {
      let (time, isJump) = clock.read(reading)
      timeline.add(
        .init(sequence: reading.sequence, microseconds: time, isClockJump: isJump))
      steps += timeline.steps
    }
    timeline.finish()
    steps += timeline.steps
    var place: Int64 = 0
    return steps.map {
      place += $0
      return place
    }
  }
}

struct FrameTimelineTests {
  @Test(arguments: SaidFrames.Fault.allCases, [240.0, 960, 119.88, 30])
  func `Each fault alone is found where it is, and nothing else`(
    fault: SaidFrames.Fault, rate: Double
  ) {
    for seed in 0..<20 {
      var random = SeededGenerator(seed: UInt64(seed))
      let said = SaidFrames(
        count: 3_000, period: 1e6 / rate, jitter: 0.3, faults: [fault], every: 3...40,
        start: UInt32(seed), random: &random)
      #expect((said.counts[fault] ?? 0) > 50)
      let judged = said.judged(granted: 1e6 / rate)
      let wrong = zip(judged, said.periods).enumerated().first { $1.0 != $1.1 }
      #expect(judged == said.periods, "seed \(seed), frame \(wrong?.offset ?? -1)")
      guard judged == said.periods else { break }
    }
  }

  @Test(arguments: 0..<40)
  func `Faults of all kinds together are each found where they are`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(1_000 + seed))
    let said = SaidFrames(
      count: 20_000, period: 1e6 / 240, jitter: 0.3, faults: SaidFrames.Fault.allCases,
      every: 8...40, start: seed % 2 == 0 ? 0 : .max - 5_000, random: &random)
    let judged = said.judged(granted: 1e6 / 240)
    let wrong = zip(judged, said.periods).enumerated().first { $1.0 != $1.1 }
    #expect(judged == said.periods, "frame \(wrong?.offset ?? -1)")
  }

  @Test(arguments: [1.0, 1.001, 0.9, 1.08, 2, 0.5, 10, 0.1])
  func `A driver's word on its rate need not be right`(error: Double) {
    var random = SeededGenerator(seed: 5)
    let said = SaidFrames(
      count: 2_000, period: 1e6 / 240, jitter: 0.2, faults: [.loss, .doubleCount], every: 20...60,
      start: 0, random: &random)
    let judged = said.judged(granted: 1e6 / 240 * error)
    let wrong = zip(judged, said.periods).enumerated().first { $1.0 != $1.1 }
    #expect(judged == said.periods, "frame \(wrong?.offset ?? -1)")
  }

  @Test func `Heavy jitter alone loses nothing`() {
    var random = SeededGenerator(seed: 6)
    let said = SaidFrames(
      count: 20_000, period: 1e6 / 960, jitter: 0.7, faults: [.lateFrame], every: 20...60,
      start: 0, random: &random)
    let judged = said.judged(granted: 1e6 / 960)
    let wrong = zip(judged, said.periods).enumerated().first { $1.0 != $1.1 }
    #expect(judged == said.periods, "frame \(wrong?.offset ?? -1)")
  }

  @Test func `A rate that halves and comes back is no loss`() {
    var readings: [FrameTimeline.Reading] = []
    var time: Int64 = 1_000_000
    for index in 0..<600 {
      readings.append(.init(sequence: UInt32(index), microseconds: time))
      time += (200..<400).contains(index) ? 8_333 : 4_167
    }
    var timeline = FrameTimeline(period: 1e6 / 240)
    var steps: [Int64] = []
    for reading in readings {
      timeline.add(reading)
      steps += timeline.steps
    }
    timeline.finish()
    steps += timeline.steps
    #expect(steps == [0] + Array(repeating: 1, count: 599))
  }

  @Test(arguments: [0, 0.2, 0.4, 0.6, 0.8, 1])
  func `A driver that catches up with its own delays has not become faster`(load: Double) {
    let period = 1e6 / 118.966
    for seed in 0..<8 {
      var random = SeededGenerator(seed: UInt64(seed))
      let readings = Self.lateThread(count: 250, period: period, load: load, random: &random)
      var timeline = FrameTimeline(period: period)
      var shortest = period
      var found: Int64 = 0
      for reading in readings {
        timeline.add(reading)
        found += timeline.steps.reduce(0, +)
        shortest = min(shortest, timeline.period)
      }
      timeline.finish()
      found += timeline.steps.reduce(0, +)
      let counted = Int64(readings[readings.count - 1].sequence &- readings[0].sequence)
      // Two frames of one number are two periods in the books.
      let repeated = zip(readings, readings.dropFirst()).count { $0.sequence == $1.sequence }
      #expect(found <= counted + Int64(repeated) + 30, "seed \(seed)")
      #expect(shortest > 0.75 * period, "seed \(seed)")
    }
  }

  /// What vivid's thread makes (vivid-kthread-cap.c): numbers are the time in periods, it sleeps
  /// in ticks of 4 ms, and from the beginning of its last round however long that took.
  private static func lateThread(
    count: Int, period: Double, load: Double, random: inout SeededGenerator
  ) -> [FrameTimeline.Reading] {
    let tick = 4_000.0
    var now = 0.0
    return (0..<count).map { _ in
      let begun = (now / tick).rounded(.down)
      let number = (begun * tick / period + 0.5).rounded(.down)
      let stall = Double.random(in: 0...10, using: &random) < load ? 45_000.0 : 0
      let work =
        1_000 + load * Double.random(in: 0...12_000, using: &random)
        + Double.random(in: 0...1, using: &random) * stall
      let reading = FrameTimeline.Reading(
        sequence: UInt32(number), microseconds: Int64(now + work / 2))
      now += work
      let ended = (now / tick).rounded(.down)
      let due = max(ended, ((number + 1) * period / tick + 0.5).rounded(.down))
      let noise = Double.random(in: 0...300, using: &random)
      now = max(now + 50, (begun + due - ended) * tick + noise)
      return reading
    }
  }
}
