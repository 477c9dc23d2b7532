// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankSimulatedCameras

/// Claims about the rotation, mirroring and stabilization of connections.
@Suite(.serialized) struct ConnectionGeometryTests {
  /// A camera that repeats one image with four quarters of different gray.
  private func session(
    _ layout: FrameDelivery.Layout, _ fourcc: String, _ image: [UInt8]
  ) throws -> CaptureSession {
    let device = try CaptureDevice.named("synthetic:128x96@240")
    let steps = try (0..<40).map { number -> ScriptedDriver.Step in
      .frameWithBytes(
        FrameObservation(
          sequence: UInt32(number),
          microseconds: 5_000_000
            + (try SyntheticDriver.microseconds(ofFrame: Int64(number), at: FrameRate(240)))),
        image)
    }
    return CaptureSession(
      DeviceInput(
        device: device, format: try device.format(matching: ModeRequest(parsing: "/\(fourcc)")),
        driver: ScriptedDriver(steps, bufferCount: 8),
        delivery: try FrameDelivery(layout: layout, width: 64, height: 48),
        negotiatedFrameRate: FrameRate(240), maximumByteCount: 64 * 48 * 3))
  }

  /// The image in the format in which a camera delivers it.
  private func image(_ fourcc: String) throws -> (FrameDelivery.Layout, [UInt8]) {
    let gray = CornerImage.gray(width: 64, height: 48)
    switch fourcc {
    case "grey": return (.raw(.gray8, bytesPerRow: 0), gray)
    case "yuyv":
      let format = try #require(LibAVPixelFormat(named: "yuyv422"))
      return (.raw(format, bytesPerRow: 0), gray.flatMap { [$0, 128] })
    default:
      let frame = try gray.withUnsafeBytes {
        try MediaFrame.video(
          copying: $0, width: 64, height: 48, pixelFormat: .gray8, bytesPerRow: 0)
      }
      var converter = FrameConverter(to: .yuvj422p, isFullRange: true)
      var settings = Encoder.VideoSettings(
        codec: "mjpeg", width: 64, height: 48, pixelFormat: .yuvj422p, timescale: 1_000_000)
      settings.isFullRange = true
      settings.quantizer = 2
      var encoder = try Encoder(video: settings)
      try encoder.send(converter.convert(frame), at: 0)
      try encoder.send(nil)
      let packet = try #require(try encoder.nextPacket())
      return (.compressed(.mjpeg), packet.withBytes { [UInt8]($0) })
    }
  }

  @Test(arguments: ["grey", "yuyv", "mjpg"])
  func `Frames are rotated and mirrored as set on the connection`(
    fourcc: String
  ) async throws {
    let (layout, image) = try image(fourcc)
    for row in CornerImage.table {
      for format in [nil, .gray, .bgra, PixelFormat(rawValue: "yuyv422")] as [PixelFormat?] {
        let session = try session(layout, fourcc, image)
        let output = VideoDataOutput()
        if let format { try output.setVideoSettings(VideoDataSettings(pixelFormat: format)) }
        try await session.addOutput(output)
        let connection = try #require(session.connections.first)
        connection.automaticallyAdjustsVideoMirroring = false
        #expect(connection.isVideoRotationAngleSupported(row.angle))
        try connection.setVideoRotationAngle(row.angle)
        try connection.setVideoMirrored(row.isMirrored)
        #expect(connection.videoRotationAngle == row.angle)
        #expect(connection.isVideoMirrored == row.isMirrored)
        try await session.startRunning()
        let sample = try #require(await output.frames.first { _ in true })
        await session.stopRunning()
        let size = sample.formatDescription
        let isUpright = row.angle % 180 == 0
        #expect(size.width == (isUpright ? 64 : 48) && size.height == (isUpright ? 48 : 64))
        if let format { #expect(size.mediaSubType == .pixels(format)) }
        let gray = try sample.pixelBuffer(as: .gray)
        // YUYV has video range, 16 to 235, so the full-range gray levels are scaled.
        let levels =
          fourcc == "yuyv"
          ? gray.bytes.map { UInt8((Double($0) * 219 / 255 + 16).rounded()) } : gray.bytes
        #expect(
          CornerImage.corners(levels, width: size.width, height: size.height) == row.corners,
          "\(row) \(format?.rawValue ?? "as it is")")
      }
    }
  }

  @Test func `Rejects unsupported angles and mirroring set while automatic`() throws {
    let (layout, image) = try image("grey")
    let session = try session(layout, "grey", image)
    try session.addOutput(VideoDataOutput())
    let connection = try #require(session.connections.first)
    for odd in [45, -90, 1, 360, .max, .min] {
      #expect(!connection.isVideoRotationAngleSupported(odd))
      let error = #expect(throws: MediaError.self) { try connection.setVideoRotationAngle(odd) }
      #expect(error?.code == .controlNotSupported)
    }
    #expect(connection.isVideoMirroringSupported && connection.automaticallyAdjustsVideoMirroring)
    let error = #expect(throws: MediaError.self) { try connection.setVideoMirrored(true) }
    #expect(error?.code == .badConfiguration)
    connection.automaticallyAdjustsVideoMirroring = false
    try connection.setVideoMirrored(true)
    #expect(connection.isVideoMirrored)
    connection.automaticallyAdjustsVideoMirroring = true
    #expect(!connection.isVideoMirrored && connection.videoRotationAngle == 0)
  }

  @Test func `Zooming H.264 sets a clean aperture and rotation is refused`()
    async throws
  {
    let session = try session(.compressed(.h264), "mjpg", [0, 0, 0, 1, 0x65, 1, 2, 3])
    let output = VideoDataOutput()
    try await session.addOutput(output)
    let connection = try #require(session.connections.first)
    #expect(!connection.isVideoMirroringSupported)
    #expect(connection.isVideoRotationAngleSupported(0))
    #expect(!connection.isVideoRotationAngleSupported(90))
    #expect(throws: MediaError.self) { try connection.setVideoRotationAngle(90) }
    #expect(connection.videoMaxScaleAndCropFactor == 1)
    // With settings, the output takes decoded frames, which it can rotate.
    try output.setVideoSettings(VideoDataSettings(pixelFormat: .gray))
    #expect(connection.isVideoMirroringSupported && output.availablePixelFormats.contains(.gray))
    try output.setVideoSettings(nil)
    #expect(!connection.isVideoMirroringSupported && output.availablePixelFormats.isEmpty)
    try #require(session.inputs.first as? DeviceInput).setVideoZoomFactor(2)
    try await session.startRunning()
    let sample = try #require(await output.frames.first { _ in true })
    #expect(sample.withBytes { $0.count } == 8)
    #expect(sample.attachments.cleanAperture?.width == Rational(32))
    #expect(sample.attachments.cleanAperture?.height == Rational(24))
    await session.stopRunning()
  }

  // MARK: - The driver

  private func fakeInput(_ machine: FakeVideoSystemCalls, _ mode: String) throws -> DeviceInput {
    machine.pace()
    return try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return try DeviceInput(
        device: camera, format: camera.format(matching: ModeRequest(parsing: mode)))
    }
  }

  @Test func `The driver flips the frames if all outputs want that flip`()
    async throws
  {
    let machine = try FakeVideoSystemCalls("uvc-webcam")
    let input = try fakeInput(machine, "640x480/yuyv")
    let session = CaptureSession(input)
    let (first, second) = (VideoDataOutput(), VideoDataOutput())
    try await session.addOutput(first)
    let connection = try #require(session.connections.first)
    func flips() -> [Int64] {
      [ControlID.isMirrored, .isFlipped].map { machine.controlValue($0.rawValue) }
    }
    connection.automaticallyAdjustsVideoMirroring = false
    try connection.setVideoMirrored(true)
    for (angle, expected) in [(0, [1, 0]), (180, [0, 1])] as [(Int, [Int64])] {
      try connection.setVideoRotationAngle(angle)
      #expect(flips() == [0, 0])
      try await session.startRunning()
      #expect(flips() == expected)
      let sample = try #require(await first.frames.first { _ in true })
      #expect(sample.image == nil)
      await session.stopRunning()
      #expect(flips() == [0, 0])
    }
    // The driver cannot rotate by 90 degrees, so the output rotates the frames of the running stream.
    try await session.startRunning()
    try connection.setVideoRotationAngle(90)
    #expect(flips() == [0, 1])
    let rotated = try #require(
      await first.frames.first { $0.formatDescription.width == 480 })
    #expect(rotated.image != nil)
    await session.stopRunning()
    // A second output that wants no rotation keeps the driver from flipping frames.
    try connection.setVideoRotationAngle(180)
    try await session.addOutput(second)
    try await session.startRunning()
    #expect(flips() == [0, 0])
    #expect(try #require(await first.frames.first { _ in true }).image != nil)
    #expect(try #require(await second.frames.first { _ in true }).image == nil)
    await session.stopRunning()
  }

  @Test func `Driver flips and software rotation give the requested angle`() throws {
    for row in CornerImage.table {
      let wanted = try #require(
        FrameRotation(clockwiseDegrees: row.angle, isMirrored: row.isMirrored))
      for bits in [0, 2, 4, 6] as [UInt8] {
        let flips = FrameRotation(bits: bits)
        let frame = try CornerImage.gray(width: 16, height: 8).withUnsafeBytes {
          try MediaFrame.video(
            copying: $0, width: 16, height: 8, pixelFormat: .gray8, bytesPerRow: 0)
        }
        let result = try frame.rotated(by: flips).rotated(by: wanted.remaining(after: flips))
        #expect(
          CornerImage.corners(
            try result.packedBytes(), width: result.width, height: result.height) == row.corners)
      }
      #expect(FrameRotation(bits: wanted.bits) == wanted)
    }
  }

  @Test func `The preferred stabilization mode is set only while streaming`()
    async throws
  {
    let machine = try FakeVideoSystemCalls("sensor-module")
    let input = try fakeInput(machine, "64x48@120/grey")
    let session = CaptureSession(input)
    try await session.addOutput(VideoDataOutput())
    let connection = try #require(session.connections.first)
    let value = { machine.controlValue(ControlID.imageStabilization.rawValue) }
    #expect(connection.isVideoStabilizationSupported)
    #expect(connection.preferredVideoStabilizationMode == .auto)
    #expect(connection.activeVideoStabilizationMode == .off)
    connection.preferredVideoStabilizationMode = .standard
    #expect(value() == 0)
    try await session.startRunning()
    #expect(value() == 1 && connection.activeVideoStabilizationMode == .standard)
    connection.preferredVideoStabilizationMode = .off
    #expect(value() == 0 && connection.activeVideoStabilizationMode == .off)
    connection.preferredVideoStabilizationMode = .standard
    #expect(value() == 1)
    await session.stopRunning()
    #expect(value() == 0)

    let other = try camera()
    try await other.addOutput(VideoDataOutput())
    let plain = try #require(other.connections.first)
    #expect(!plain.isVideoStabilizationSupported)
    plain.preferredVideoStabilizationMode = .standard
    #expect(plain.activeVideoStabilizationMode == .off)
  }

  private func camera() throws -> CaptureSession {
    let (layout, image) = try image("grey")
    return try session(layout, "grey", image)
  }
}
