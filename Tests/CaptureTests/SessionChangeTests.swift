// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// The request `VIDIOC_STREAMON`.
private let streamOn: UInt = 0x4004_5612

/// Inputs of the cameras of a fake machine, each in its fastest mode.
///
/// A pause after each frame limits the pace.
private func inputs(_ machine: FakeVideoSystemCalls, _ count: Int) throws -> [DeviceInput] {
  machine.pace()
  return try DeviceSystem.$calls.withValue(machine) {
    try (0..<count).map { number in
      let camera = try CaptureDevice.named("/dev/fakevideo\(number)")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
  }
}

/// Claims about changes to a session while one of its inputs does not run.
@Suite(.serialized) struct SessionChangeTests {
  @Test func `A session with an unplugged camera can be reconfigured`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb unplug=50")
    let input = try inputs(machine, 1)[0]
    let session = CaptureSession(input, retryMilliseconds: 1)
    try await session.setSessionPreset(.low)
    let outputs = [VideoDataOutput(), VideoDataOutput()]
    try await session.addOutput(outputs[0])
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
    #expect(session.isInterrupted)
    session.removeOutput(outputs[0])
    try await session.addOutput(outputs[1])
    #expect(session.outputs.count == 1 && session.outputs.first === outputs[1])
    // Only a change of the preset requests the camera's modes.
    #expect(throws: MediaError.self) { try session.setSessionPreset(.high) }
    #expect(session.isInterrupted && session.sessionPreset == .low)
    await session.removeInput(input)
    #expect(session.inputs.isEmpty && !session.isInterrupted)
    let error = #expect(throws: MediaError.self) { try session.startRunning() }
    #expect(error?.code == .badConfiguration)
    await session.stopRunning()
  }

  @Test func `A failed camera restarts only when its session is started`()
    async throws
  {
    let machine = try FakeVideoSystemCalls("hfr-usb at=20:eio streamon-fails=2\nhfr-usb")
    let inputs = try inputs(machine, 2)
    let session = CaptureSession(inputs[0])
    try await session.addInput(inputs[1])
    let output = VideoDataOutput()
    try await session.addOutput(output)
    let events = session.events
    try await session.startRunning()
    for await case .runtimeError(let error) in events {
      #expect(error.code == .deviceFailed)
      break
    }
    #expect(session.isRunning && !session.isInterrupted)
    let starts = machine.callCount(streamOn)
    session.removeOutput(output)
    #expect(session.outputs.isEmpty)
    try await session.addOutput(output)
    #expect(machine.callCount(streamOn) == starts)
    // The first start of the failed camera fails and the second succeeds. The other camera keeps
    // running during both starts.
    let error = await #expect(throws: MediaError.self) { try await session.startRunning() }
    #expect(error?.code == .deviceFailed && session.isRunning)
    try await session.startRunning()
    var iterator = output.frames.makeAsyncIterator()
    #expect(try await iterator.next() != nil)
    #expect(machine.callCount(streamOn) == starts + 2)
    await session.stopRunning()
  }

  /// Two of three cameras have failed, and one of them does not start again at first.
  @Test func `A failed start of a running session stops what it started`() async throws {
    let machine = try FakeVideoSystemCalls(
      "hfr-usb\nhfr-usb at=20:eio\nhfr-usb at=20:eio streamon-fails=2")
    let inputs = try inputs(machine, 3)
    let session = CaptureSession(inputs[0])
    for input in inputs.dropFirst() { try await session.addInput(input) }
    let output = VideoDataOutput()
    try await session.addOutput(output)
    let events = session.events
    try await session.startRunning()
    var failures = 0
    for await case .runtimeError in events {
      failures += 1
      if failures == 2 { break }
    }
    #expect(session.runningInputs.count == 1 && session.runningInputs.first === inputs[0])
    let starts = machine.callCount(streamOn)
    let error = await #expect(throws: MediaError.self) { try await session.startRunning() }
    #expect(error?.code == .deviceFailed && machine.callCount(streamOn) == starts + 2)
    #expect(session.runningInputs.count == 1 && session.runningInputs.first === inputs[0])
    #expect(await output.frames.first { _ in true } != nil)
    // Both cameras start again, and soon fail again.
    try await session.startRunning()
    #expect(machine.callCount(streamOn) == starts + 4)
    await session.stopRunning()
  }

  @Test func `The session waits for a lost camera if a replacement fails`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb unplug=50 replug=1\nhfr-usb streamon-fails=1")
    let inputs = try inputs(machine, 2)
    let session = CaptureSession(inputs[0], retryMilliseconds: 1)
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
    session.beginConfiguration()
    await session.removeInput(inputs[0])
    try await session.addInput(inputs[1])
    let error = await #expect(throws: MediaError.self) {
      try await session.commitConfiguration()
    }
    #expect(error?.code == .deviceFailed && session.isInterrupted)
    #expect(session.inputs.count == 1 && session.inputs.first === inputs[0])
    let later = session.events
    machine.advance(nanoseconds: 2_000_000_000)
    for await event in later where event == .didStartRunning { break }
    #expect(session.isRunning && !session.isInterrupted)
    await session.stopRunning()
  }

  @Test func `A camera switch delays frames by at most two frame intervals`()
    async throws
  {
    // Both cameras use the machine's clock, which advances only while a camera waits for a frame.
    let machine = try FakeVideoSystemCalls("hfr-usb\nyuyv-1080p120 start=3")
    let inputs = try inputs(machine, 2)
    let session = CaptureSession(inputs[0])
    let output = VideoDataOutput()
    // Waits until the frame is taken, so that no frame is dropped as late.
    machine.pace { output.ledger.waiting == 0 }
    let seen = Mutex<(times: [MediaTime], count: Int, width: Int)>(([], 0, 0))
    output.setSampleBufferHandler { sample in
      seen.withLock { seen in
        seen.times.append(sample.presentationTimeStamp)
        if sample.formatDescription.width != seen.width { seen.count = 0 }
        (seen.count, seen.width) = (seen.count + 1, sample.formatDescription.width)
      }
    }
    try await session.addOutput(output)
    try await session.startRunning()
    func wait(forFramesOfWidth width: Int) async {
      while seen.withLock({ $0.width != width || $0.count < 20 }) { await Task.yield() }
    }
    await wait(forFramesOfWidth: inputs[0].format.width)
    session.beginConfiguration()
    await session.removeInput(inputs[0])
    try await session.addInput(inputs[1])
    try await session.commitConfiguration()
    await wait(forFramesOfWidth: inputs[1].format.width)
    await session.stopRunning()
    #expect(output.ledger.dropped.isEmpty && output.ledger.isBalanced)
    let times = seen.withLock { $0.times }
    let gaps = zip(times.dropFirst(), times).compactMap { $0 - $1 }
    // The new camera loses three frames before the first delivered frame.
    let frame = inputs[1].format.minFrameDuration.doubleValue
    #expect(gaps.count >= 39)
    #expect((gaps.max()?.doubleValue ?? 1) <= (2 + 4) * frame)
    machine.pace { true }
  }

  @Test func `A sample handler runs only on the executor given with it`() async throws {
    let executor = QueueExecutor()
    let session = CaptureSession(try inputs(FakeVideoSystemCalls("tiny"), 1)[0])
    let output = VideoDataOutput()
    let calls = Mutex((there: 0, elsewhere: 0))
    output.setSampleBufferHandler(on: executor) { _ in
      calls.withLock { if executor.isCurrent { $0.there += 1 } else { $0.elsewhere += 1 } }
    }
    try await session.addOutput(output)
    try await session.startRunning()
    while calls.withLock({ $0.there + $0.elsewhere < 20 }) { await Task.yield() }
    await session.stopRunning()
    #expect(calls.withLock { $0.elsewhere } == 0)
  }
}

/// A custom serial executor.
private final class QueueExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "frames")
  private let key = DispatchSpecificKey<Bool>()

  init() { queue.setSpecific(key: key, value: true) }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
