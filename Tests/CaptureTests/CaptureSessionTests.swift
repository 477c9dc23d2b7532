// SPDX-License-Identifier: Apache-2.0
import FormatDiscovery
import MediaTiming
import Synchronization
import TestSupport
import Testing
import V4L2

@testable import Capture

private func synthetic(_ name: String = "synthetic:128x96@240") throws -> DeviceInput {
  let device = try CaptureDevice.named(name)
  return try DeviceInput(
    device: device, format: device.format(matching: ModeRequest(parsing: "/grey")))
}

struct CaptureSessionTests {
  @Test func `Connections are formed for each pair that goes together, and go with either`() throws
  {
    let session = CaptureSession()
    let (camera, other) = (try synthetic(), try synthetic())
    let outputs = [VideoDataOutput(), VideoDataOutput()]
    #expect(session.canAddInput(camera) && session.canAddOutput(outputs[0]))
    try session.addInput(camera)
    #expect(!session.canAddInput(camera))
    #expect(throws: CaptureError.self) { try session.addInput(camera) }
    for output in outputs { try session.addOutput(output) }
    #expect(!session.canAddOutput(outputs[1]))
    #expect(session.connections.count == 2)
    // An output has one camera: the first.
    try session.addInput(other)
    #expect(session.connections.allSatisfy { $0.input === camera })
    session.removeOutput(outputs[0])
    #expect(session.connections.map { $0.output === outputs[1] } == [true])
    session.removeInput(camera)
    #expect(session.connections.isEmpty && session.inputs.count == 1)
  }

  @Test func `Changes wait until the last commit`() throws {
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
    try session.commitConfiguration()  // One too many is nothing.
    #expect(session.inputs.count == 1)
  }

  @Test func `A session without an input says so and does not run`() {
    let session = CaptureSession()
    let error = #expect(throws: CaptureError.self) { try session.startRunning() }
    #expect(error?.code == .badConfiguration)
    #expect(!session.isRunning)
    session.stopRunning()
  }

  @Test func `A stream starts again, and what was kept over the stop is left alone`() async throws {
    let input = try synthetic()
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try session.addOutput(output)
    var kept: SampleBuffer?
    for round in 0..<4 {
      try session.startRunning()
      #expect(session.isRunning)
      var iterator = output.frames.makeAsyncIterator()
      var count = 0
      // More than there are buffers: a buffer that was not kept would be overwritten.
      while count < 80, let sample = await iterator.next() {
        count += 1
        if round == 0, count == 10 { kept = sample }
      }
      session.stopRunning()
      #expect(!session.isRunning)
      let sample = try #require(kept)
      let number = sample.withBytes { bytes in
        PaintedNumber.read(width: 128, height: 96) { bytes[$1 * 128 + $0] }
      }
      #expect(number == Int(sample.attachments.sequence))
    }
    #expect(output.ledger.addsUp)
    kept = nil
    session.removeOutput(output)
  }

  @Test func `Outputs come and go while the session runs`() async throws {
    let session = CaptureSession(try synthetic())
    let first = VideoDataOutput()
    try session.addOutput(first)
    try session.startRunning()
    for _ in 0..<5 {
      let second = VideoDataOutput()
      try session.addOutput(second)
      var iterator = second.frames.makeAsyncIterator()
      #expect(await iterator.next() != nil)
      session.removeOutput(second)
      let offered = second.ledger.offered
      var other = first.frames.makeAsyncIterator()
      for _ in 0..<5 { #expect(await other.next() != nil) }
      #expect(second.ledger.offered == offered)
    }
    session.stopRunning()
  }

  @Test func `A camera is switched in a running session, and its successor that fails is not`()
    async throws
  {
    let machine = try FakeDeviceCalls("hfr-usb busy=1")
    let broken = try? DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
    #expect(broken == nil)  // A busy device is no input to begin with.
    let faulty = try FakeDeviceCalls("hfr-usb streamon-fails=1")
    let failing = try DeviceSystem.$calls.withValue(faulty) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
    let (one, two) = (try synthetic(), try synthetic("synthetic:192x96@240"))
    let session = CaptureSession(one)
    let output = VideoDataOutput()
    try session.addOutput(output)
    try session.startRunning()
    func width() async -> Int? {
      var iterator = output.frames.makeAsyncIterator()
      return await iterator.next()?.formatDescription.width
    }
    #expect(await width() == 128)
    session.beginConfiguration()
    session.removeInput(one)
    try session.addInput(failing)
    let error = #expect(throws: CaptureError.self) { try session.commitConfiguration() }
    #expect(error?.code == .deviceFailed)
    #expect(session.inputs.count == 1 && session.inputs.first === one && session.isRunning)
    #expect(await width() == 128)
    session.beginConfiguration()
    session.removeInput(one)
    try session.addInput(two)
    try session.commitConfiguration()
    // What was lent of the first camera may still come before the second's.
    var seen = await width()
    while seen == 128 { seen = await width() }
    #expect(seen == 192 && session.isRunning)
    session.stopRunning()
    #expect(one.loans.lentCount == 0)
  }

  @Test func `A device that goes away is an interruption with its reason`() async throws {
    let machine = try FakeDeviceCalls("hfr-usb unplug=50")
    let input = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(device: camera, format: try camera.fastestFormat())
    }
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try session.addOutput(output)
    let events = session.events
    try session.startRunning()
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .didStopRunning { break }
    }
    #expect(seen.last == .didStopRunning)
    #expect(seen.contains(.wasInterrupted(.deviceGone)))
    #expect(output.ledger.offered == 50 && output.ledger.addsUp)
  }

  @Test(arguments: 0..<20)
  func `Whatever is done in whatever order, no buffer is missing at the end`(seed: Int) async throws
  {
    var random = SeededGenerator(seed: UInt64(seed) &+ 1_000)
    let input = try synthetic("synthetic:128x96@1000")
    let session = CaptureSession(input)
    var outputs: [VideoDataOutput] = []
    var kept: [SampleBuffer] = []
    for _ in 0..<60 {
      switch Int.random(in: 0..<9, using: &random) {
      case 0: try session.startRunning()
      case 1: session.stopRunning()
      case 2 where outputs.count < 4:
        let output = VideoDataOutput()
        output.alwaysDiscardsLateVideoFrames = Bool.random(using: &random)
        try session.addOutput(output)
        outputs.append(output)
      case 3:
        if let output = outputs.popLast() {
          session.removeOutput(output)
          #expect(output.ledger.addsUp)
        }
      case 4:
        if let connection = session.connections.randomElement(using: &random) {
          connection.isEnabled.toggle()
        }
      case 5: kept.removeAll()
      case 6: session.beginConfiguration()
      case 7: try session.commitConfiguration()
      default:
        // Only where a frame is sure to come.
        guard let connection = session.connections.last, connection.isEnabled, session.isRunning,
          kept.count < 6, let output = connection.output as? VideoDataOutput
        else { continue }
        var iterator = output.frames.makeAsyncIterator()
        if let sample = await iterator.next() { kept.append(sample) }
      }
      #expect(input.loans.lentCount <= input.loans.capacity)
    }
    for _ in 0..<60 { try session.commitConfiguration() }
    session.stopRunning()
    for output in outputs {
      session.removeOutput(output)
      #expect(output.ledger.addsUp)
    }
    kept.removeAll()
    outputs.removeAll()
  }
}
