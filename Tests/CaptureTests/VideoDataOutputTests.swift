// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// A session with a camera whose frames come from a script.
struct ScriptedSession {
  let driver: ScriptedDriver
  let input: DeviceInput
  let session: CaptureSession

  init(_ steps: [ScriptedDriver.Step], bufferCount: Int = 8, rate: Int64 = 240) throws {
    driver = ScriptedDriver(steps, bufferCount: bufferCount)
    let device = try CaptureDevice.named("synthetic:128x96@\(rate)")
    input = DeviceInput(
      device: device, format: try device.format(matching: ModeRequest(parsing: "/grey")),
      driver: driver,
      delivery: try FrameDelivery(layout: .raw(.gray8, bytesPerRow: 0), width: 128, height: 96),
      negotiatedFrameRate: FrameRate(Int(rate)), maximumByteCount: 128 * 96)
    session = CaptureSession(input)
  }

  /// The frame with a number, from a camera at 240 fps.
  static func frame(_ number: Int64, byteCount: Int = 128 * 96) throws -> ScriptedDriver.Step {
    .frame(
      FrameObservation(
        sequence: UInt32(number),
        microseconds: 5_000_000
          + (try SyntheticDriver.microseconds(ofFrame: number, at: FrameRate(240)))),
      byteCount: byteCount)
  }

  /// Waits until the camera's script has ended.
  func playToEnd() async throws {
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
  }
}

/// The suite is serialized.
///
/// Each test has a camera, whose threads have real-time priority where the system allows it. Twenty
/// cameras at 1000 fps would leave two processors no time for the tests.
@Suite(.serialized) struct VideoDataOutputTests {
  @Test func `A reader that keeps up gets every frame in order`() async throws {
    let taken = DispatchSemaphore(value: 0)
    var steps: [ScriptedDriver.Step] = []
    for number in 0..<300 {
      steps += [try ScriptedSession.frame(Int64(number)), .action { taken.wait() }]
    }
    let scripted = try ScriptedSession(steps)
    let output = VideoDataOutput()
    try await scripted.session.addOutput(output)
    let task = Task {
      var numbers: [UInt32] = []
      for await sample in output.frames {
        numbers.append(sample.attachments.sequence)
        #expect(sample.withBytes { $0.count } == 128 * 96)
        taken.signal()
      }
      return numbers
    }
    try await scripted.playToEnd()
    scripted.session.removeOutput(output)
    #expect(await task.value == (0..<300).map { UInt32($0) })
    let expected = DataOutputLedger(offered: 300, delivered: 300, waiting: 0, dropped: [:])
    #expect(output.ledger == expected && output.ledger.isBalanced)
    // The last buffer may still be held when the stream stops. It is then not queued again.
    #expect(scripted.input.pool.heldCount == 0)
  }

  @Test func `Cancelling one wait for a frame does not end another wait`()
    async throws
  {
    let output = VideoDataOutput()
    for _ in 0..<200 {
      let (first, second) = (
        Task { await output.frames.first { _ in true } },
        Task { await output.frames.first { _ in true } }
      )
      for task in [first, second].shuffled() { task.cancel() }
      #expect(await first.value == nil)
      #expect(await second.value == nil)
    }
    let isRequested = DispatchSemaphore(value: 0)
    let scripted = try ScriptedSession([
      .action { isRequested.wait() }, try ScriptedSession.frame(0),
    ])
    try await scripted.session.addOutput(output)
    try await scripted.session.startRunning()
    let cancelled = Task { await output.frames.first { _ in true } }
    cancelled.cancel()
    _ = await cancelled.value
    async let frame = output.frames.first { _ in true }
    cancelled.cancel()
    isRequested.signal()
    #expect(await frame?.attachments.sequence == 0)
    await scripted.session.stopRunning()
  }

  @Test func `A busy handler keeps one frame waiting and drops later ones`() async throws {
    let (entered, mayLeave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let first = try ScriptedSession.frame(0)
    let others = try (1..<10).map { try ScriptedSession.frame(Int64($0)) }
    let scripted = try ScriptedSession(
      [first, .action { entered.wait() }] + others
        + [.action { (0..<2).forEach { _ in mayLeave.signal() } }, .action { entered.wait() }])
    let output = VideoDataOutput()
    let drops = output.drops
    try await scripted.session.addOutput(output)
    let numbers = Mutex<[UInt32]>([])
    output.setSampleBufferHandler { sample in
      numbers.withLock { $0.append(sample.attachments.sequence) }
      entered.signal()
      mayLeave.wait()
    }
    try await scripted.playToEnd()
    #expect(numbers.withLock { $0 } == [0, 1])
    let ledger = output.ledger
    #expect(ledger.offered == 10 && ledger.delivered == 2 && ledger.isBalanced)
    #expect(ledger.dropped == [.frameWasLate: 8])
    var reported: [UInt32] = []
    for await drop in drops {
      #expect(drop.reason == .frameWasLate)
      reported.append(drop.sequence)
      if reported.count == 8 { break }
    }
    #expect(reported == Array(2...9))
  }

  @Test func `An output may keep at most half of the driver buffers`() async throws {
    let taken = DispatchSemaphore(value: 0)
    let kept = Mutex<[SampleBuffer]>([])
    var steps: [ScriptedDriver.Step] = []
    for number in 0..<12 {
      steps.append(try ScriptedSession.frame(Int64(number)))
      if number < 4 { steps.append(.action { taken.wait() }) }
    }
    steps.append(.action { kept.withLock { $0.removeAll() } })
    steps += [try ScriptedSession.frame(12), .action { taken.wait() }]
    let scripted = try ScriptedSession(steps, bufferCount: 8)
    let output = VideoDataOutput()
    output.alwaysDiscardsLateVideoFrames = false
    try await scripted.session.addOutput(output)
    output.setSampleBufferHandler { sample in
      kept.withLock { $0.append(sample) }
      taken.signal()
    }
    try await scripted.playToEnd()
    #expect(output.ledger.dropped == [.outOfBuffers: 8])
    #expect(output.ledger.delivered == 5 && output.ledger.isBalanced)
    #expect(kept.withLock { $0.map(\.attachments.sequence) } == [12])
    #expect(scripted.input.pool.heldCount == 1)
    kept.withLock { $0.removeAll() }
    // The thread that delivered the last sample releases it when the handler has returned.
    while scripted.input.pool.heldCount > 0 || output.keptCount > 0 { await Task.yield() }
  }

  @Test func `Corrupt and rate-limited frames count as separate drops`()
    async throws
  {
    let taken = DispatchSemaphore(value: 0)
    var steps: [ScriptedDriver.Step] = []
    for number in 0..<40 {
      let isShort = number % 10 == 1
      steps.append(try ScriptedSession.frame(Int64(number), byteCount: isShort ? 5 : 128 * 96))
      if number % 4 == 0 { steps.append(.action { taken.wait() }) }
    }
    let scripted = try ScriptedSession(steps)
    let output = VideoDataOutput()
    output.minFrameDuration = MediaTime(1, over: 60)
    try await scripted.session.addOutput(output)
    let numbers = Mutex<[UInt32]>([])
    output.setSampleBufferHandler { sample in
      numbers.withLock { $0.append(sample.attachments.sequence) }
      taken.signal()
    }
    try await scripted.playToEnd()
    #expect(numbers.withLock { $0 } == (0..<10).map { (number: UInt32) in 4 * number })
    #expect(output.ledger.dropped == [.corrupt: 4, .tooSoon: 26] && output.ledger.isBalanced)
  }

  @Test func `A disabled connection delivers no frames`() async throws {
    let scripted = try ScriptedSession(try (0..<5).map { try ScriptedSession.frame(Int64($0)) })
    let output = VideoDataOutput()
    try await scripted.session.addOutput(output)
    let connection = try #require(scripted.session.connections.first)
    connection.isEnabled = false
    try await scripted.playToEnd()
    #expect(output.ledger == DataOutputLedger())
  }

  @Test func `Changing an output frame leaves other outputs unchanged`() async throws {
    let taken = DispatchSemaphore(value: 0)
    let scripted = try ScriptedSession([
      try ScriptedSession.frame(0), .action { (0..<2).forEach { _ in taken.wait() } },
    ])
    let samples = Mutex<[SampleBuffer]>([])
    for _ in 0..<2 {
      let output = VideoDataOutput()
      try await scripted.session.addOutput(output)
      output.setSampleBufferHandler { sample in
        samples.withLock { $0.append(sample) }
        taken.signal()
      }
    }
    try await scripted.playToEnd()
    let both = samples.withLock { $0 }
    try #require(both.count == 2)
    let addresses = both.map { sample in sample.withBytes { $0.baseAddress } }
    #expect(addresses[0] == addresses[1])
    both[0].withMutableBytes { $0[0] = 99 }
    #expect(both[0].withBytes { $0[0] } == 99 && both[1].withBytes { $0[0] } == 7)
    // Only the other sample still uses the camera's buffer, so that buffer is modified in place.
    both[1].withMutableBytes { $0[1] = 98 }
    #expect(both[1].withBytes { $0.baseAddress } == addresses[1])
    #expect(both[1].withBytes { $0[1] } == 98)
  }

  @Test func `Modifying a sample changes the camera buffer in place`() async throws {
    let sample = try await SampleBuffer.first(of: "synthetic:320x240@30", mode: "/yuyv")
    let position = sample.withBytes { $0.baseAddress }
    func isGray() throws -> Bool {
      let image = try sample.pixelBuffer(as: .bgra)
      return stride(from: 0, to: image.bytes.count, by: 4).allSatisfy {
        Set(image.bytes[$0..<($0 + 3)]).count == 1
      }
    }
    #expect(try !isGray())
    // Every other byte of YUYV is chroma, and 128 is gray.
    sample.withMutableBytes { bytes in
      for offset in stride(from: 1, to: bytes.count, by: 2) { bytes[offset] = 128 }
    }
    #expect(try isGray())
    #expect(sample.withBytes { $0.baseAddress } == position)
  }

  @Test func `Pixel formats are listed in order of conversion cost`() throws {
    let output = VideoDataOutput()
    #expect(output.nativeFormat == nil && output.availablePixelFormats == [])
    let scripted = try ScriptedSession([])
    try scripted.session.addOutput(output)
    #expect(output.nativeFormat?.mediaSubType == .pixels(.gray))
    #expect(output.nativeFormat?.width == 128 && output.availablePixelFormats.first == .gray)
    scripted.session.removeOutput(output)
    #expect(output.nativeFormat == nil && output.availablePixelFormats == [])
    func names(_ subType: MediaSubType) -> [String] {
      PixelFormat.available(from: subType).map(\.rawValue)
    }
    // Frames that depend on other frames, and formats that libswscale does not convert, have no
    // pixel formats.
    #expect(names(.codec(.h264)) == [] && names(.pixels(PixelFormat(rawValue: "nv16"))) == [])
    #expect(
      names(.pixels(PixelFormat(rawValue: "nv12"))).first == "nv12"
        && names(.pixels(PixelFormat(rawValue: "bgra"))).first == "bgra")
    #expect(
      names(.pixels(PixelFormat(rawValue: "yuyv422"))) == ["yuv420p", "nv12", "gray", "bgra"])
    #expect(names(.codec(.mjpeg)).first == "gray")
    for name in ["yuyv422", "nv12", "gray", "rgb24", "bayer_bggr8"] {
      #expect(
        Set(names(.pixels(PixelFormat(rawValue: name))))
          == Set(["yuv420p", "nv12", "gray", "bgra"]))
    }
  }

  @Test(arguments: ["mjpg", "yuyv"])
  func `Pixel conversion reuses buffers and runs on several threads`(
    fourcc: String
  ) async throws {
    let device = try CaptureDevice.named("synthetic:320x240@240")
    let session = try CaptureSession(
      device: device, format: device.format(matching: ModeRequest(parsing: "/\(fourcc)")))
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    let samples = await output.samples(4)
    var buffer = PixelBuffer(format: .yuv420p)
    #expect(buffer.planes == [] && buffer.bytes == [])
    var addresses: Set<UnsafeRawPointer?> = []
    for sample in samples {
      try sample.convert(into: &buffer)
      addresses.insert(buffer.withUnsafeBytes(ofPlane: 0) { $0.baseAddress })
      #expect(try buffer == sample.pixelBuffer(as: .yuv420p))
    }
    #expect(addresses.count == 1)
    #expect(buffer.width == 320 && buffer.height == 240)
    #expect(buffer.planes.map(\.offset) == [0, 76_800, 96_000])
    #expect(buffer.planes.map(\.bytesPerRow) == [320, 160, 160])
    #expect(buffer.planes.map(\.rowCount) == [240, 120, 120])
    #expect(buffer.withUnsafeBytes(ofPlane: 2) { $0.elementsEqual(buffer.bytes[96_000...]) })
    await withThrowingTaskGroup { group in
      for sample in samples + samples {
        group.addTask {
          let gray = try sample.pixelBuffer(as: .gray)
          let number = FrameNumberPattern.read(width: gray.width, height: gray.height) {
            gray.bytes[$1 * gray.width + $0]
          }
          #expect(number == Int(sample.attachments.sequence))
        }
      }
    }
    await session.stopRunning()
  }

  @Test(arguments: [("mjpg", 2.0), ("yuyv", 1.0), ("grey", 1.0)])
  func `A frame shows the same image in every pixel format`(fourcc: String, tolerance: Double)
    async throws
  {
    let sample = try await SampleBuffer.first(of: "synthetic:320x240@30", mode: "/\(fourcc)")
    let gray = try sample.pixelBuffer(as: .gray)
    let number = FrameNumberPattern.read(width: gray.width, height: gray.height) {
      gray.bytes[$1 * gray.width + $0]
    }
    #expect(number == Int(sample.attachments.sequence))
    let i420 = try sample.pixelBuffer(as: .yuv420p)
    let nv12 = try sample.pixelBuffer(as: .nv12)
    let bgra = try sample.pixelBuffer(as: .bgra)
    let count = 320 * 240
    #expect(gray.bytes.count == count && bgra.bytes.count == 4 * count)
    let png = try sample.pngData().withUnsafeBytes {
      try DecodedImage(decoding: $0, codec: "png", width: 320, height: 240, bytesPerPixel: 3).bytes
    }
    #expect(i420.bytes.count == count * 3 / 2 && nv12.bytes.count == count * 3 / 2)
    #expect(i420.bytes[..<count] == nv12.bytes[..<count])
    var error = 0.0
    for position in 0..<count {
      let luma = Double(i420.bytes[position]) - 16
      error += abs(luma * 255 / 219 - Double(gray.bytes[position]))
      #expect(bgra.bytes[4 * position + 3] == 255)
      let color = png[(3 * position)...].prefix(3)
      #expect(color.reversed() == Array(bgra.bytes[(4 * position)...].prefix(3)))
    }
    #expect(error / Double(count) < tolerance)
  }
}
