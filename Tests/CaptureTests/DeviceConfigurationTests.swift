// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankV4L2

/// Runs a body with the devices of a fake machine in place of this one's.
private func onMachine<Result>(
  _ configuration: String, _ body: (FakeVideoSystemCalls) throws -> Result
) throws -> Result {
  let machine = try FakeVideoSystemCalls(configuration)
  return try DeviceSystem.$calls.withValue(machine) { try body(machine) }
}

/// What another program is told that sets the camera to another mode.
private func intrude() -> DeviceError.Reason? {
  do throws(DeviceError) {
    var other = try VideoDevice(opening: "/dev/fakevideo0")
    _ = try other.setFormat(fourcc: FourCC.mjpg.rawValue, width: 640, height: 360)
    return nil
  } catch { return error.reason }
}

struct DeviceConfigurationTests {
  @Test func `Whoever has the settings keeps them from everyone else`() throws {
    try onMachine("hfr-usb") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      #expect(intrude() == nil)
      let locked = try camera.lockForConfiguration()
      #expect(intrude() == .busy)
      #expect(throws: MediaError.self) { _ = try camera.lockForConfiguration() }
      locked.unlockForConfiguration()
      #expect(intrude() == nil)
      _ = try camera.lockForConfiguration()
    }
  }

  @Test func `A mode and a frame duration are set and read back`() throws {
    try onMachine("hfr-usb") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      var locked = try camera.lockForConfiguration()
      #expect(locked.activeFormat.width == 1_280 && locked.activeFormat.fourcc == .mjpg)
      let format = try camera.format(matching: ModeRequest(parsing: "640x360@120/mjpg"))
      try locked.setActiveFormat(format)
      #expect(locked.activeFormat == format)
      #expect(locked.activeVideoMinFrameDuration == MediaTime(1, over: 120))
      #expect(locked.activeVideoMaxFrameDuration == locked.activeVideoMinFrameDuration)
      let tooShort = MediaTime(1, over: 1_000)
      let error = #expect(throws: MediaError.self) {
        try locked.setActiveVideoFrameDuration(tooShort)
      }
      #expect(error?.code == .modeRefused)
      let input = try locked.makeInput()
      #expect(input.negotiatedFrameRate == format.maxFrameRate)
      // The input has the settings now, until it goes.
      #expect(intrude() == .busy)
    }
  }

  @Test func `A input that was made without a lock leaves the settings to everyone`() throws {
    try onMachine("hfr-usb") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let input = try DeviceInput(device: camera, format: try camera.fastestFormat())
      let other = try VideoDevice(opening: "/dev/fakevideo0")
      try other.set(.gain, to: 10)
      #expect(input.negotiatedFrameRate.doubleValue == 240)
    }
  }

  @Test func `A mode that was never set makes no input`() throws {
    try onMachine("fixed-rate") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      #expect(throws: MediaError.self) { try camera.lockForConfiguration().makeInput() }
    }
  }

  @Test func `A camera of the program's own has nobody to share with`() throws {
    let camera = try CaptureDevice.named("synthetic:320x240@120")
    var locked = try camera.lockForConfiguration()
    try locked.setActiveFormat(try camera.format(matching: ModeRequest(parsing: "/grey")))
    #expect(try locked.makeInput().negotiatedFrameRate.doubleValue == 120)
  }
}
