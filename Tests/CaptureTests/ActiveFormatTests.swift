// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCapture

/// The request `VIDIOC_STREAMON`.
private let streamOn: UInt = 0x4004_5612

/// Claims about another mode for an input that exists.
@Suite(.serialized) struct ActiveFormatTests {
  /// The inputs of a machine's cameras in their slowest modes, and their modes.
  private func inputs(
    _ machine: FakeVideoSystemCalls, _ count: Int = 1
  ) throws -> [(input: DeviceInput, formats: [CaptureFormat])] {
    machine.pace()
    return try DeviceSystem.$calls.withValue(machine) {
      try (0..<count).map { number in
        let camera = try CaptureDevice.named("/dev/fakevideo\(number)")
        let formats = try camera.formats()
        let slowest = try #require(formats.min { $0.maxFrameRate < $1.maxFrameRate })
        return (try DeviceInput(device: camera, format: slowest), formats)
      }
    }
  }

  private func fastest(_ formats: [CaptureFormat]) throws -> CaptureFormat {
    try #require(FormatSelection.fastest(among: formats))
  }

  @Test func `An input without a session takes another mode`() async throws {
    let (input, formats) = try inputs(try FakeVideoSystemCalls("hfr-usb"))[0]
    let format = try fastest(formats)
    try await input.setActiveFormat(format, frameRate: format.maxFrameRate)
    #expect(input.format.id == format.id && input.requestedFrameRate == format.maxFrameRate)
    // A rate that the mode has is kept.
    let other = try #require(
      formats.first { $0.id != format.id && $0.frameRateRange.contains(format.maxFrameRate) })
    try await input.setActiveFormat(other)
    #expect(input.format.id == other.id && input.requestedFrameRate == format.maxFrameRate)
  }

  @Test func `A running camera continues in another mode`() async throws {
    let found = try inputs(try FakeVideoSystemCalls("hfr-usb\nhfr-usb"), 2)
    let (input, formats) = found[0]
    let session = CaptureSession(input)
    try session.addInputWithNoConnections(found[1].input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.setSessionPreset(.low)
    let other = found[1].input.format.id
    try await session.startRunning()
    #expect(await output.frames.first { _ in true } != nil)
    let events = session.events
    let format = try fastest(formats)
    try await input.setActiveFormat(format, frameRate: format.maxFrameRate)
    #expect(session.isRunning && session.runningInputs.count == 2)
    // The preset ended, and the other camera keeps the mode that it had.
    #expect(session.sessionPreset == .inputPriority && found[1].input.format.id == other)
    let sample = await output.frames.first { $0.formatDescription.width == format.width }
    #expect(sample?.formatDescription.height == format.height)
    let event = await events.first { _ in true }
    #expect(event == .activeFormatDidChange(input.device, format))
    // A preset replaces the mode, and without one it returns.
    try await session.setSessionPreset(.low)
    #expect(input.format.width < format.width)
    try await session.setSessionPreset(.inputPriority)
    #expect(input.format.id == format.id && input.requestedFrameRate == format.maxFrameRate)
    await session.stopRunning()
  }

  @Test func `A refused mode does not interrupt the stream`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb\nmono-hfr")
    let found = try inputs(machine, 2)
    let (input, formats) = found[0]
    let session = CaptureSession(input)
    try await session.startRunning()
    let (starts, before) = (machine.callCount(streamOn), input.format.id)
    let foreign = try fastest(found[1].formats)
    let format = try fastest(formats)
    for (format, rate) in [(foreign, nil), (format, FrameRate(7_000))] {
      let error = await #expect(throws: MediaError.self) {
        try await input.setActiveFormat(format, frameRate: rate)
      }
      #expect(error?.code == .modeRefused)
    }
    for duration in [MediaTime.zero, MediaTime(1, over: 7_000)] {
      let error = #expect(throws: MediaError.self) {
        try input.setActiveVideoFrameDuration(duration)
      }
      #expect(error?.code == .modeRefused)
    }
    #expect(session.isRunning && machine.callCount(streamOn) == starts)
    #expect(input.format.id == before)
    await session.stopRunning()
  }

  @Test func `A mode that cannot start leaves the old one running`() async throws {
    let (input, formats) = try inputs(try FakeVideoSystemCalls("hfr-usb streamon-fails=2"))[0]
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    let before = input.mode
    let format = try fastest(formats)
    let error = await #expect(throws: MediaError.self) {
      try await input.setActiveFormat(format)
    }
    #expect(error?.code == .deviceFailed && session.isRunning)
    #expect(input.mode == before && input.chosenMode == before)
    #expect(await output.frames.first { _ in true } != nil)
    try await input.setActiveFormat(format)
    #expect(input.format.id == format.id && session.isRunning)
    await session.stopRunning()
  }

  @Test func `The frame duration of a running camera can be changed`() async throws {
    let (input, formats) = try inputs(try FakeVideoSystemCalls("hfr-usb"))[0]
    let format = try #require(formats.first { $0.frameRateRange.contains(FrameRate(120)) })
    let session = CaptureSession(input)
    try await input.setActiveFormat(format, frameRate: FrameRate(120))
    try await session.startRunning()
    let slower = try #require(
      formats.first {
        $0.width == format.width && $0.height == format.height && $0.maxFrameRate < FrameRate(120)
      })
    try await input.setActiveFormat(slower, frameRate: slower.maxFrameRate)
    #expect(input.negotiatedFrameRate == slower.maxFrameRate && session.isRunning)
    await session.stopRunning()
  }

  @Test func `A frame duration changes the rate alone`() async throws {
    let (input, formats) = try inputs(try FakeVideoSystemCalls("continuous-sensor"))[0]
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    let format = try #require(
      formats.first { $0.frameRateRange.contains(FrameRate(60)) && $0.maxFrameRate > FrameRate(60) }
    )
    try await input.setActiveFormat(format, frameRate: format.maxFrameRate)
    #expect(input.negotiatedFrameRate != FrameRate(60))
    let set = try input.setActiveVideoFrameDuration(MediaTime(1, over: 60))
    #expect(set == input.negotiatedFrameRate.frameDuration && input.format.id == format.id)
    #expect(input.requestedFrameRate == FrameRate(60))
    // The driver rounds the duration.
    #expect(abs(input.negotiatedFrameRate.doubleValue - 60) < 1)
    #expect(session.isRunning)
    #expect(await output.frames.first { _ in true } != nil)
    await session.stopRunning()
  }

  @Test func `A frame duration applies to the mode of the configuration`() throws {
    let (input, formats) = try inputs(try FakeVideoSystemCalls("continuous-sensor"))[0]
    let session = CaptureSession(input)
    let format = try #require(
      formats.first {
        $0.id != input.format.id && $0.frameRateRange.contains(FrameRate(60))
          && $0.frameRateRange.contains(FrameRate(50))
      })
    session.beginConfiguration()
    try input.setActiveFormat(format)
    try input.setActiveVideoFrameDuration(MediaTime(1, over: 60))
    try session.commitConfiguration()
    #expect(input.format.id == format.id && input.requestedFrameRate == FrameRate(60))
    // A mode keeps the rate that was set before it in the same configuration.
    session.beginConfiguration()
    try input.setActiveVideoFrameDuration(MediaTime(1, over: 50))
    try input.setActiveFormat(format)
    try session.commitConfiguration()
    #expect(input.requestedFrameRate == FrameRate(50))
  }

  @Test func `An input of two sessions stays in the first one`() throws {
    let (input, formats) = try inputs(try FakeVideoSystemCalls("hfr-usb"))[0]
    let (first, second) = (CaptureSession(input), CaptureSession(input))
    #expect(input.session === second)
    second.removeInput(input)
    #expect(input.session === first)
    try first.setSessionPreset(.low)
    let format = try fastest(formats)
    try input.setActiveFormat(format)
    #expect(first.sessionPreset == .inputPriority && input.format.id == format.id)
  }
}
