// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

private func synthetic(_ name: String = "synthetic:128x96@240") throws -> DeviceInput {
  let device = try CaptureDevice.named(name)
  return try DeviceInput(
    device: device, format: device.format(matching: ModeRequest(parsing: "/grey")))
}

// Serialized, since the capture threads of many sessions would use all processors.
@Suite(.serialized) struct CaptureSessionTests {
  /// The events of a session up to its stop.
  private func untilStop(_ events: some AsyncSequence<SessionEvent, Never>) async -> [SessionEvent]
  {
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .didStopRunning { break }
    }
    return seen
  }

  @Test func `Adding and removing inputs and outputs updates connections`() throws {
    let session = CaptureSession()
    let (camera, other) = (try synthetic(), try synthetic())
    let outputs = [VideoDataOutput(), VideoDataOutput()]
    #expect(session.canAddInput(camera) && session.canAddOutput(outputs[0]))
    try session.addInput(camera)
    #expect(!session.canAddInput(camera))
    #expect(throws: MediaError.self) { try session.addInput(camera) }
    for output in outputs { try session.addOutput(output) }
    #expect(!session.canAddOutput(outputs[1]))
    #expect(session.connections.count == 2)
    // An output is connected to only one camera, the first.
    try session.addInput(other)
    #expect(session.connections.allSatisfy { $0.input === camera })
    session.removeOutput(outputs[0])
    #expect(session.connections.map { $0.output === outputs[1] } == [true])
    session.removeInput(camera)
    #expect(session.connections.isEmpty && session.inputs.count == 1)
  }

  @Test func `Nested configuration changes apply at the last commit`() throws {
    let session = CaptureSession()
    let output = VideoDataOutput()
    session.beginConfiguration()
    try session.addInput(try synthetic())
    session.beginConfiguration()
    try session.addOutput(output)
    #expect(!session.canAddOutput(output))
    try session.commitConfiguration()
    #expect(session.inputs.isEmpty && session.outputs.isEmpty)
    try session.commitConfiguration()
    #expect(session.inputs.count == 1 && session.connections.count == 1)
    try session.commitConfiguration()  // An extra commit has no effect.
    #expect(session.inputs.count == 1)
  }

  @Test func `A session without inputs fails to start`() {
    let session = CaptureSession()
    let error = #expect(throws: MediaError.self) { try session.startRunning() }
    #expect(error?.code == .badConfiguration)
    #expect(!session.isRunning)
    session.stopRunning()
  }

  @Test func `A sample buffer stays intact after its session restarts`() async throws {
    let input = try synthetic()
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    var kept: SampleBuffer?
    for round in 0..<4 {
      try await session.startRunning()
      #expect(session.isRunning)
      var iterator = output.frames.makeAsyncIterator()
      var count = 0
      // Taking more frames than buffers exist would overwrite a buffer that is not kept.
      while count < 80, let sample = await iterator.next(isolation: #isolation) {
        count += 1
        if round == 0, count == 10 { kept = sample }
      }
      await session.stopRunning()
      #expect(!session.isRunning)
      let sample = try #require(kept)
      let number = sample.withBytes { bytes in
        FrameNumberPattern.read(width: 128, height: 96) { bytes[$1 * 128 + $0] }
      }
      #expect(number == Int(sample.attachments.sequence))
    }
    #expect(output.ledger.isBalanced)
    kept = nil
    session.removeOutput(output)
  }

  @Test func `Outputs can be added and removed while a session runs`() async throws {
    let session = CaptureSession(try synthetic())
    let first = VideoDataOutput()
    try await session.addOutput(first)
    try await session.startRunning()
    for _ in 0..<5 {
      let second = VideoDataOutput()
      try await session.addOutput(second)
      var iterator = second.frames.makeAsyncIterator()
      #expect(try await iterator.next() != nil)
      session.removeOutput(second)
      let offered = second.ledger.offered
      var other = first.frames.makeAsyncIterator()
      for _ in 0..<5 { #expect(try await other.next() != nil) }
      #expect(second.ledger.offered == offered)
    }
    await session.stopRunning()
  }

  @Test func `A session keeps its camera if a replacement cannot start`()
    async throws
  {
    let machine = try FakeVideoSystemCalls("hfr-usb busy=1")
    let broken = try? DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
    #expect(broken == nil)  // A busy device cannot become an input.
    let faulty = try FakeVideoSystemCalls("hfr-usb streamon-fails=1")
    let failing = try DeviceSystem.$calls.withValue(faulty) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
    let (one, two) = (try synthetic(), try synthetic("synthetic:192x96@240"))
    let session = CaptureSession(one)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    func width() async -> Int? {
      var iterator = output.frames.makeAsyncIterator()
      return await iterator.next(isolation: #isolation)?.formatDescription.width
    }
    #expect(await width() == 128)
    session.beginConfiguration()
    await session.removeInput(one)
    try await session.addInput(failing)
    let error = await #expect(throws: MediaError.self) {
      try await session.commitConfiguration()
    }
    #expect(error?.code == .deviceFailed)
    #expect(session.inputs.count == 1 && session.inputs.first === one && session.isRunning)
    #expect(await width() == 128)
    session.beginConfiguration()
    await session.removeInput(one)
    try await session.addInput(two)
    try await session.commitConfiguration()
    // Waiting frames of the first camera may still come before frames of the second one.
    var seen = await width()
    while seen == 128 { seen = await width() }
    #expect(seen == 192 && session.isRunning)
    await session.stopRunning()
    #expect(one.pool.heldCount == 0)
  }

  @Test func `An unplugged camera is given as the interruption reason`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb unplug=50")
    let input = try machine.input()
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    let events = session.events
    try await session.startRunning()
    let seen = await untilStop(events)
    #expect(seen.last == .didStopRunning)
    #expect(seen.contains(.wasInterrupted(input.device, .deviceGone)))
    #expect(output.ledger.offered == 50 && output.ledger.isBalanced)
    // Until it is stopped, an interrupted session keeps itself alive and waits for the device.
    await session.stopRunning()
    #expect(!session.isInterrupted)
  }

  @Test func `A capture input resumes when its camera is plugged in again`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb unplug=50 replug=1")
    machine.pace()
    let input = try machine.input()
    let session = CaptureSession(input, retryMilliseconds: 1)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    let events = session.events
    try await session.startRunning()
    var kept: SampleBuffer?
    var iterator = output.frames.makeAsyncIterator()
    kept = await iterator.next(isolation: #isolation)
    let (lost, bytes) = (input.pool, try #require(kept).withBytes { Array($0) })
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .didStopRunning {
        #expect(session.isInterrupted && !session.isRunning)
        machine.advance(nanoseconds: 2_000_000_000)
      }
      if event == .didStartRunning, seen.count > 1 { break }
    }
    #expect(
      seen == [
        .didStartRunning, .wasInterrupted(input.device, .deviceGone), .didStopRunning,
        .interruptionEnded(input.device, .deviceGone), .didStartRunning,
      ])
    #expect(session.isRunning && !session.isInterrupted)
    // The kept sample is unchanged, and new frames arrive.
    #expect(try #require(kept).withBytes { $0.elementsEqual(bytes) })
    let offered = output.ledger.offered
    // The first frame may have waited since before the interruption.
    repeat { _ = await iterator.next(isolation: #isolation) } while output.ledger.offered == offered
    _ = await iterator.next(isolation: #isolation)
    await session.stopRunning()
    #expect(lost.heldCount == 1 && lost !== input.pool)
    kept = nil
    #expect(lost.heldCount == 0)
    session.removeOutput(output)
    #expect(output.ledger.isBalanced)
  }

  @Test func `Stopping or removing the input ends a session interruption`()
    async throws
  {
    for removesInput in [false, true] {
      let machine = try FakeVideoSystemCalls("hfr-usb unplug=5 replug=1")
      machine.pace()
      let input = try machine.input()
      let session = CaptureSession(input, retryMilliseconds: 1)
      let events = session.events
      try await session.startRunning()
      for await event in events where event == .didStopRunning { break }
      #expect(session.isInterrupted)
      if removesInput { await session.removeInput(input) } else { await session.stopRunning() }
      #expect(!session.isInterrupted && !session.isRunning)
      // The next start opens the device again.
      machine.advance(nanoseconds: 2_000_000_000)
      if removesInput {
        await session.stopRunning()
        try await session.addInput(input)
      }
      try await session.startRunning()
      #expect(session.isRunning)
      await session.stopRunning()
    }
  }

  @Test func `A session preset applies to every camera or to none`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb\nmono-hfr")
    let inputs = try DeviceSystem.$calls.withValue(machine) {
      try (0..<2).map { number in
        let camera = try CaptureDevice.named("/dev/fakevideo\(number)")
        return try DeviceInput(device: camera, format: try camera.fastestFormat())
      }
    }
    machine.pace()
    let before = inputs.map(\.format.id)
    let session = CaptureSession(inputs[0])
    let output = VideoDataOutput()
    try await session.addOutput(output)
    #expect(session.canSetSessionPreset(.hd1280x720) && session.canSetSessionPreset(.low))
    try await session.setSessionPreset(.high)
    let formats = try DeviceSystem.$calls.withValue(machine) { try inputs[0].device.formats() }
    let largest = formats.map { $0.width * $0.height }.max()
    #expect(inputs[0].format.width * inputs[0].format.height == largest)
    try await session.startRunning()
    var iterator = output.frames.makeAsyncIterator()
    var kept = await iterator.next(isolation: #isolation)
    try await session.setSessionPreset(.low)
    #expect(session.isRunning && session.sessionPreset == .low)
    let smallest = formats.map { $0.width * $0.height }.min()
    #expect(inputs[0].format.width * inputs[0].format.height == smallest)
    // The sample that was kept has the old mode, and new frames have the new mode.
    var sample = await iterator.next(isolation: #isolation)
    while let next = sample, next.formatDescription.width != inputs[0].format.width {
      sample = await iterator.next(isolation: #isolation)
    }
    let old = try #require(kept?.formatDescription)
    #expect(sample != nil && old.width * old.height == largest)
    // The other camera does not support this size. So adding that camera fails, and the session
    // does not change.
    try await session.setSessionPreset(.hd1280x720)
    let mode = inputs[0].format.id
    let error = #expect(throws: MediaError.self) { try session.addInput(inputs[1]) }
    #expect(error?.code == .badConfiguration && session.inputs.count == 1)
    #expect(session.isRunning && inputs[0].format.id == mode)
    #expect(inputs[1].format.id == before[1])
    #expect(!CaptureSession(inputs[1]).canSetSessionPreset(.hd1280x720))
    try await session.setSessionPreset(.inputPriority)
    #expect(inputs[0].format.id == before[0])
    (kept, sample) = (nil, nil)
    await session.stopRunning()
  }

  @Test func `The photo preset selects the largest frame size`() throws {
    let machine = try FakeVideoSystemCalls("uvc-webcam;mono-hfr")
    try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let mono = try CaptureDevice.named("/dev/fakevideo2")
      #expect(SessionPreset.photo.format(among: try camera.formats())?.width == 1_920)
      #expect(SessionPreset.photo.format(among: try mono.formats())?.width == 1_280)
      for preset in SessionPreset.allCases {
        #expect(camera.supportsSessionPreset(preset))
        let isFixed = preset == .vga640x480 || preset == .hd1280x720
        #expect(mono.supportsSessionPreset(preset) != isFixed)
      }
    }
  }

  @Test func `A session can be restarted after a runtime error`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb at=20:eio")
    machine.pace()
    let input = try machine.input()
    let session = CaptureSession(input)
    let events = session.events
    try await session.startRunning()
    let seen = await untilStop(events)
    guard case .runtimeError(let error)? = seen.dropFirst().first else {
      Issue.record("no runtime error, but \(seen)")
      return
    }
    #expect(error.code == .deviceFailed && !session.isInterrupted)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    var iterator = output.frames.makeAsyncIterator()
    #expect(try await iterator.next() != nil)
    await session.stopRunning()
  }
}
