// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// Claims about zoom by cropping.
@Suite(.serialized) struct VideoZoomTests {
  @Test func `A zoom slider position maps exponentially to a zoom factor`()
    throws
  {
    let scale = try VideoZoomScale(maximum: 16)
    let table: [(Double, Double)] = [(0, 1), (0.25, 2), (0.5, 4), (0.75, 8), (1, 16)]
    for (position, factor) in table {
      #expect(abs(try scale.factor(atPosition: position) - factor) < 1e-12)
      #expect(abs(try scale.position(ofFactor: factor) - position) < 1e-12)
    }
    #expect(try VideoZoomScale(maximum: 1).position(ofFactor: 1) == 0)
    #expect(try VideoZoomScale(maximum: 1).factor(atPosition: 0.5) == 1)
    for odd in [-0.1, 1.1, .nan, .infinity] {
      let error = #expect(throws: MediaError.self) { try scale.factor(atPosition: odd) }
      #expect(error?.code == .controlOutOfRange)
    }
    for odd in [0, 0.5, 17, .nan, -.infinity] {
      let error = #expect(throws: MediaError.self) { try scale.position(ofFactor: odd) }
      #expect(error?.code == .controlOutOfRange)
      #expect(throws: MediaError.self) { try VideoZoomScale(maximum: min(odd, 0.9)) }
    }
  }

  @Test func `A zoom timeline returns the zoom factor at any earlier time`() {
    typealias Piece = VideoZoomTimeline.Piece
    let timeline = VideoZoomTimeline()
    #expect(timeline.factor(at: 0) == 1)
    timeline.append(Piece(from: 1_000_000, start: 2, target: 2))
    timeline.append(Piece(from: 2_000_000, start: 2, target: 8, rate: 1))
    #expect(timeline.factor(at: 999_999) == 1 && timeline.factor(at: 1_000_000) == 2)
    #expect(abs(timeline.factor(at: 3_000_000) - 4) < 1e-12)
    #expect(timeline.factor(at: 4_000_000) == 8 && timeline.factor(at: 9_000_000) == 8)
    #expect(timeline.last?.end == 4_000_000)
    // A change at 2.5 s does not affect times before it.
    timeline.append(Piece(from: 2_500_000, start: 3, target: 1, rate: 2))
    #expect(abs(timeline.factor(at: 2_400_000) - 2 * exp2(0.4)) < 1e-12)
    #expect(abs(timeline.factor(at: 3_000_000) - 1.5) < 1e-12)
    // Outputs do not crop what the driver has cropped.
    timeline.append(Piece(from: 5_000_000, start: 2, target: 2, isByDriver: true))
    #expect(timeline.factor(at: 6_000_000) == 2 && timeline.outputFactor(at: 6_000_000) == 1)
    #expect(timeline.outputFactor(at: 2_600_000) == timeline.factor(at: 2_600_000))
    for number in 0..<10_000 {
      timeline.append(Piece(from: 10_000_000 + Int64(number), start: 1, target: Double(number + 1)))
    }
    #expect(timeline.factor(at: 20_000_000) == 10_000)
  }

  /// A camera with a moving pattern that waits until its frames are taken.
  private func camera(_ mode: String, rate: Int) throws -> DeviceInput {
    let device = try CaptureDevice.named("synthetic:640x480@\(rate)?pace=max&scene=pattern")
    return try DeviceInput(
      device: device, format: device.format(matching: ModeRequest(parsing: mode)))
  }

  private static let pattern = TestPattern(width: 640, height: 480)
  private static let generator = GrayTestPatternGenerator(pattern: pattern)

  /// The pattern that the camera has drawn in a frame.
  private func original(_ number: Int) -> ImageFactor {
    var generator = Self.generator
    var bytes = [UInt8](repeating: 0, count: generator.maximumByteCount)
    bytes.withUnsafeMutableBytes { _ = generator.make(number: number, isFlash: false, into: $0) }
    return ImageFactor(bytes, width: 640, height: 480, rows: Self.pattern.numberHeight..<480)
  }

  @Test(arguments: ["/grey", "/yuyv", "/mjpg"])
  func `Each frame of a zoom ramp has the factor 2^(rate·t)`(
    mode: String
  ) async throws {
    let input = try camera(mode, rate: 30)
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    output.alwaysDiscardsLateVideoFrames = false
    try await session.addOutput(output)
    let factors = try input.videoZoomFactors()
    try input.ramp(toVideoZoomFactor: 4, withRate: 1.5)
    #expect(input.isRampingVideoZoom)
    let begin = try #require(input.geometry.zoom.last?.begin)
    try await session.startRunning()
    var factorsByTime: [Int64: Double] = [:]
    for await sample in output.frames {
      let seconds = Double(sample.presentationTimeStamp.wholeMicroseconds - begin) / 1_000_000
      let expected = min(4, exp2(1.5 * seconds))
      factorsByTime[sample.presentationTimeStamp.wholeMicroseconds] =
        sample.attachments.videoZoomFactor
      #expect(abs(sample.attachments.videoZoomFactor / expected - 1) < 1e-9)
      let image = try sample.pixelBuffer(as: .gray)
      #expect(image.width == 640 && image.height == 480)
      let found = original(Int(sample.attachments.sequence)).read(image.bytes, upTo: 4)
      #expect(abs(found / expected - 1) < 0.005, "\(found) of \(expected)")
      if seconds > 1.5 { break }
    }
    #expect(!input.isRampingVideoZoom && input.videoZoomFactor == 4)
    await session.stopRunning()
    // The stream reports the same zoom factors, and that the ramp is over in the last frames.
    var isOver = false
    for await frame in factors {
      let time = frame.presentationTimeStamp.wholeMicroseconds
      if let factor = factorsByTime.removeValue(forKey: time) {
        #expect(frame.videoZoomFactor == factor)
      }
      isOver = isOver || (!frame.isRamping && frame.videoZoomFactor == 4)
      if factorsByTime.isEmpty { break }
    }
    #expect(isOver && factorsByTime.isEmpty)
  }

  @Test func `A cancelled zoom ramp stays at its current factor`()
    async throws
  {
    let steps = try (0..<4).map { try ScriptedSession.frame(Int64($0 * 120)) }
    let scripted = try ScriptedSession(
      steps.flatMap { [$0, .action { usleep(1) }] })
    let input = scripted.input
    // The clock of the script is at a time before the first frame.
    let now = scripted.driver.microseconds()
    try input.ramp(toVideoZoomFactor: 4, withRate: 0.01)
    #expect(input.isRampingVideoZoom && input.videoZoomFactor == 1)
    try await scripted.playToEnd()
    let later = scripted.driver.microseconds()
    let passed = Double(later - now) / 1_000_000
    #expect(abs(input.videoZoomFactor - exp2(0.01 * passed)) < 1e-9 && passed > 1)
    input.cancelVideoZoomRamp()
    #expect(!input.isRampingVideoZoom)
    #expect(abs(input.videoZoomFactor - exp2(0.01 * passed)) < 1e-9)
    #expect(try input.setVideoZoomFactor(1) == 1)
    #expect(input.videoZoomFactor == 1)
    input.cancelVideoZoomRamp()
    #expect(input.videoZoomFactor == 1)
  }

  @Test func `Rejects invalid zoom factors and ramp rates without zooming`() throws {
    let input = try camera("/grey", rate: 60)
    #expect(input.videoMaxZoomFactor == 30 && input.format.videoMaxZoomFactor == 30)
    #expect(input.videoZoomFactorUpscaleThreshold == 1)
    for odd in [0, -1, 0.99, 30.01, .nan, .infinity] {
      for call in [
        { _ = try input.setVideoZoomFactor(odd) },
        { try input.ramp(toVideoZoomFactor: odd, withRate: 1) },
      ] as [() throws -> Void] {
        let error = #expect(throws: MediaError.self) { try call() }
        #expect(error?.code == .controlOutOfRange)
      }
    }
    for odd in [0, -1, .nan, .infinity] {
      let error = #expect(throws: MediaError.self) {
        try input.ramp(toVideoZoomFactor: 2, withRate: odd)
      }
      #expect(error?.code == .controlOutOfRange)
    }
    #expect(input.videoZoomFactor == 1 && !input.isRampingVideoZoom)
    let session = CaptureSession(input)
    try session.addOutput(VideoDataOutput())
    let connection = try #require(session.connections.first)
    #expect(connection.videoMaxScaleAndCropFactor == 30)
    for odd in [0, 0.5, 31, .nan, -.infinity] {
      let error = #expect(throws: MediaError.self) {
        try connection.setVideoScaleAndCropFactor(odd)
      }
      #expect(error?.code == .controlOutOfRange)
    }
    #expect(connection.videoScaleAndCropFactor == 1)
  }

  @Test func `The zoom factors of camera and connection multiply`()
    async throws
  {
    let input = try camera("/grey", rate: 60)
    let session = CaptureSession(input)
    let (plain, large) = (VideoDataOutput(), VideoDataOutput())
    try await session.addOutput(plain)
    try await session.addOutput(large)
    try session.connections[1].setVideoScaleAndCropFactor(1.5)
    try input.setVideoZoomFactor(2)
    try await session.startRunning()
    for (output, expected) in [(plain, 2.0), (large, 3.0)] {
      let sample = try #require(await output.frames.first { _ in true })
      #expect(sample.attachments.videoZoomFactor == expected)
      let found = original(Int(sample.attachments.sequence))
        .read(try sample.pixelBuffer(as: .gray).bytes, upTo: 4)
      #expect(abs(found / expected - 1) < 0.005)
    }
    await session.stopRunning()
  }

  // MARK: - The driver

  private func fakeInput(_ machine: FakeVideoSystemCalls) throws -> DeviceInput {
    machine.pace()
    return try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(
        device: camera, format: camera.format(matching: ModeRequest(parsing: "64x48@120/grey")))
    }
  }

  private func crop(_ input: DeviceInput) throws -> PixelRect {
    try #require(input.driver as? V4L2Driver).queue.crop()
  }

  @Test func `A driver that can crop applies the zoom while streaming`() async throws {
    let input = try fakeInput(FakeVideoSystemCalls("sensor-module crop=1"))
    let whole = PixelRect(x: 0, y: 0, width: 64, height: 48)
    #expect(try crop(input) == whole)
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    #expect(!input.isVideoZoomedByDriver)
    #expect(try input.setVideoZoomFactor(2) == 2)
    #expect(input.isVideoZoomedByDriver)
    #expect(try crop(input) == PixelRect(x: 16, y: 12, width: 32, height: 24))
    try await session.startRunning()
    let sample = try #require(await output.frames.first { _ in true })
    #expect(sample.attachments.videoZoomFactor == 2)
    // The bytes come from the driver and were not cropped again.
    #expect(sample.image == nil)
    // The driver crops in steps of 8 pixels, and the factor is the one that it granted.
    #expect(try input.setVideoZoomFactor(2.5) == 64.0 / 24)
    await session.stopRunning()
    #expect(try crop(input) == whole)
    try await session.startRunning()
    #expect(try crop(input).width == 24)
    await session.stopRunning()
  }

  @Test func `A zoom ramp reports the factors that the driver granted`() async throws {
    let input = try fakeInput(FakeVideoSystemCalls("sensor-module crop=1"))
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    try input.ramp(toVideoZoomFactor: 2, withRate: 4)
    let widths: [Double] = [64, 56, 48, 40, 32]
    let factors: [Double] = widths.map { (width: Double) -> Double in 64 / width }
    for await sample in output.frames {
      #expect(factors.contains(sample.attachments.videoZoomFactor))
      if !input.isRampingVideoZoom { break }
    }
    #expect(input.videoZoomFactor == 2)
    #expect(try crop(input).width == 32)
    await session.stopRunning()
  }

  @Test(arguments: ["", "crop=2", "crop=3"])
  func `Outputs apply the zoom if the driver cannot crop`(option: String) async throws {
    let input = try fakeInput(FakeVideoSystemCalls("sensor-module \(option)"))
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    #expect(try input.setVideoZoomFactor(2) == 2)
    #expect(!input.isVideoZoomedByDriver)
    try await session.startRunning()
    let sample = try #require(await output.frames.first { _ in true })
    #expect(sample.image != nil && sample.attachments.videoZoomFactor == 2)
    await session.stopRunning()
    if !option.isEmpty { #expect(try crop(input).width == 64) }
  }
}
