// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// The outcome of each frame period, as counted by the script.
private struct Log: Equatable {
  var stored = 0
  var corrupt = 0
  var lostStart = 0
  var lostDevice = 0
  var lostKernel = 0
}

/// Runs a capture loop over a scripted driver with a queue that never fills, and counts frames and
/// losses.
private func capture(
  _ steps: [ScriptedDriver.Step], rate: FrameRate, limit: CaptureLimit = CaptureLimit(),
  capacity: Int = 64 << 20,
  integrityCheck: FrameIntegrityCheck = FrameIntegrityCheck(byteCount: nil, isJPEG: false)
) throws -> Taken {
  let driver = ScriptedDriver(steps)
  let queue = try FrameQueue(
    capacity: capacity, largestFrame: min(300_000, capacity / 3),
    recordCount: max(16, steps.count))
  let control = CaptureControl()
  let take = TakeSink(limit: limit, queue: queue, control: control, endsCapture: true)
  var loop = CaptureLoop(
    pool: BufferPool(driver), frameRate: rate, integrityCheck: integrityCheck, control: control,
    sinkList: SinkList([take]))
  if (try? loop.start()) != nil { _ = loop.run() }
  let end = try #require(take.end)
  var account = FrameAccount(frameRate: rate, trustsCounter: false) {
    control.switchedOn.load(ordering: .relaxed)
  }
  var frames: [FrameObservation] = []
  while let frame = queue.withNextFrame({ $0 }) {
    if frame.observation.outcome == .taken { frames.append(frame.observation) }
    account.record(frame.observation)
  }
  account.close(end.frames)
  #expect(account.ledger.isBalanced)
  return Taken(end: end, account: account, frames: frames, driver: driver)
}

/// Runs a capture loop with one sink until its driver ends.
private func run(
  _ take: TakeSink, from pool: BufferPool, _ rate: FrameRate, _ control: CaptureControl
) throws {
  var loop = CaptureLoop(
    pool: pool, frameRate: rate,
    integrityCheck: FrameIntegrityCheck(byteCount: nil, isJPEG: false), control: control,
    sinkList: SinkList([take]))
  try loop.start()
  _ = loop.run()
}

private struct Taken {
  let end: CaptureEnd
  let account: FrameAccount
  let frames: [FrameObservation]
  let driver: ScriptedDriver
  var ledger: FrameLedger { account.ledger }
}

private func observation(_ number: Int64, _ rate: FrameRate, base: Int64 = 5_000_000) throws
  -> FrameObservation
{
  FrameObservation(
    sequence: UInt32(truncatingIfNeeded: number),
    microseconds: base + (try SyntheticDriver.microseconds(ofFrame: number, at: rate)))
}

struct CaptureLoopTests {
  @Test(arguments: 0..<200)
  func `Each injected capture fault is counted once by its cause`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let rate = FrameRate(240)
    var truth = Log()
    var steps: [ScriptedDriver.Step] = []
    // The sequence number wraps at 2^32 in the middle of some scripts.
    var number: Int64 = Bool.random(using: &random) ? Int64.random(in: 0...3, using: &random) : 0
    truth.lostStart = Int(number)
    var overruns: UInt32 = 0
    for period in 0..<2_000 {
      var current = try observation(number, rate)
      current.overrunsBefore = overruns
      overruns = 0
      let isCorrupt = Int.random(in: 0..<40, using: &random) == 0
      current.isMarkedCorrupt = isCorrupt
      steps.append(.frame(current, byteCount: isCorrupt ? 0 : 100))
      if isCorrupt { truth.corrupt += 1 } else { truth.stored += 1 }
      number += 1
      if period < 1_999, Int.random(in: 0..<25, using: &random) == 0 {
        let device = Int64.random(in: 0...3, using: &random)
        let kernel = Int64.random(in: 0...3, using: &random)
        truth.lostDevice += Int(device)
        truth.lostKernel += Int(kernel)
        overruns = UInt32(kernel)
        number += device + kernel
      }
      if Int.random(in: 0..<50, using: &random) == 0 { steps.append(.nothing) }
    }
    let taken = try capture(steps, rate: rate)
    let counted = Log(
      stored: Int(taken.ledger.stored), corrupt: Int(taken.ledger.corrupt),
      lostStart: Int(taken.ledger.lostStart), lostDevice: Int(taken.ledger.lostDevice),
      lostKernel: Int(taken.ledger.lostKernel))
    #expect(counted == truth)
    #expect(taken.ledger.expected == number)
    #expect(taken.driver.missingBuffers == 0)
    // Each gap must be where the sequence numbers jump.
    var missing: [Int64: Int64] = [:]
    for gap in taken.account.gaps { missing[gap.afterIndex, default: 0] += gap.count }
    var period: Int64 = -1
    for (index, frame) in taken.frames.enumerated() {
      period += 1 + (missing[Int64(index) - 1] ?? 0)
      #expect(period == Int64(frame.sequence))
    }
  }

  @Test(arguments: [(1 << 32, 0), (1 << 31, 6), (1 << 32, 6), (18_446_744_073_709_552, 0)])
  func `A driver clock wrap causes no gaps or wrong frame intervals`(
    count: Int64, zeros: Int
  ) throws {
    let rate = FrameRate(60)
    let wrap = (0..<zeros).reduce(count) { number, _ in number * 10 }
    let steps = (0..<60).map { period in
      // Frame 20 is late by 3 ms, and the clock wraps at that frame.
      let time = wrap - 333_000 + Int64(period) * 16_667 + (period == 20 ? 3_000 : 0)
      return ScriptedDriver.Step.frame(
        FrameObservation(
          sequence: UInt32(period), microseconds: period < 20 ? time : time &- wrap),
        byteCount: 10)
    }
    let taken = try capture(steps, rate: rate)
    #expect(taken.ledger.expected == 60 && taken.ledger.dropped == 0)
    let times = taken.frames.map(\.microseconds)
    #expect(!taken.frames.contains { $0.isClockJump })
    #expect(times[20] - times[19] == 19_667 && times[21] - times[20] == 13_667)
  }

  @Test func `Wrapped or repeated sequence numbers add no false gaps`() throws {
    let rate = FrameRate(60)
    // The sequence number of each frame, and the period in which it was really captured.
    let cases: [(numbers: [UInt32], periods: [Int64], expected: Int64, lost: Int64)] = [
      ([4_294_967_294, 4_294_967_295, 0, 1], [0, 1, 2, 3], 4, 0),
      ([4_294_967_294, 1, 2, 3], [0, 3, 4, 5], 6, 2),
      ([0, 1, 1, 2], [0, 1, 2, 3], 4, 0),
      ([0, 1, 2, 0, 1], [0, 1, 2, 3, 4], 5, 0),
      ([0, 1, 2, 0, 1], [0, 1, 2, 5, 6], 7, 2),
      ([0, 1, 3, 4, 5], [0, 1, 2, 3, 4], 5, 0),
      ([0, 1, 2, 3, 4], [0, 1, 4, 5, 6], 7, 2),
      ([0, 1, 2, 4, 5], [0, 1, 3, 4, 5], 6, 1),
      ([3, 4], [3, 4], 5, 0),
    ]
    for (numbers, periods, expected, lost) in cases {
      let steps = zip(numbers, periods).map {
        ScriptedDriver.Step.frame(
          FrameObservation(sequence: $0, microseconds: $1 * 16_667), byteCount: 10)
      }
      let taken = try capture(steps, rate: rate)
      #expect(taken.ledger.expected == expected, "\(numbers)")
      #expect(taken.frames.count == numbers.count)
      #expect(taken.ledger.lostDevice == lost, "\(numbers)")
    }
  }

  @Test(arguments: [(240, 1, 960), (60, 1, 240), (60_000, 1_001, 240), (120, 1, 480), (30, 1, 120)])
  func `A take has all frames that begin before its duration limit`(
    numerator: Int, denominator: Int, count: Int
  ) throws {
    let rate = FrameRate(Int(numerator), over: Int(denominator))
    let steps = try (0..<Int64(count + 20)).map {
      ScriptedDriver.Step.frame(try observation($0, rate), byteCount: 10)
    }
    let taken = try capture(
      steps, rate: rate, limit: CaptureLimit(duration: MediaTime(seconds: 4)))
    #expect(taken.frames.count == count)
    #expect(taken.ledger.expected == Int64(count))
    #expect(taken.ledger.dropped == 0)
    #expect(taken.end.stopReason == .duration)
    #expect(taken.driver.missingBuffers == 0)
  }

  @Test func `Frames lost just before the duration limit are counted`() throws {
    let rate = FrameRate(240)
    // Frames 236...239 are within the limit of one second and never arrive. Frames 240 and 241 are
    // after the limit.
    let steps = try (Array(0..<236) + [242]).map {
      ScriptedDriver.Step.frame(try observation(Int64($0), rate), byteCount: 10)
    }
    let taken = try capture(
      steps, rate: rate, limit: CaptureLimit(duration: MediaTime(seconds: 1)))
    #expect(taken.frames.count == 236)
    #expect(taken.ledger.lostDevice == 4)
    #expect(taken.ledger.expected == 240)
  }

  @Test func `A frame limit counts stored frames and not lost ones`() throws {
    let rate = FrameRate(240)
    let steps = try (0..<Int64(50)).map {
      ScriptedDriver.Step.frame(try observation($0 * 2, rate), byteCount: 10)
    }
    let taken = try capture(
      steps, rate: rate, limit: CaptureLimit(frameCount: 10))
    #expect(taken.frames.count == 10)
    #expect(taken.end.stopReason == .frames)
    #expect(taken.ledger.expected == 19)
  }

  @Test func `A frame that finds the queue full counts as a queue loss`() throws {
    let rate = FrameRate(240)
    let steps = try (0..<Int64(20)).map {
      ScriptedDriver.Step.frame(try observation($0, rate), byteCount: 300_000)
    }
    // The queue of 1 MiB has space for three of these frames, and is read only at the end.
    let taken = try capture(steps, rate: rate, capacity: 1 << 20)
    #expect(taken.frames.count == 3)
    #expect(taken.ledger.lostQueue == 17)
    #expect(taken.ledger.expected == 20)
  }

  @Test func `A stalled writer holds few driver buffers and loses no frame`() throws {
    let rate = FrameRate(240)
    let frames: [ScriptedDriver.Step] = try (0..<24).map {
      .frame(try observation($0, rate), byteCount: 4_096)
    }
    let shared = Mutex<(pool: BufferPool, queue: FrameQueue)?>(nil)
    let counts = Mutex<[Int]>([])
    let note: @Sendable () -> Void = {
      guard let (pool, queue) = shared.withLock({ $0 }) else { return }
      counts.withLock { $0 += [pool.heldCount, queue.heldCount] }
    }
    let takeAll: @Sendable () -> Void = {
      guard let (_, queue) = shared.withLock({ $0 }) else { return }
      for number in 0..<20 as Range<UInt32> {
        #expect(queue.withNextFrame { $0.observation.sequence } == number)
      }
    }
    let driver = ScriptedDriver(
      frames[..<20] + [.action(note), .action(takeAll), .action(note)] + frames[20...]
        + [.action(note)], bufferCount: 32)
    let pool = BufferPool(driver)
    let queue = try FrameQueue(capacity: 1 << 20, pool: pool)
    shared.withLock { $0 = (pool, queue) }
    defer { shared.withLock { $0 = nil } }
    let control = CaptureControl()
    let take = TakeSink(limit: CaptureLimit(), queue: queue, control: control, endsCapture: true)
    take.allow(keeping: pool.capacity)
    var loop = CaptureLoop(
      pool: pool, frameRate: rate,
      integrityCheck: FrameIntegrityCheck(byteCount: nil, isJPEG: false),
      control: control, sinkList: SinkList([take]))
    try loop.start()
    #expect(loop.run().stopReason == .duration)
    // Frames that waited in the queue, in three steps: twenty, none and four. The driver's buffers
    // hold eight of the twenty and all of the four.
    #expect(counts.withLock { $0 } == [8, 8, 0, 0, 4, 4])
    #expect(driver.missingBuffers == 4)
  }

  @Test(arguments: [false, true])
  func `A take copies frames if another output keeps camera buffers`(isAlone: Bool) throws {
    let rate = FrameRate(240)
    let frames = try (0..<Int64(4)).map { index in
      ScriptedDriver.Step.frame(try observation(index, rate), byteCount: 64)
    }
    let driver = ScriptedDriver(frames, bufferCount: 32)
    let pool = BufferPool(driver)
    let queue = try FrameQueue(capacity: 1 << 20, pool: pool)
    let control = CaptureControl()
    let take = TakeSink(
      limit: CaptureLimit(), queue: queue, control: control, endsCapture: true,
      copiesBesideOthers: true)
    let other = KeepingSink()
    (isAlone ? [take] : [take, other] as [any FrameSink]).share(pool.capacity)
    // The other sink may keep all buffers of the pool, since the take keeps none.
    #expect(other.allowed.load(ordering: .relaxed) == (isAlone ? -1 : pool.capacity))
    try run(take, from: pool, rate, control)
    #expect(queue.heldCount == (isAlone ? 4 : 0))
    #expect(queue.endNumber == 4)
  }

  @Test func `A deallocated frame queue returns its buffers to the driver`() throws {
    let rate = FrameRate(240)
    let driver = ScriptedDriver([.frame(try observation(0, rate), byteCount: 64)], bufferCount: 8)
    let pool = BufferPool(driver)
    do {
      let queue = try FrameQueue(capacity: 1 << 20, pool: pool)
      let control = CaptureControl()
      let take = TakeSink(limit: CaptureLimit(), queue: queue, control: control, endsCapture: true)
      take.allow(keeping: 4)
      try run(take, from: pool, rate, control)
      #expect(pool.heldCount == 1)
      // An unplugged device is abandoned when its last buffer is returned.
      pool.close()
      #expect(driver.abandonCount == 0)
    }
    #expect(pool.heldCount == 0)
    #expect(driver.abandonCount == 1)
    pool.close()
    #expect(driver.abandonCount == 1)
  }

  @Test func `A raw frame with too few bytes counts as corrupt`() throws {
    let rate = FrameRate(60)
    let steps = try [100, 99, 100, 0].enumerated().map {
      ScriptedDriver.Step.frame(try observation(Int64($0.offset), rate), byteCount: $0.element)
    }
    let taken = try capture(
      steps, rate: rate, integrityCheck: FrameIntegrityCheck(byteCount: 100, isJPEG: false))
    #expect(taken.frames.count == 2)
    #expect(taken.ledger.corrupt == 2)
    #expect(taken.account.gaps.map(\.afterIndex) == [0, 1])
  }

  @Test func `A driver failure ends the take and keeps its frames`() throws {
    let rate = FrameRate(60)
    let gone = MediaError(.deviceLost, "gone", recovery: "plug it in")
    let steps: [ScriptedDriver.Step] = [
      .frame(try observation(0, rate), byteCount: 10), .failure(gone),
    ]
    let taken = try capture(steps, rate: rate)
    #expect(taken.frames.count == 1)
    #expect(taken.end.stopReason == .deviceLost)
    #expect(taken.end.error == gone)
    #expect(taken.driver.missingBuffers == 0)
  }

  @Test func `Extreme driver timestamps do not crash the capture loop`() throws {
    let rate = FrameRate(1, over: 2_000_000_000)
    let extremes: [Int64] = [.max, .min, 0, -1, 9_223_372_020_000_000]
    for first in extremes {
      for second in extremes {
        let steps: [ScriptedDriver.Step] = [
          .frame(FrameObservation(sequence: 9_999, microseconds: first), byteCount: 1),
          .frame(FrameObservation(sequence: 4_000_000_000, microseconds: second), byteCount: 1),
        ]
        let taken = try capture(
          steps, rate: rate, limit: CaptureLimit(duration: MediaTime(seconds: .max)))
        #expect(taken.ledger.expected > 0)
      }
    }
  }
}

/// A sink that is allowed to keep buffers, but keeps none.
private final class KeepingSink: FrameSink {
  let allowed = Atomic<Int>(-1)
  var keeping: FrameKeeping { .always }
  func take(_ frame: inout DequeuedBuffer) -> StopReason? { nil }
  func end(_ end: CaptureEnd) {}
  func allow(keeping count: Int) { allowed.store(count, ordering: .relaxed) }
}
