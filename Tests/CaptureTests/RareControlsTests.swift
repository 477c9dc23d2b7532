// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// Claims about controls that few cameras have.
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
    try driver.camera()
  }

  @Test func `Video stabilization and HDR can be switched on and off`() throws {
    let controls = try controls()
    #expect(try controls.isVideoStabilizationEnabled == false)
    try controls.setVideoStabilizationEnabled(true)
    #expect(try controls.isVideoStabilizationEnabled == true)
    #expect(try controls.isVideoHDREnabled == true)
    try controls.setVideoHDREnabled(false)
    #expect(try controls.isVideoHDREnabled == false)
    #expect(driver.numbersWritten == ["image_stabilization=1", "wide_dynamic_range=0"])
  }

  @Test func `Rotating a mirrored image by 90 degrees keeps it mirrored`() throws {
    let controls = try controls()
    try controls.setVideoMirrored(true)
    for angle: Int64 in [0, 90, 180, 270] {
      #expect(controls.isVideoRotationAngleSupported(angle))
      try controls.setVideoRotationAngle(angle)
      #expect(try controls.videoRotationAngle == angle && controls.isVideoMirrored == true)
    }
    for angle: Int64 in [-90, 45, 360] {
      #expect(!controls.isVideoRotationAngleSupported(angle))
      let error = #expect(throws: MediaError.self) { try controls.setVideoRotationAngle(angle) }
      #expect(error?.code == .controlNotSupported)
    }
  }

  @Test func `An LED on its own subdevice is controlled as the torch`() throws {
    let sensor = ScriptedControls([
      DeviceControl(id: .gain, name: "Gain", kind: .integer, maximum: 10)
    ])
    let led = ScriptedControls([
      DeviceControl(
        id: .flashMode, name: "LED Mode", kind: .menu, maximum: 2,
        menu: [(0, "Off"), (1, "Flash"), (2, "Torch")].map {
          DeviceControl.MenuItem(index: $0, name: $1)
        }),
      DeviceControl(
        id: .torchIntensity, name: "Intensity, Torch Mode", kind: .integer, maximum: 200,
        step: 50),
      DeviceControl(id: .brightness, name: "Brightness", kind: .integer, maximum: 9),
    ])
    let camera = ScriptedControls(
      [DeviceControl(id: .brightness, name: "Brightness", kind: .integer, maximum: 255)],
      parts: ["/dev/v4l-subdev2": sensor, "/dev/v4l-subdev10": led])
    do {
      let controls = try camera.camera()
      // The LED is opened only when the torch is used.
      #expect(try controls.camera.number(.brightness) == 0)
      #expect(led.change { $0.openCount } == 0)
      #expect(controls.hasTorch && controls.hasFlash)
      try controls.setTorchModeOn(level: 0.5)
      camera.handles.setStreaming(true, "/dev/video0")
      #expect(try controls.torchLevel == 0.5)
      #expect(led.numbersWritten == ["intensity_torch_mode=100", "led_mode=2"])
      // In the combined list, controls of the LED do not hide controls of the camera.
      #expect(
        try controls.list().map(\.name) == ["brightness", "led_mode", "intensity_torch_mode"])
      // If one assignment fails, the changes to both devices are restored.
      led.change { $0.writeErrors[.flashMode] = EIO }
      #expect(throws: MediaError.self) {
        try controls.set([
          ControlAssignment(parsing: "brightness=7"),
          ControlAssignment(parsing: "intensity_torch_mode=200"),
          ControlAssignment(parsing: "led_mode=0"),
        ])
      }
      #expect(try controls.camera.number(.brightness) == 0)
      #expect(try controls.torchLevel == 0.5)
      #expect(camera.numbersWritten == ["brightness=7", "brightness=0"])
      #expect(sensor.writes == [])
    }
    #expect([camera, sensor, led].allSatisfy { $0.change { $0.openCount } == 0 })
  }

  @Test func `An LED without a torch mode fires a flash on request`() throws {
    let controls = try controls()
    #expect(controls.hasFlash && !controls.hasTorch)
    #expect(try controls.flashMode == .off && controls.torchMode == nil)
    for mode in [FlashMode.auto, .on] {
      try controls.setFlashMode(mode)
      #expect(controls.flashMode == mode)
    }
    #expect(driver.writes == [])
    try controls.fireFlash()
    #expect(driver.numbersWritten == ["led_mode=1", "strobe=0"])
    let error = #expect(throws: MediaError.self) { try controls.setTorchMode(.on) }
    #expect(error?.code == .controlNotSupported)
  }

  @Test func `One-shot white balance locks the measured value`() throws {
    let controls = try controls()
    try controls.setWhiteBalanceMode(.autoWhiteBalance)
    #expect(driver.numbersWritten == ["white_balance_automatic=0", "do_white_balance=0"])
    #expect(try controls.whiteBalanceMode == .locked)
  }

  @Test func `Low light boost selects night scene and keeps the frame rate`() throws {
    let driver = ScriptedControls([
      DeviceControl(
        id: .sceneMode, name: "Scene Mode", kind: .menu, maximum: 8,
        menu: [(0, "None"), (8, "Night")].map { DeviceControl.MenuItem(index: $0, name: $1) }),
      DeviceControl(
        id: .exposureMayLowerRate, name: "Exposure, Dynamic Framerate", kind: .boolean,
        maximum: 1),
    ])
    let boosted = try driver.camera()
    #expect(boosted.isLowLightBoostSupported)
    #expect(try boosted.isLowLightBoostEnabled == false)
    try boosted.setLowLightBoostEnabled(true)
    #expect(try boosted.isLowLightBoostEnabled == true)
    #expect(try boosted.isAutoVideoFrameRateEnabled == false)
    #expect(driver.numbersWritten == ["scene_mode=8"])
    let plain = try controls()
    #expect(try plain.isLowLightBoostEnabled == nil)
    let error = #expect(throws: MediaError.self) { try plain.setLowLightBoostEnabled(false) }
    #expect(error?.code == .controlNotSupported)
  }

  @Test func `Autofocus can be restricted to near subjects`() throws {
    let driver = ScriptedControls([
      DeviceControl(
        id: .automaticFocusRange, name: "Auto Focus, Range", kind: .menu, maximum: 3,
        defaultValue: 1,
        menu: [(1, "Normal"), (2, "Macro")].map { DeviceControl.MenuItem(index: $0, name: $1) })
    ])
    let restricted = try driver.camera()
    #expect(restricted.isAutoFocusRangeRestrictionSupported)
    #expect(try restricted.autoFocusRangeRestriction == AutoFocusRangeRestriction.none)
    try restricted.setAutoFocusRangeRestriction(.near)
    #expect(try restricted.autoFocusRangeRestriction == .near)
    try restricted.setAutoFocusRangeRestriction(.none)
    #expect(driver.numbersWritten == ["auto_focus_range=2", "auto_focus_range=1"])
    let error = #expect(throws: MediaError.self) {
      try restricted.setAutoFocusRangeRestriction(.far)
    }
    #expect(error?.code == .controlNotSupported)
    #expect(try controls().autoFocusRangeRestriction == nil)
    #expect(try !controls().isAutoFocusRangeRestrictionSupported)
  }

  @Test func `A property falls back to the control that the camera has`() throws {
    let driver = ScriptedControls([
      DeviceControl(
        id: .whiteBalancePreset, name: "White Balance, Auto & Preset", kind: .menu, maximum: 2,
        defaultValue: 1,
        menu: [(0, "Manual"), (1, "Auto"), (2, "Incandescent")].map {
          DeviceControl.MenuItem(index: $0, name: $1)
        }),
      DeviceControl(id: .analogueGain, name: "Analogue Gain", kind: .integer, maximum: 32, step: 2),
      DeviceControl(id: .exposureTime, name: "Exposure Time", kind: .integer, maximum: 100),
    ])
    let controls = try driver.camera()
    #expect(try controls.whiteBalanceMode == .continuousAutoWhiteBalance)
    try controls.setWhiteBalanceMode(.locked)
    driver.change { $0.values[.whiteBalancePreset] = .number(2) }
    #expect(try controls.whiteBalanceMode == .locked)
    try controls.setWhiteBalanceMode(.continuousAutoWhiteBalance)
    #expect(try controls.gainRange == 0...32)
    let exposure = try controls.setExposureModeCustom(
      duration: nil, gain: 15, rounding: .towardZero)
    #expect(exposure.gain == 16)
    #expect(
      driver.numbersWritten == [
        "white_balance_auto_preset=0", "white_balance_auto_preset=1",
        "exposure_time_absolute=0",
        "analogue_gain=16",
      ])
  }
}
