// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture
@testable import OvercrankV4L2

/// Runs a closure with the devices of a fake machine.
private func onMachine<Result>(
  _ configuration: String, _ body: (FakeVideoSystemCalls) throws -> Result
) throws -> Result {
  let machine = try FakeVideoSystemCalls(configuration)
  return try DeviceSystem.$calls.withValue(machine) { try body(machine) }
}

/// The error that another program gets when it sets another mode, or nil if it succeeds.
private func errorOfForeignFormat() -> CallFailure.Kind? {
  do throws(CallFailure) {
    var other = try VideoDevice(opening: "/dev/fakevideo0")
    _ = try other.setFormat(fourcc: FourCC.mjpg.rawValue, width: 640, height: 360)
    return nil
  } catch { return error.kind }
}

/// The error that another program gets when it sets a control, or nil if it succeeds.
private func errorOfForeignControl() -> CallFailure.Kind? {
  do throws(CallFailure) {
    try VideoDevice(opening: "/dev/fakevideo0").set(.gain, to: 11)
    return nil
  } catch { return error.kind }
}

struct DeviceConfigurationTests {
  @Test func `A locked device rejects changes by other programs`() throws {
    try onMachine("hfr-usb") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      #expect(errorOfForeignFormat() == nil)
      let locked = try camera.lockForConfiguration()
      #expect(errorOfForeignFormat() == .busy)
      #expect(throws: MediaError.self) { _ = try camera.lockForConfiguration() }
      locked.unlockForConfiguration()
      #expect(errorOfForeignFormat() == nil)
      _ = try camera.lockForConfiguration()
    }
  }

  @Test func `All control objects can set controls of a locked camera`() throws {
    try onMachine("hfr-usb") { machine in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let before = try CameraControls(device: camera)
      let locked = try camera.lockForConfiguration()
      for controls in [before, try CameraControls(device: camera)] {
        try controls.setFocusModeLocked(lensPosition: 0.5)
        try controls.setVideoZoomFactor(2)
        try controls.setExposureModeCustom(
          duration: MediaTime(microseconds: 2_000), gain: 10, rounding: .towardZero)
        try controls.set([ControlAssignment(parsing: "brightness=99")])
      }
      #expect(errorOfForeignControl() == .busy)
      #expect(machine.controlValue(ControlID.zoom.rawValue) == 200)
      #expect(machine.controlValue(ControlID.gain.rawValue) == 10)
      locked.unlockForConfiguration()
      #expect(errorOfForeignControl() == nil)
      try before.setVideoZoomFactor(3)
      #expect(machine.controlValue(ControlID.zoom.rawValue) == 300)
    }
  }

  @Test(arguments: [false, true])
  func `A camera can be locked while its session runs`(keepsLock: Bool) throws {
    try onMachine("hfr-usb") { machine in
      machine.pace()
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let format = try camera.fastestFormat()
      let input: DeviceInput
      if keepsLock {
        var mode = try camera.lockForConfiguration()
        try mode.setActiveFormat(format)
        input = try mode.makeInput()
      } else {
        input = try DeviceInput(device: camera, format: format)
      }
      let session = CaptureSession(input)
      try session.startRunning()
      let controls = try CameraControls(device: camera)
      try controls.setVideoZoomFactor(2)
      #expect(errorOfForeignControl() == (keepsLock ? .busy : nil))
      var locked = try camera.lockForConfiguration()
      try controls.setVideoZoomFactor(3)
      #expect(machine.controlValue(ControlID.zoom.rawValue) == 300)
      #expect(errorOfForeignControl() == .busy)
      // A second attempt to lock the camera fails, and the running input keeps its mode.
      #expect(throws: MediaError.self) { _ = try camera.lockForConfiguration() }
      let error = #expect(throws: MediaError.self) { try locked.setActiveFormat(format) }
      #expect(error?.code == .deviceBusy)
      // The lock does not keep the program's own session from restarting.
      session.stopRunning()
      try session.startRunning()
      locked.unlockForConfiguration()
      session.stopRunning()
      #expect(errorOfForeignControl() == (keepsLock ? .busy : nil))
    }
  }

  @Test func `A configuration lock outlasts a format change of its camera`() throws {
    try onMachine("hfr-usb") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      var locked = try camera.lockForConfiguration()
      try locked.setActiveFormat(try camera.fastestFormat())
      let input = try locked.makeInput()
      let session = CaptureSession(input)
      try session.setSessionPreset(.medium)
      #expect(input.format.width == 640)
      #expect(errorOfForeignControl() == .busy)
    }
  }

  @Test func `The active format and frame duration read back as set`() throws {
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
      // The input holds the lock now, until it is deallocated.
      #expect(errorOfForeignFormat() == .busy)
    }
  }

  @Test func `An unlocked camera input lets other programs set controls`() throws {
    try onMachine("hfr-usb") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let input = try DeviceInput(device: camera, format: try camera.fastestFormat())
      let other = try VideoDevice(opening: "/dev/fakevideo0")
      try other.set(.gain, to: 10)
      #expect(input.negotiatedFrameRate.doubleValue == 240)
    }
  }

  @Test func `Refuses an input of a locked camera without an active format`() throws {
    try onMachine("fixed-rate") { _ in
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      #expect(throws: MediaError.self) { try camera.lockForConfiguration().makeInput() }
    }
  }

  @Test func `A synthetic camera can be locked and configured`() throws {
    let camera = try CaptureDevice.named("synthetic:320x240@120")
    var locked = try camera.lockForConfiguration()
    try locked.setActiveFormat(try camera.format(matching: ModeRequest(parsing: "/grey")))
    #expect(try locked.makeInput().negotiatedFrameRate.doubleValue == 120)
  }
}
