// SPDX-License-Identifier: Apache-2.0
import MediaTiming
import TestSupport
import Testing

@testable import Capture

/// What became of each period, by the script's own account.
private struct Log: Equatable {
  var stored = 0
  var corrupt = 0
  var lostStart = 0
  var lostDevice = 0
  var lostKernel = 0
}

/// Runs the loop over a script with a queue that never fills, and gathers what was queued.
private func capture(
  _ steps: [ScriptedDriver.Step], rate: FrameRate, limit: CaptureLimit = CaptureLimit(),
  capacity: Int = 64 << 20, expectedByteCount: Int? = nil
) throws -> (summary: CaptureSummary, frames: [QueuedFrame], driver: ScriptedDriver) {
  let driver = ScriptedDriver(steps)
  let queue = try FrameQueue(capacity: capacity)
  var loop = CaptureLoop(
    driver: driver, frameRate: rate, expectedByteCount: expectedByteCount, limit: limit,
    queue: queue, control: CaptureControl())
  let summary = loop.run()
  var frames: [QueuedFrame] = []
  while let frame = queue.withNextFrame({ $0 }) { frames.append(frame) }
  return (summary, frames, driver)
}

private func stamp(_ number: Int64, _ rate: FrameRate, base: Int64 = 5_000_000) throws -> FrameStamp
{
  FrameStamp(
    sequence: UInt32(truncatingIfNeeded: number),
    microseconds: base + (try SyntheticDriver.microseconds(ofFrame: number, at: rate)))
}

private func add(_ missing: MissingFrames, to log: inout Log) {
  log.corrupt += Int(missing.corrupt)
  log.lostStart += Int(missing.lostStart)
  log.lostDevice += Int(missing.lostDevice)
  log.lostKernel += Int(missing.lostKernel)
}

struct CaptureLoopTests {
  @Test(arguments: 0..<200)
  func `Random faults are each counted once, for what they are`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let rate = try FrameRate(240, 1)
    var truth = Log()
    var steps: [ScriptedDriver.Step] = []
    // The number wraps at 2^32 in the middle of some scripts.
    var number: Int64 = Bool.random(using: &random) ? Int64.random(in: 0...3, using: &random) : 0
    truth.lostStart = Int(number)
    var overruns: UInt32 = 0
    for place in 0..<2_000 {
      var current = try stamp(number, rate)
      current.overrunsBefore = overruns
      overruns = 0
      let isCorrupt = Int.random(in: 0..<40, using: &random) == 0
      current.isCorrupt = isCorrupt
      steps.append(.frame(current, byteCount: isCorrupt ? 0 : 100))
      if isCorrupt { truth.corrupt += 1 } else { truth.stored += 1 }
      number += 1
      if place < 1_999, Int.random(in: 0..<25, using: &random) == 0 {
        let device = Int64.random(in: 0...3, using: &random)
        let kernel = Int64.random(in: 0...3, using: &random)
        truth.lostDevice += Int(device)
        truth.lostKernel += Int(kernel)
        overruns = UInt32(kernel)
        number += device + kernel
      }
      if Int.random(in: 0..<50, using: &random) == 0 { steps.append(.nothing) }
    }
    let (summary, frames, driver) = try capture(steps, rate: rate)
    var counted = Log()
    counted.stored = frames.count
    for frame in frames { add(frame.missing, to: &counted) }
    add(summary.trailing, to: &counted)
    #expect(counted == truth)
    #expect(summary.expected == number)
    #expect(driver.missingBuffers == 0)
    // Each frame's periods lead from the one before it exactly to it.
    var place: Int64 = -1
    for frame in frames {
      place += frame.periods
      #expect(place == Int64(frame.stamp.sequence))
      #expect(frame.periods == frame.missing.count + 1)
    }
  }

  @Test func `Numbers wrap, repeat and go back without a gap being made up`() throws {
    let rate = try FrameRate(60, 1)
    func steps(_ numbers: [UInt32]) -> [ScriptedDriver.Step] {
      numbers.enumerated().map {
        .frame(
          FrameStamp(sequence: $0.element, microseconds: Int64($0.offset) * 16_667),
          byteCount: 10)
      }
    }
    let cases: [(numbers: [UInt32], expected: Int64, lost: Int64)] = [
      ([4_294_967_294, 4_294_967_295, 0, 1], 4, 0),
      ([4_294_967_294, 1], 4, 2),
      ([0, 1, 1, 2], 4, 0),
      ([0, 1, 2, 0, 1], 5, 0),
      ([3, 4], 5, 0),
    ]
    for (numbers, expected, lost) in cases {
      let (summary, frames, _) = try capture(steps(numbers), rate: rate)
      #expect(summary.expected == expected, "\(numbers)")
      #expect(frames.count == numbers.count)
      #expect(frames.reduce(0) { $0 + $1.missing.lostDevice } == lost, "\(numbers)")
    }
  }

  @Test(arguments: [(240, 1, 960), (60, 1, 240), (60_000, 1_001, 240), (120, 1, 480), (30, 1, 120)])
  func `Four seconds are the frames that begin in them`(
    numerator: Int, denominator: Int, count: Int
  ) throws {
    let rate = try FrameRate(Int64(numerator), Int64(denominator))
    let steps = try (0..<Int64(count + 20)).map {
      ScriptedDriver.Step.frame(try stamp($0, rate), byteCount: 10)
    }
    let (summary, frames, driver) = try capture(
      steps, rate: rate, limit: CaptureLimit(duration: MediaTime(seconds: 4)))
    #expect(frames.count == count)
    #expect(summary.expected == Int64(count))
    #expect(summary.trailing == MissingFrames())
    #expect(summary.stopReason == .duration)
    #expect(driver.missingBuffers == 0)
  }

  @Test func `What is lost at the very end of a take is counted, and no more`() throws {
    let rate = try FrameRate(240, 1)
    // Frames 236...239 belong to the second and never arrive; 240 and 241 belong to no take.
    let steps = try (Array(0..<236) + [242]).map {
      ScriptedDriver.Step.frame(try stamp(Int64($0), rate), byteCount: 10)
    }
    let (summary, frames, _) = try capture(
      steps, rate: rate, limit: CaptureLimit(duration: MediaTime(seconds: 1)))
    #expect(frames.count == 236)
    #expect(summary.trailing.lostDevice == 4)
    #expect(summary.expected == 240)
  }

  @Test func `A number of frames is the number of frames in hand`() throws {
    let rate = try FrameRate(240, 1)
    let steps = try (0..<Int64(50)).map {
      ScriptedDriver.Step.frame(try stamp($0 * 2, rate), byteCount: 10)
    }
    let (summary, frames, _) = try capture(
      steps, rate: rate, limit: CaptureLimit(frameCount: 10))
    #expect(frames.count == 10)
    #expect(summary.stopReason == .frames)
    #expect(summary.expected == 19)
  }

  @Test func `A full queue loses frames under its own name, and later ones get through`() throws {
    let rate = try FrameRate(240, 1)
    let steps = try (0..<Int64(20)).map {
      ScriptedDriver.Step.frame(try stamp($0, rate), byteCount: 300_000)
    }
    // A mebibyte holds three such frames; nobody takes any out until the end.
    let (summary, frames, _) = try capture(steps, rate: rate, capacity: 1 << 20)
    #expect(frames.count == 3)
    #expect(summary.trailing.lostQueue == 17)
    #expect(summary.expected == 20)
  }

  @Test func `A short frame of pixels is a damaged one`() throws {
    let rate = try FrameRate(60, 1)
    let steps = try [100, 99, 100, 0].enumerated().map {
      ScriptedDriver.Step.frame(try stamp(Int64($0.offset), rate), byteCount: $0.element)
    }
    let (summary, frames, _) = try capture(steps, rate: rate, expectedByteCount: 100)
    #expect(frames.count == 2)
    #expect(frames[1].missing.corrupt == 1)
    #expect(summary.trailing.corrupt == 1)
  }

  @Test func `A driver that fails ends the take with what was captured`() throws {
    let rate = try FrameRate(60, 1)
    let gone = CaptureError(.deviceLost, "gone", hint: "plug it in")
    let steps: [ScriptedDriver.Step] = [
      .frame(try stamp(0, rate), byteCount: 10), .failure(gone),
    ]
    let (summary, frames, driver) = try capture(steps, rate: rate)
    #expect(frames.count == 1)
    #expect(summary.stopReason == .deviceLost)
    #expect(summary.error == gone)
    #expect(driver.missingBuffers == 0)
  }

  @Test func `No time that a driver gives traps`() throws {
    let rate = try FrameRate(1, 2_000_000_000)
    let extremes: [Int64] = [.max, .min, 0, -1, 9_223_372_020_000_000]
    for first in extremes {
      for second in extremes {
        let steps: [ScriptedDriver.Step] = [
          .frame(FrameStamp(sequence: 9_999, microseconds: first), byteCount: 1),
          .frame(FrameStamp(sequence: 4_000_000_000, microseconds: second), byteCount: 1),
        ]
        let (summary, _, _) = try capture(
          steps, rate: rate, limit: CaptureLimit(duration: MediaTime(seconds: .max)))
        #expect(summary.expected > 0)
      }
    }
  }
}
