// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// A camera that delivers frames as fast as they are taken.
///
/// The suite is serialized, since each test uses all processors.
@Suite(.serialized) struct PaceTests {
  private func driver(
    rate: Int64 = 240, drop: Rational = .zero
  ) throws -> SyntheticDriver {
    var settings = SyntheticDriver.Settings(
      width: 128, height: 96, frameRate: FrameRate(Int(rate)), layout: .gray)
    (settings.pace, settings.dropShare, settings.seed) = (.maximum, drop, 7)
    return try SyntheticDriver(settings: settings, bufferCount: 4)
  }

  /// Takes frames and returns the sequence number and time of each.
  private func stamps(_ count: Int, of driver: SyntheticDriver) throws -> [FrameObservation] {
    try driver.start(keeping: [])
    defer { driver.stop() }
    var stamps: [FrameObservation] = []
    while stamps.count < count {
      guard let buffer = try driver.dequeue(timeoutMilliseconds: 1_000) else {
        try #require(!driver.hasEnded)
        continue
      }
      #expect(driver.microseconds() == buffer.observation.driverMicroseconds)
      stamps.append(buffer.observation)
      try buffer.giveBack()
    }
    return stamps
  }

  @Test func `A synthetic camera at maximum pace keeps exact frame times`() throws {
    let driver = try driver()
    #expect(driver.waitsForTakers)
    let stamps = try stamps(1_000, of: driver)
    #expect(stamps.map(\.sequence) == (0..<1_000).map { UInt32($0) })
    let times = try (0..<1_000 as Range<Int64>).map {
      driver.firstFrameMicroseconds
        + (try SyntheticDriver.microseconds(ofFrame: $0, at: FrameRate(240)))
    }
    #expect(stamps.map(\.microseconds) == times)
    #expect(stamps.allSatisfy { $0.overrunsBefore == 0 && !$0.isMarkedCorrupt })
    // The clock of a second stream continues from the first stream.
    let again = try self.stamps(10, of: driver)
    #expect(try #require(again.first).microseconds > times[999])
  }

  @Test func `Only frames dropped by request are lost at maximum pace`() throws {
    let driver = try driver(drop: Rational(1, over: 20))
    let kept = (0..<500 as Range<Int64>).filter { !driver.isDropped($0) }
    #expect(try stamps(kept.count, of: driver).map { Int64($0.sequence) } == kept)
  }

  @Test func `A synthetic camera without frames times out by its own clock`() throws {
    let driver = try driver(drop: .one)
    let control = CaptureControl()
    let queue = try FrameQueue(capacity: 1 << 20)
    let take = TakeSink(limit: CaptureLimit(), queue: queue, control: control, endsCapture: true)
    var loop = CaptureLoop(
      pool: BufferPool(driver), frameRate: FrameRate(240),
      integrityCheck: FrameIntegrityCheck(byteCount: 128 * 96, isJPEG: false), control: control,
      sinkList: SinkList([take]))
    try loop.start()
    #expect(loop.run().error?.code == .noFrames)
  }

  /// A sink that has no space until it requests the end of the capture, like a take with a slow
  /// writer.
  private final class FullSink: FrameSink {
    let control: CaptureControl
    let takenCount = Atomic<Int>(0)
    private let queryCount = Atomic<Int>(0)

    init(_ control: CaptureControl) { self.control = control }

    func take(_ frame: inout DequeuedBuffer) -> StopReason? {
      takenCount.wrappingAdd(1, ordering: .relaxed)
      return nil
    }

    func hasSpace(for byteCount: Int) -> Bool {
      guard queryCount.wrappingAdd(1, ordering: .relaxed).oldValue > 2 else { return false }
      control.stop(.duration)
      return true
    }

    func end(_ end: CaptureEnd) {}
  }

  @Test func `A frame waiting for queue space is left out if capture ends`()
    throws
  {
    let control = CaptureControl()
    let sink = FullSink(control)
    var loop = CaptureLoop(
      pool: BufferPool(try driver()), frameRate: FrameRate(240),
      integrityCheck: FrameIntegrityCheck(byteCount: 128 * 96, isJPEG: false), control: control,
      sinkList: SinkList([sink]))
    try loop.start()
    #expect(loop.run().stopReason == .duration)
    #expect(sink.takenCount.load(ordering: .relaxed) == 0)
  }

  @Test func `Outputs at maximum pace get every frame and all audio`() async throws {
    let camera = try CaptureDevice.named("synthetic:128x96@240?pace=max")
    let session = try CaptureSession(
      device: camera, format: camera.format(matching: ModeRequest(parsing: "/grey")))
    let (fast, slow, audio) = (VideoDataOutput(), VideoDataOutput(), AudioDataOutput())
    slow.alwaysDiscardsLateVideoFrames = false
    for output in [fast, slow] { try await session.addOutput(output) }
    try await session.addOutput(audio)
    let seen = Mutex<[UInt32]>([])
    fast.setSampleBufferHandler { sample in
      seen.withLock { $0.append(sample.attachments.sequence) }
    }
    let heard = Mutex<(next: Int64, isWhole: Bool, end: MediaTime)>((0, true, .zero))
    audio.setSampleBufferHandler { block in
      let expected = SyntheticAudio().samples(from: block.position, count: block.sampleCount)
      heard.withLock { heard in
        heard.isWhole =
          heard.isWhole && block.gapBefore == nil && block.position == heard.next
          && block.samples(ofChannel: 0) == expected
        heard.next = block.position + Int64(block.sampleCount)
        heard.end = block.presentationTimeStamp
      }
    }
    try await session.startRunning()
    var last: SampleBuffer?
    var numbers: [UInt32] = []
    for await sample in slow.frames {
      numbers.append(sample.attachments.sequence)
      let number = sample.withBytes { bytes in
        FrameNumberPattern.read(width: 128, height: 96) { bytes[$1 * 128 + $0] }
      }
      #expect(number == Int(sample.attachments.sequence))
      last = sample
      if numbers.count == 480 { break }
    }
    #expect(numbers == (0..<480).map { UInt32($0) })
    let time = try #require(last).presentationTimeStamp
    last = nil
    await session.stopRunning()
    for output in [fast, slow] {
      #expect(output.ledger.dropped.isEmpty && output.ledger.isBalanced)
    }
    // Stopping does not wait for the handler, which may still have frames to process.
    let given = fast.ledger.delivered + fast.ledger.waiting
    while seen.withLock({ Int64($0.count) }) < given { await Task.yield() }
    let frames = seen.withLock { $0 }
    #expect(frames.count >= 480 && frames == (0..<UInt32(frames.count)).map { $0 })
    // The audio is complete, and ends near the last frame.
    #expect(audio.ledger.dropped.isEmpty && audio.ledger.isBalanced)
    let (isWhole, end) = heard.withLock { ($0.isWhole, $0.end) }
    #expect(isWhole)
    #expect(abs((end - time).doubleValue) < 0.2, "\(end) \(time)")
  }

  @Test func `At maximum pace an unread output blocks the camera`()
    async throws
  {
    let camera = try CaptureDevice.named("synthetic:128x96@240?pace=max")
    let session = try CaptureSession(device: camera, format: camera.fastestFormat())
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    while output.ledger.waiting == 0 { await Task.yield() }
    // Another output is added and removed while the camera is blocked.
    let other = VideoDataOutput()
    try await session.addOutput(other)
    session.removeOutput(other)
    #expect(session.isRunning && output.ledger.offered == 1)
    await session.stopRunning()
    #expect(!session.isRunning && output.ledger.dropped.isEmpty)
  }
}
