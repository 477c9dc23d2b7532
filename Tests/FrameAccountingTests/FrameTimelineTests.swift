// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankFrameAccounting

/// The sequence numbers and timestamps that a camera reports, and the true period of each frame.
struct ReportedFrames {
  /// A kind of error in the sequence numbers or timestamps.
  enum Fault: CaseIterable {
    /// Frames are lost, and both the sequence number and the clock show it.
    case loss
    /// Frames are lost, and only the clock shows it.
    case silentLoss
    /// The sequence number jumps although no frame is lost.
    case doubleCount
    /// A frame is lost, and the sequence number shows it one frame too late.
    case lateGap
    /// The sequence number starts again at 0.
    case reset
    /// The sequence number stays the same for one frame.
    case repeated
    /// The sequence number goes back a little.
    case backwards
    /// The time of a frame is late by several periods, and the next frame is on time.
    case lateFrame
    /// The clock wraps at 2^32 microseconds.
    case clockWrap
  }

  var readings: [FrameObservation] = []
  var periods: [Int64] = []
  var counts: [Fault: Int] = [:]

  /// Creates `count` frames.
  ///
  /// Their faults are far enough apart for the timeline to recover.
  init(
    count: Int, period: Double, jitter: Double, faults: [Fault], every distance: ClosedRange<Int>,
    start: UInt32, random: inout SeededGenerator
  ) {
    var position: Int64 = 0
    var sequence = start
    var clockOffset: Int64 = 0
    var delayedGap: UInt32 = 0
    var until = faults.isEmpty ? Int.max : 20 + Int.random(in: distance, using: &random)
    for index in 0..<count {
      var late = 0.0
      if index > 0 {
        position += 1
        sequence &+= 1 &+ delayedGap
        delayedGap = 0
      }
      // Faults end before the last frames, where a late frame and a lost frame look the same.
      if index == until, index < count - 20, let fault = faults.randomElement(using: &random) {
        until = index + Int.random(in: distance, using: &random)
        counts[fault, default: 0] += 1
        let some = Int64.random(in: 1...4, using: &random)
        switch fault {
        case .loss:
          position += some
          sequence &+= UInt32(some)
        case .silentLoss: position += some
        case .doubleCount: sequence &+= 1
        case .lateGap:
          position += 1
          delayedGap = 1
        case .reset: sequence = 0
        case .repeated: sequence &-= 1
        case .backwards: sequence &-= UInt32(some + 1)
        case .lateFrame: late = Double.random(in: 1...5, using: &random)
        case .clockWrap: clockOffset -= 1 << 32
        }
      }
      let noise = Double.random(in: 0...1, using: &random) * jitter - jitter / 2
      let real = Int64((Double(position) + 10 + noise + late) * period)
      var reported = FrameObservation(
        sequence: sequence, microseconds: 7_000_000_000 + real + clockOffset)
      reported.arrival = 7_000_000_000 + Int64((Double(position) + 11 + max(0, late)) * period)
      readings.append(reported)
      periods.append(position)
    }
  }

  /// The period that the timeline assigns to each frame.
  func assigned(negotiated period: Double) -> [Int64] {
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
    var position: Int64 = 0
    return steps.map {
      position += $0
      return position
    }
  }
}

struct FrameTimelineTests {
  @Test(arguments: ReportedFrames.Fault.allCases, [240.0, 960, 119.88, 30])
  func `Frames get their true capture numbers despite one fault kind`(
    fault: ReportedFrames.Fault, rate: Double
  ) {
    for seed in 0..<20 {
      var random = SeededGenerator(seed: UInt64(seed))
      let reported = ReportedFrames(
        count: 3_000, period: 1e6 / rate, jitter: 0.3, faults: [fault], every: 3...40,
        start: UInt32(seed), random: &random)
      #expect((reported.counts[fault] ?? 0) > 50)
      let assigned = reported.assigned(negotiated: 1e6 / rate)
      let wrong = zip(assigned, reported.periods).enumerated().first { $1.0 != $1.1 }
      #expect(assigned == reported.periods, "seed \(seed), frame \(wrong?.offset ?? -1)")
      guard assigned == reported.periods else { break }
    }
  }

  @Test(arguments: 0..<40)
  func `Frames get their true capture numbers despite all faults`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(1_000 + seed))
    let reported = ReportedFrames(
      count: 20_000, period: 1e6 / 240, jitter: seed % 4 < 2 ? 0.3 : 0,
      faults: ReportedFrames.Fault.allCases,
      every: 8...40, start: seed % 2 == 0 ? 0 : .max - 5_000, random: &random)
    let assigned = reported.assigned(negotiated: 1e6 / 240)
    let wrong = zip(assigned, reported.periods).enumerated().first { $1.0 != $1.1 }
    #expect(assigned == reported.periods, "frame \(wrong?.offset ?? -1)")
  }

  @Test(arguments: [1.0, 1.001, 0.9, 1.08, 2, 0.5, 10, 0.1])
  func `A wrong driver frame rate does not disturb frame numbering`(error: Double) {
    var random = SeededGenerator(seed: 5)
    let reported = ReportedFrames(
      count: 2_000, period: 1e6 / 240, jitter: 0.2, faults: [.loss, .doubleCount], every: 20...60,
      start: 0, random: &random)
    let assigned = reported.assigned(negotiated: 1e6 / 240 * error)
    let wrong = zip(assigned, reported.periods).enumerated().first { $1.0 != $1.1 }
    #expect(assigned == reported.periods, "frame \(wrong?.offset ?? -1)")
  }

  @Test func `Jitter and late frames do not count as lost frames`() {
    var random = SeededGenerator(seed: 6)
    let reported = ReportedFrames(
      count: 20_000, period: 1e6 / 960, jitter: 0.7, faults: [.lateFrame], every: 20...60,
      start: 0, random: &random)
    let assigned = reported.assigned(negotiated: 1e6 / 960)
    let wrong = zip(assigned, reported.periods).enumerated().first { $1.0 != $1.1 }
    #expect(assigned == reported.periods, "frame \(wrong?.offset ?? -1)")
  }

  @Test func `A frame rate that halves for a while counts no frame as lost`() {
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
  func `Frames read late in bursts do not shorten the frame period`(load: Double) {
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
      // Two frames with the same sequence number count as two periods.
      let repeated = zip(readings, readings.dropFirst()).count { $0.sequence == $1.sequence }
      #expect(found <= counted + Int64(repeated) + 30, "seed \(seed)")
      #expect(shortest > 0.75 * period, "seed \(seed)")
    }
  }

  /// Simulates the frames of vivid's capture thread (vivid-kthread-cap.c).
  ///
  /// A sequence number is the elapsed time in periods. The thread sleeps in ticks of 4 ms, counted
  /// from the start of its last round.
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
