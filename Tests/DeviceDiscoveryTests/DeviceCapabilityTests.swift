// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// The capabilities of devices and their formats.
struct DeviceCapabilityTests {
  private func onMachine<Result>(
    _ configuration: String, _ body: () throws -> Result
  ) throws -> Result {
    let machine = try FakeVideoSystemCalls(configuration)
    return try DeviceSystem.$calls.withValue(machine, operation: body)
  }

  @Test func `Formats report zoom and exposure limits of camera controls`() throws {
    try onMachine("sensor-module;yuyv-1080p120") {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      for format in try camera.formats() {
        #expect(format.lensMaxZoomFactor == 4)
        #expect(format.videoMaxZoomFactor == Double(min(format.width, format.height)) / 16)
        #expect(format.isVideoStabilizationSupported)
        #expect(format.minExposureDuration == MediaTime(microseconds: 100))
        #expect(format.maxExposureDuration == MediaTime(1, over: 10))
        #expect(format.minISO == 100 && format.maxISO == 800)
      }
      let plain = try CaptureDevice.named("/dev/fakevideo1").fastestFormat()
      #expect(plain.lensMaxZoomFactor == 1 && !plain.isVideoStabilizationSupported)
      #expect(plain.minExposureDuration == nil && plain.maxISO == nil)
    }
  }

  @Test(
    arguments: [
      // The frame rate, the exposure in microseconds, and the mains frequencies without flicker.
      (100, nil, [50]), (50, nil, [50]), (25, nil, [50]), (20, nil, [50, 60]), (120, nil, [60]),
      (60, nil, [60]), (24, nil, [60]), (240, nil, []), (30, nil, [60]), (30, 10_000, [50, 60]),
      (30, 20_000, [50, 60]), (30, 9_000, [60]), (90, 10_000, [50]), (240, 10_000, []),
    ] as [(Int, Int64?, [Int])])
  func `Mains flicker depends on frame rate and exposure duration`(
    rate: Int, microseconds: Int64?, safe: [Int]
  ) throws {
    let format = CaptureFormat(
      fourcc: .mjpg, width: 640, height: 480, isCompressed: true,
      frameRateRange: FrameRateRange(FrameRate(rate)), driverOrder: 0)
    let exposure = microseconds.map(MediaTime.init(microseconds:))
    #expect(
      [50, 60].filter { format.isFlickerFree(underMainsOf: $0, exposureDuration: exposure) } == safe
    )
    if exposure == nil { #expect(format.flickerFreeMainsFrequencies == safe) }
  }

  @Test func `A 10 ms exposure avoids 50 Hz flicker only if it is manual`()
    throws
  {
    try onMachine("sensor-module") {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      func safe() throws -> [Int]? {
        try camera.formats().first { $0.maxFrameRate == FrameRate(30) }?.flickerFreeMainsFrequencies
      }
      let device = try VideoDevice(opening: "/dev/fakevideo0")
      try device.set(.automaticExposure, to: ControlItem.exposureManual)
      try device.set(.exposureTime, to: 100)
      #expect(try safe() == [50, 60])
      try device.set(.automaticExposure, to: ControlItem.exposureAutomatic)
      #expect(try safe() == [60])
    }
  }

  @Test func `Reads the sensor position and rotation from the driver`() throws {
    try onMachine("sensor-module;stepwise-sensor") {
      let module = try CaptureDevice.named("/dev/fakevideo0")
      #expect(module.position == .back)
      // The sensor is mounted at 270 degrees counterclockwise.
      #expect(module.videoRotationAngleForHorizonLevelCapture == 90)
      let front = try CaptureDevice.named("/dev/fakevideo1")
      #expect(front.position == .front && front.videoRotationAngleForHorizonLevelCapture == 0)
    }
  }

  @Test func `The default device has the requested type and position`() throws {
    try onMachine("stepwise-sensor;sensor-module;hfr-usb") {
      #expect(CaptureDevice.defaultDevice(.builtIn, for: .video)?.name == "Stepwise Sensor")
      #expect(
        CaptureDevice.defaultDevice(.builtIn, for: .video, at: .back)?.name == "Sensor Module")
      #expect(CaptureDevice.defaultDevice(.external, for: .video)?.driver == "uvcvideo")
      #expect(CaptureDevice.defaultDevice(.external, for: .video, at: .front) == nil)
      #expect(CaptureDevice.defaultDevice(.virtual, for: .video) == nil)
    }
  }

  @Test func `The error for a slow camera names its fastest mode`() throws {
    try onMachine("hfr-usb;tv-card") {
      let fast = try CaptureDevice.named("/dev/fakevideo0")
      let isFast = try fast.supportsHighFrameRateCapture
      #expect(isFast)
      let fastest = try fast.fastestFormat()
      #expect(try fast.highFrameRateFormat() == fastest)
      let slow = try CaptureDevice.named("/dev/fakevideo1")
      let isSlowFast = try slow.supportsHighFrameRateCapture
      #expect(!isSlowFast)
      let error = #expect(throws: MediaError.self) { try slow.highFrameRateFormat() }
      #expect(error?.code == .noHighFrameRate)
      #expect(error?.recoverySuggestion.contains("720x576@25/yuyv") == true)
    }
  }

  @Test func `The model id is made of USB ids or else of the driver name`() throws {
    try onMachine("sensor-module") {
      let module = try CaptureDevice.named("/dev/fakevideo0")
      #expect(module.modelID == "isp:Sensor Module")
    }
    #expect(try CaptureDevice.named("synthetic").modelID == "synthetic")
    let directory = FileManager.default.temporaryDirectory.appending(path: "model-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    #expect(CaptureDevice.usbModel(of: directory.path) == nil)
    for (file, text) in [("idVendor", "046d\n"), ("idProduct", "0892\n")] {
      try text.write(to: directory.appending(path: file), atomically: true, encoding: .utf8)
    }
    #expect(CaptureDevice.usbModel(of: directory.path) == "046d:0892")
  }
}
