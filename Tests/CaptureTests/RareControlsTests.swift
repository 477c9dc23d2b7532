// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing
import V4L2

@testable import Capture

/// Claims about settings that few cameras have.
struct RareControlsTests {
  private let driver = ScriptedControls([
    DeviceControl(id: .imageStabilization, name: "Image Stabilization", kind: .boolean, maximum: 1),
    DeviceControl(
      id: .wideDynamicRange, name: "Wide Dynamic Range", kind: .boolean, maximum: 1,
      defaultValue: 1),
    DeviceControl(
      id: .rotation, name: "Rotate", kind: .integer, maximum: 270, step: 90),
    DeviceControl(id: .isMirrored, name: "Horizontal Flip", kind: .boolean, maximum: 1),
    DeviceControl(
      id: .flashMode, name: "LED Mode", kind: .menu, maximum: 1,
      menu: [
        DeviceControl.MenuItem(index: 0, name: "Off"),
        DeviceControl.MenuItem(index: 1, name: "Flash"),
      ]),
    DeviceControl(id: .flashStrobe, name: "Strobe", kind: .button),
    DeviceControl(
      id: .automaticWhiteBalance, name: "White Balance, Automatic", kind: .boolean, maximum: 1,
      defaultValue: 1),
    DeviceControl(id: .whiteBalanceOnce, name: "Do White Balance", kind: .button),
    DeviceControl(
      id: .whiteBalanceTemperature, name: "White Balance Temperature", kind: .integer,
      minimum: 2_000, maximum: 6_500, defaultValue: 4_000, flags: .volatile),
  ])

  private func controls() throws -> CameraControls {
    try DeviceSystem.$calls.withValue(driver) { try CameraControls(path: "/dev/video0") }
  }

  @Test func `A steadied picture and a wide dynamic range are switched on and off`() throws {
    let controls = try controls()
    #expect(try controls.isVideoStabilizationEnabled == false)
    try controls.setVideoStabilizationEnabled(true)
    #expect(try controls.isVideoStabilizationEnabled == true)
    #expect(try controls.isVideoHDREnabled == true)
    try controls.setVideoHDREnabled(false)
    #expect(try controls.isVideoHDREnabled == false)
    #expect(driver.numbersWritten == ["image_stabilization=1", "wide_dynamic_range=0"])
  }

  @Test func `A camera that turns its picture does so by quarters, and stays mirrored`() throws {
    let controls = try controls()
    try controls.setVideoMirrored(true)
    for angle: Int64 in [0, 90, 180, 270] {
      #expect(controls.isVideoRotationAngleSupported(angle))
      try controls.setVideoRotationAngle(angle)
      #expect(try controls.videoRotationAngle == angle && controls.isVideoMirrored == true)
    }
    for angle: Int64 in [-90, 45, 360] {
      #expect(!controls.isVideoRotationAngleSupported(angle))
      let error = #expect(throws: CaptureError.self) { try controls.setVideoRotationAngle(angle) }
      #expect(error?.code == .controlNotSupported)
    }
  }

  @Test func `A lamp that only flashes has no torch, and fires when it is told to`() throws {
    let controls = try controls()
    #expect(controls.hasFlash && !controls.hasTorch)
    #expect(try controls.flashMode == .off && controls.torchMode == nil)
    try controls.setFlashMode(.on)
    try controls.fireFlash()
    #expect(try controls.flashMode == .on)
    #expect(driver.numbersWritten == ["led_mode=1", "strobe=0"])
    let error = #expect(throws: CaptureError.self) { try controls.setTorchMode(.on) }
    #expect(error?.code == .controlNotSupported)
  }

  @Test func `White is measured once, and the camera adjusts until its temperature rests`() throws {
    let controls = try controls()
    #expect(try controls.isAdjustingWhiteBalance == nil)
    try controls.setWhiteBalanceMode(.autoWhiteBalance)
    #expect(driver.numbersWritten == ["white_balance_automatic=0", "do_white_balance=0"])
    driver.change { $0.values[.whiteBalanceTemperature] = .number(5_200) }
    #expect(try controls.isAdjustingWhiteBalance == true)
    #expect(try controls.isAdjustingWhiteBalance == false)
    #expect(try controls.whiteBalanceMode == .locked)
  }
}
