// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// Frames that arrive converted.
@Suite(.serialized) struct VideoDataSettingsTests {
  @Test(arguments: ["/grey", "/yuyv", "/mjpg"])
  func `Converted frames have the chosen pixel format and size`(
    mode: String
  ) async throws {
    let device = try CaptureDevice.named("synthetic:320x240@60?pace=max&scene=pattern")
    let input = try await DeviceInput(
      device: device, format: device.format(matching: ModeRequest(parsing: mode)))
    let session = CaptureSession(input)
    let (plain, converted) = (VideoDataOutput(), VideoDataOutput())
    let settings = VideoDataSettings(pixelFormat: .bgra, width: 160, height: 120)
    try converted.setVideoSettings(settings)
    #expect(converted.videoSettings == settings && plain.videoSettings == nil)
    try await session.addOutput(plain)
    try await session.addOutput(converted)
    try await session.startRunning()
    let sample = try #require(await converted.frames.first { _ in true })
    #expect(sample.formatDescription.mediaSubType == .pixels(.bgra))
    #expect(sample.formatDescription.width == 160 && sample.formatDescription.height == 120)
    let byteCount = sample.withBytes { $0.count }
    #expect(byteCount == 160 * 120 * 4)
    let image = try sample.pixelBuffer(as: .bgra)
    #expect(image.bytes == sample.withBytes { [UInt8]($0) })
    // The frame is scaled to half. The pattern is compared at a point where it is smooth.
    let offset = TestPattern.offset(number: Int(sample.attachments.sequence))
    let pattern = Int(TestPattern.pattern(x: 100, y: 150 + offset))
    let index: Int = (75 * 160 + 50) * 4 + 1
    #expect(abs(Int(image.bytes[index]) - pattern) < 50)
    #expect(try #require(await plain.frames.first { _ in true }).image == nil)
    // With nil, the output delivers the camera's own bytes again.
    try converted.setVideoSettings(nil)
    #expect(await converted.frames.first { $0.image == nil } != nil)
    await session.stopRunning()
  }

  @Test func `An omitted width or height keeps the aspect ratio`()
    throws
  {
    let table: [(VideoDataSettings, Int, Int)] = [
      (VideoDataSettings(), 640, 360), (VideoDataSettings(width: 320), 320, 180),
      (VideoDataSettings(height: 90), 160, 90), (VideoDataSettings(width: 5), 5, 3),
      (VideoDataSettings(width: 100, height: 100), 100, 100), (VideoDataSettings(width: 1), 1, 1),
    ]
    for (settings, width, height) in table {
      #expect(settings.size(ofFrame: 640, 360) == (width, height))
    }
  }

  @Test func `Converted frames do not hold buffers of the camera`() async throws {
    let taken = DispatchSemaphore(value: 0)
    let session = try ScriptedSession(
      (0..<30).flatMap { [try ScriptedSession.frame(Int64($0)), .action { taken.wait() }] })
    let output = VideoDataOutput()
    output.alwaysDiscardsLateVideoFrames = false
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .bgra))
    try await session.session.addOutput(output)
    let kept = Mutex<[SampleBuffer]>([])
    output.setSampleBufferHandler { sample in
      kept.withLock { $0.append(sample) }
      taken.signal()
    }
    try await session.playToEnd()
    session.session.removeOutput(output)
    // The program keeps every sample. None of them holds a buffer of the camera.
    #expect(output.keptCount == 0 && session.input.pool.heldCount == 0)
    #expect(kept.withLock { $0.count } == 30)
    #expect(output.ledger == DataOutputLedger(offered: 30, delivered: 30))

    let converter = SampleConverter()
    var work = SampleConverter.Work()
    work.settings = VideoDataSettings(pixelFormat: .nv12)
    let format = FormatDescription(mediaSubType: .pixels(.gray), width: 64, height: 48)
    var addresses: Set<UInt> = []
    for _ in 0..<20 {
      let (image, pool) = try [UInt8](repeating: 90, count: 64 * 48).withUnsafeBytes {
        try converter.convert($0, format, work)
      }
      image.withUnsafeBytes(ofPlane: 0) { _ = addresses.insert(UInt(bitPattern: $0.baseAddress)) }
      pool.recycle(image)
    }
    #expect(addresses.count == 1)
  }

  @Test func `A frame that cannot be decoded is dropped as corrupt`()
    async throws
  {
    let device = try CaptureDevice.named("synthetic:128x96@240")
    let good = try jpeg()
    let bad: [UInt8] = [0xFF, 0xD8] + [UInt8](repeating: 1, count: 60) + [0xFF, 0xD9]
    let taken = DispatchSemaphore(value: 0)
    let steps = try (0..<20).flatMap { number -> [ScriptedDriver.Step] in
      let frame = FrameObservation(
        sequence: UInt32(number),
        microseconds: 5_000_000
          + (try SyntheticDriver.microseconds(ofFrame: Int64(number), at: FrameRate(240))))
      return [.frameWithBytes(frame, number % 2 == 0 ? good : bad), .action { taken.wait() }]
    }
    let driver = ScriptedDriver(steps, bufferCount: 8)
    let session = CaptureSession(
      DeviceInput(
        device: device, format: try device.format(matching: ModeRequest(parsing: "/mjpg")),
        driver: driver,
        delivery: try FrameDelivery(layout: .compressed(.mjpeg), width: 128, height: 96),
        negotiatedFrameRate: FrameRate(240), maximumByteCount: 128 * 96 * 3))
    let output = VideoDataOutput()
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
    let drops = output.drops
    try await session.addOutput(output)
    let task = Task {
      var numbers: [UInt32] = []
      for await sample in output.frames {
        numbers.append(sample.attachments.sequence)
        taken.signal()
      }
      return numbers
    }
    let dropTask = Task {
      var numbers: [UInt32] = []
      for await drop in drops {
        #expect(drop.reason == .corrupt)
        numbers.append(drop.sequence)
        taken.signal()
        if numbers.count == 10 { break }
      }
      return numbers
    }
    let events = session.events
    try await session.startRunning()
    for await event in events where event == .didStopRunning { break }
    session.removeOutput(output)
    #expect(await task.value == stride(from: 0, to: 20, by: 2).map { UInt32($0) })
    #expect(await dropTask.value == stride(from: 1, to: 20, by: 2).map { UInt32($0) })
    #expect(
      output.ledger
        == DataOutputLedger(offered: 20, delivered: 10, waiting: 0, dropped: [.corrupt: 10]))
  }

  private func jpeg() throws -> [UInt8] {
    var generator = try JPEGTestPatternGenerator(pattern: TestPattern(width: 128, height: 96))
    var bytes = [UInt8](repeating: 0, count: generator.maximumByteCount)
    let count = try bytes.withUnsafeMutableBytes {
      try generator.make(number: 1, isFlash: false, into: $0)
    }
    return Array(bytes.prefix(count))
  }

  @Test func `A blocking reader converts frames on its own thread`()
    async throws
  {
    let scripted = try ScriptedSession(
      (0..<4).flatMap { [try ScriptedSession.frame(Int64($0)), .action { usleep(100) }] })
    let output = VideoDataOutput()
    output.alwaysDiscardsLateVideoFrames = false
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .bgra, width: 64))
    try await scripted.session.addOutput(output)
    try await scripted.playToEnd()
    // The capture thread has ended, and no frame is converted yet.
    #expect(output.ledger.waiting == 4)
    let sizes = await withCheckedContinuation { continuation in
      let thread = try? BlockingThread.started {
        var sizes: [Int] = []
        for _ in 0..<4 {
          let size: Int? = output.withNextFrame { frame in
            frame.withBytes { $0.count } == 64 * 48 * 4 ? frame.formatDescription.width : 0
          }
          sizes.append(size ?? -1)
        }
        continuation.resume(returning: sizes)
      }
      thread?.detach()
    }
    #expect(sizes == [64, 64, 64, 64])
    #expect(output.ledger.delivered == 4)
    scripted.session.removeOutput(output)
  }

  @Test func `Modifying a sample buffer leaves earlier copies unchanged`()
    async throws
  {
    let scripted = try ScriptedSession([try ScriptedSession.frame(0)])
    let output = VideoDataOutput()
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .gray, width: 64))
    try await scripted.session.addOutput(output)
    try await scripted.playToEnd()
    let sample = try #require(await output.frames.first { _ in true })
    let before = try sample.pixelBuffer(as: .gray)
    sample.withMutableBytes { $0[0] = 200 }
    #expect(sample.withBytes { $0[0] } == 200)
    #expect(before.bytes[0] != 200)
    #expect(try sample.pixelBuffer(as: .gray).bytes[0] == 200)
    #expect(try sample.pixelBuffer(as: .bgra).bytes[0] == 200)
    scripted.session.removeOutput(output)
  }

  @Test func `Rejects unsupported pixel formats and sizes`() throws {
    let output = VideoDataOutput()
    let odd = [
      VideoDataSettings(pixelFormat: PixelFormat(rawValue: "no_such")),
      VideoDataSettings(pixelFormat: PixelFormat(rawValue: "vaapi")),
      VideoDataSettings(width: 0), VideoDataSettings(height: -1), VideoDataSettings(width: 40_000),
    ]
    for settings in odd {
      let error = #expect(throws: MediaError.self) { try output.setVideoSettings(settings) }
      #expect(error?.code == .notConvertible)
    }
    #expect(output.videoSettings == nil)
    let error = #expect(throws: MediaError.self) { try output.measuredPixelFormatCosts() }
    #expect(error?.code == .notConvertible)
  }

  @Test func `Pixel formats are listed by measured conversion time`() throws {
    let scripted = try ScriptedSession([])
    let output = VideoDataOutput()
    try scripted.session.addOutput(output)
    let price: [PixelFormat: Int] = [.gray: 30, .bgra: 10, .yuv420p: 40, .nv12: 20]
    let clock = Mutex(Duration.zero)
    let costs = try output.measuredPixelFormatCosts { format in
      clock.withLock { clock in
        defer { clock += .milliseconds(price[format] ?? 0) }
        return clock
      }
    }
    #expect(costs.map(\.pixelFormat) == [.bgra, .nv12, .gray, .yuv420p])
    #expect(costs.map(\.duration) == [10, 20, 30, 40].map { .milliseconds($0) })
    #expect(
      Set(try output.measuredPixelFormatCosts().map(\.pixelFormat))
        == Set(output.availablePixelFormats))
  }
}
