// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// Claims about the controls of a camera, on a scripted driver.
struct CameraControlsTests {
  private func items(_ names: [Int64: String]) -> [DeviceControl.MenuItem] {
    names.sorted { $0.key < $1.key }.map { DeviceControl.MenuItem(index: $0.key, name: $0.value) }
  }

  /// A typical webcam: two of the four exposure modes, everything automatic.
  private func webcam() -> ScriptedControls {
    ScriptedControls([
      DeviceControl(
        id: .automaticExposure, name: "Auto Exposure", kind: .menu, maximum: 3, defaultValue: 3,
        menu: items([1: "Manual Mode", 3: "Aperture Priority Mode"])),
      DeviceControl(
        id: .exposureTime, name: "Exposure Time, Absolute", kind: .integer, minimum: 1,
        maximum: 5000, defaultValue: 157, flags: [.inactive, .volatile]),
      DeviceControl(
        id: .exposureMayLowerRate, name: "Exposure, Dynamic Framerate", kind: .boolean,
        maximum: 1, defaultValue: 1),
      DeviceControl(
        id: .gain, name: "Gain", kind: .integer, maximum: 255, step: 5, defaultValue: 60),
      DeviceControl(
        id: .automaticFocus, name: "Focus, Automatic Continuous", kind: .boolean, maximum: 1,
        defaultValue: 1),
      DeviceControl(
        id: .focus, name: "Focus, Absolute", kind: .integer, maximum: 250, step: 5,
        flags: .inactive),
      DeviceControl(
        id: .automaticWhiteBalance, name: "White Balance, Automatic", kind: .boolean, maximum: 1,
        defaultValue: 1),
      DeviceControl(
        id: .whiteBalanceTemperature, name: "White Balance Temperature", kind: .integer,
        minimum: 2000, maximum: 6500, step: 10, defaultValue: 4000, flags: .inactive),
      DeviceControl(
        id: .zoom, name: "Zoom, Absolute", kind: .integer, minimum: 100, maximum: 500,
        defaultValue: 100),
      DeviceControl(
        id: .powerLineFrequency, name: "Power Line Frequency", kind: .menu, maximum: 2,
        menu: items([0: "Disabled", 1: "50 Hz", 2: "60 Hz"])),
      DeviceControl(id: .privacy, name: "Privacy", kind: .boolean, maximum: 1, flags: .readOnly),
    ])
  }

  /// A camera with the controls that few cameras have.
  private func studio() -> ScriptedControls {
    ScriptedControls([
      DeviceControl(id: .lock3A, name: "3A Lock", kind: .bitmask, maximum: 7),
      DeviceControl(
        id: .automaticExposure, name: "Auto Exposure", kind: .menu, maximum: 1,
        menu: items([0: "Auto Mode", 1: "Manual Mode"])),
      DeviceControl(
        id: .automaticFocus, name: "Focus, Automatic Continuous", kind: .boolean, maximum: 1),
      DeviceControl(id: .automaticFocusStart, name: "Auto Focus, Start", kind: .button),
      DeviceControl(
        id: .automaticFocusStatus, name: "Auto Focus, Status", kind: .bitmask, maximum: 7,
        flags: [.readOnly, .volatile]),
      DeviceControl(id: .whiteBalanceOnce, name: "Do White Balance", kind: .button),
      DeviceControl(
        id: .exposureBias, name: "Auto Exposure, Bias", kind: .integerMenu, maximum: 2,
        defaultValue: 1,
        menu: [-1500, 0, 1500].enumerated().map {
          DeviceControl.MenuItem(index: Int64($0), name: "\($1)", number: Int64($1))
        }),
      DeviceControl(
        id: .isoSensitivity, name: "ISO Sensitivity", kind: .integerMenu, maximum: 1,
        menu: [100_000, 400_000].enumerated().map {
          DeviceControl.MenuItem(index: Int64($0), name: "\($1)", number: Int64($1))
        }),
      DeviceControl(id: .isMirrored, name: "Horizontal Flip", kind: .boolean, maximum: 1),
      DeviceControl(id: .isFlipped, name: "Vertical Flip", kind: .boolean, maximum: 1),
      DeviceControl(
        id: .flashMode, name: "LED Mode", kind: .menu, maximum: 2,
        menu: items([0: "Off", 1: "Flash", 2: "Torch"])),
      DeviceControl(
        id: .torchIntensity, name: "Intensity, Torch Mode", kind: .integer, minimum: 20,
        maximum: 200, step: 20, defaultValue: 20),
      DeviceControl(
        id: .regionOfInterest, name: "Region of Interest Rectangle", kind: .rectangle,
        flags: .hasPayload, elementSize: 16),
      DeviceControl(
        id: .regionOfInterestAutomatics, name: "Region Of Interest Auto Ctrls", kind: .bitmask,
        maximum: 0b1001),
    ])
  }

  private func controls(_ driver: ScriptedControls) throws -> CameraControls {
    try driver.camera()
  }

  @Test func `Auto exposure is turned off before a manual exposure is set`() throws {
    let driver = webcam()
    let controls = try controls(driver)
    #expect(try controls.exposureMode == .continuousAutoExposure)
    let range = try #require(try controls.exposureDurationRange)
    #expect(range == MediaTime(microseconds: 100)...MediaTime(microseconds: 500_000))
    let granted = try controls.setExposureModeCustom(
      duration: MediaTime(microseconds: 4_166), gain: 20, rounding: .towardZero)
    #expect(granted.duration == MediaTime(microseconds: 4_100))
    #expect(granted.gain == 20)
    #expect(
      driver.numbersWritten == ["auto_exposure=1", "exposure_time_absolute=41", "gain=20"])
    #expect(try controls.exposureMode == .custom)
  }

  @Test func `Setting a control out of range fails and writes no control`() throws {
    let driver = webcam()
    let controls = try controls(driver)
    let error = try #require(throws: MediaError.self) {
      try controls.setExposureModeCustom(
        duration: MediaTime(seconds: 1), gain: nil, rounding: .towardZero)
    }
    #expect(error.code == .controlOutOfRange)
    #expect(error.recoverySuggestion == "choose 0.0001 s to 0.5 s")
    for code in [
      code { try controls.setExposureModeCustom(duration: nil, gain: 256, rounding: .towardZero) },
      code { try controls.setFocusModeLocked(lensPosition: .nan) },
      code { try controls.setFocusModeLocked(lensPosition: 1.01) },
      code { try controls.setWhiteBalanceModeLocked(temperature: 1999) },
      code { try controls.setVideoZoomFactor(5.01) },
      code { try controls.setVideoZoomFactor(.infinity) },
      code { try controls.rampToVideoZoomFactor(2, withRate: 0) },
    ] { #expect(code == .controlOutOfRange) }
    #expect(driver.writes == [])
  }

  @Test func `Exposure is locked at current values if there is no 3A lock`() throws {
    let driver = webcam()
    let controls = try controls(driver)
    try controls.setExposureMode(.locked)
    #expect(
      driver.numbersWritten == ["auto_exposure=1", "exposure_time_absolute=157", "gain=60"])
    #expect(try controls.exposureMode == .locked)
    // Locked exposure ends when the driver reports another value.
    driver.change { $0.values[.gain] = .number(65) }
    #expect(try controls.exposureMode == .custom)
    driver.change { $0.values[.gain] = .number(60) }
    try controls.setExposureModeCustom(duration: nil, gain: nil, rounding: .towardZero)
    #expect(try controls.exposureMode == .custom)
    try controls.setExposureMode(.continuousAutoExposure)
    #expect(driver.numbersWritten.last == "auto_exposure=3")
    #expect(!controls.isExposureModeSupported(.autoExpose))
  }

  @Test func `Locking exposure leaves the other 3A locks unchanged`() throws {
    let driver = studio()
    let controls = try controls(driver)
    driver.change { $0.values[.lock3A] = .number(0b010) }
    try controls.setExposureMode(.locked)
    #expect(try controls.exposureMode == .locked)
    #expect(try controls.whiteBalanceMode == .locked)
    try controls.setExposureMode(.continuousAutoExposure)
    #expect(
      driver.numbersWritten == ["3a_lock=3", "3a_lock=2", "auto_exposure=0"])
  }

  @Test func `Lens position 0 is the closest focus`() throws {
    let driver = webcam()
    let controls = try controls(driver)
    #expect(try controls.focusMode == .continuousAutoFocus)
    try controls.setFocusModeLocked(lensPosition: 0)
    try controls.setFocusModeLocked(lensPosition: 0.7)
    #expect(
      driver.numbersWritten == [
        "focus_automatic_continuous=0", "focus_absolute=250", "focus_automatic_continuous=0",
        "focus_absolute=75",
      ])
    #expect(try controls.lensPosition == 0.7)
    #expect(try controls.focusMode == .locked)
    #expect(!controls.isFocusModeSupported(.autoFocus))
    #expect(try controls.isAdjustingFocus == nil)
  }

  @Test func `One-shot autofocus reports focusing and then locks the focus`() throws {
    let driver = studio()
    let controls = try controls(driver)
    driver.change { $0.values[.automaticFocus] = .number(1) }
    try controls.setFocusMode(.autoFocus)
    #expect(driver.numbersWritten == ["focus_automatic_continuous=0", "auto_focus_start=0"])
    driver.change { $0.values[.automaticFocusStatus] = .number(1) }
    #expect(try controls.focusMode == .autoFocus)
    #expect(try controls.isAdjustingFocus == true)
    driver.change { $0.values[.automaticFocusStatus] = .number(2) }
    #expect(try controls.focusMode == .locked)
  }

  @Test func `White balance is set in kelvin`() throws {
    let driver = webcam()
    let controls = try controls(driver)
    #expect(try controls.whiteBalanceMode == .continuousAutoWhiteBalance)
    #expect(try controls.setWhiteBalanceModeLocked(temperature: 3204) == 3200)
    #expect(
      driver.numbersWritten == ["white_balance_automatic=0", "white_balance_temperature=3200"])
    #expect(try controls.whiteBalanceMode == .locked)
    #expect(try controls.whiteBalanceTemperatureRange == 2000...6500)
    #expect(!controls.isWhiteBalanceModeSupported(.autoWhiteBalance))
    #expect(try self.controls(studio()).isWhiteBalanceModeSupported(.autoWhiteBalance))
  }

  @Test func `Exposure bias and ISO values come from driver integer menus`() throws {
    let driver = studio()
    let controls = try controls(driver)
    #expect(try controls.exposureTargetBiases == [-1500, 0, 1500])
    #expect(try controls.exposureTargetBias == 0)
    #expect(try controls.setExposureTargetBias(1000) == 1500)
    #expect(code { try controls.setExposureTargetBias(1501) } == .controlOutOfRange)
    #expect(try controls.isoValues == [100, 400])
    try controls.setISO(400)
    #expect(try controls.iso == 400)
    #expect(code { try controls.setISO(200) } == .controlOutOfRange)
  }

  @Test func `A point of interest sets a region inside the sensor`() throws {
    let driver = studio()
    driver.change {
      $0.values[.regionOfInterest] = .rectangle(
        PixelRect(x: 0, y: 0, width: 1280, height: 720))
    }
    let controls = try controls(driver)
    #expect(controls.isExposurePointOfInterestSupported)
    #expect(try controls.exposurePointOfInterest == nil)
    try controls.setExposurePointOfInterest(Point(x: 0.5, y: 0.25))
    #expect(try controls.exposurePointOfInterest == Point(x: 0.5, y: 0.25))
    #expect(try controls.focusPointOfInterest == nil)
    try controls.setFocusPointOfInterest(Point(x: 1, y: 0))
    #expect(
      driver.change { $0.values[.regionOfInterest] }
        == .rectangle(PixelRect(x: 960, y: 0, width: 320, height: 180)))
    #expect(driver.change { $0.values[.regionOfInterestAutomatics] } == .number(0b1001))
    #expect(
      code { try controls.setFocusPointOfInterest(Point(x: -0.1, y: 0)) }
        == .controlOutOfRange)
  }

  @Test func `Centering exposure and focus points restores the full region`() throws {
    let driver = studio()
    let whole = ControlValue.rectangle(PixelRect(x: 0, y: 0, width: 1280, height: 720))
    driver.change { $0.values[.regionOfInterest] = whole }
    let controls = try controls(driver)
    let corner = Point(x: 1, y: 0)
    try controls.setExposurePointOfInterest(corner)
    try controls.setFocusPointOfInterest(corner)
    try controls.setExposurePointOfInterest(.center)
    #expect(try controls.exposurePointOfInterest == nil)
    #expect(try controls.focusPointOfInterest != nil)
    #expect(driver.change { $0.values[.regionOfInterest] } != whole)
    try controls.setFocusPointOfInterest(Point(x: 0.5, y: 0.5))
    #expect(try controls.focusPointOfInterest == nil)
    #expect(driver.change { $0.values[.regionOfInterest] } == whole)
    #expect(driver.change { $0.values[.regionOfInterestAutomatics] } == .number(0))
  }

  @Test(arguments: [false, true])
  func `Stopping the session restores the region of interest`(isSetBefore: Bool) throws {
    let machine = try FakeVideoSystemCalls("uvc-webcam")
    machine.pace()
    try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let session = try CaptureSession(camera)
      let controls = try CameraControls(device: camera)
      func region() throws -> [CameraControl.Value?] {
        try controls.list().filter { $0.name.hasPrefix("region_of_interest") }.map(\.value)
      }
      let before = try region()
      #expect(before.count == 2)
      if isSetBefore { try controls.setExposurePointOfInterest(Point(x: 0.9, y: 0.9)) }
      try session.startRunning()
      try controls.setExposurePointOfInterest(Point(x: 0.1, y: 0.1))
      #expect(try controls.exposurePointOfInterest != nil)
      #expect(try region() != before)
      session.stopRunning()
      #expect(try region() == before)
      #expect(try controls.exposurePointOfInterest == nil)
    }
  }

  @Test func `Mirroring and rotation by 180 degrees are independent`() throws {
    let driver = studio()
    let controls = try controls(driver)
    for isMirrored in [false, true] {
      for angle: Int64 in [0, 180] {
        try controls.setVideoMirrored(isMirrored)
        try controls.setVideoRotationAngle(angle)
        #expect(try controls.isVideoMirrored == isMirrored)
        #expect(try controls.videoRotationAngle == angle)
        #expect(driver.change { $0.values[.isFlipped] } == .number(angle == 180 ? 1 : 0))
        #expect(
          driver.change { $0.values[.isMirrored] }
            == .number(isMirrored != (angle == 180) ? 1 : 0))
      }
    }
    #expect(code { try controls.setVideoRotationAngle(90) } == .controlNotSupported)
  }

  @Test func `Missing controls read as nil and cannot be set`() throws {
    for controls in [
      try controls(ScriptedControls([])), try CameraControls(device: .named("synthetic")),
    ] {
      #expect(try controls.list() == [])
      #expect(try controls.focusMode == nil && controls.exposureMode == nil)
      #expect(try controls.whiteBalanceMode == nil && controls.videoZoomFactor == nil)
      #expect(try controls.isVideoMirrored == nil && controls.videoRotationAngle == nil)
      #expect(try controls.torchMode == nil && controls.powerLineFrequency == nil)
      #expect(!controls.hasTorch && !controls.hasFlash && !controls.isVideoZoomSupported)
      for mode in ExposureMode.allCases { #expect(!controls.isExposureModeSupported(mode)) }
      for mode in FocusMode.allCases { #expect(!controls.isFocusModeSupported(mode)) }
      for mode in WhiteBalanceMode.allCases {
        #expect(!controls.isWhiteBalanceModeSupported(mode))
      }
      for code in [
        code { try controls.setFocusMode(.locked) },
        code { try controls.setVideoHDREnabled(false) },
        code { try controls.setAutoVideoFrameRateEnabled(false) },
        code { try controls.setVideoZoomFactor(1) }, code { try controls.setTorchMode(.off) },
        code { try controls.setFocusPointOfInterest(Point(x: 0, y: 0)) },
        code { _ = try controls.changes() },
      ] { #expect(code == .controlNotSupported) }
    }
  }

  @Test func `Power line frequency and auto frame rate can be set`() throws {
    let driver = webcam()
    let controls = try controls(driver)
    #expect(try controls.powerLineFrequency == .off)
    try controls.setPowerLineFrequency(.hertz50)
    #expect(try controls.powerLineFrequency == .hertz50)
    #expect(code { try controls.setPowerLineFrequency(.automatic) } == .controlNotSupported)
    #expect(try controls.isPrivacyShutterClosed == false)
    #expect(try controls.isAutoVideoFrameRateEnabled == true)
    try controls.setAutoVideoFrameRateEnabled(false)
    #expect(try controls.isAutoVideoFrameRateEnabled == false)
  }

  @Test func `Control changes are reported until the device is unplugged`() async throws {
    let driver = webcam()
    let controls = try controls(driver)
    #expect(code { _ = try controls.changes(of: ["gian"]) } == .controlNotSupported)
    let changes = try controls.changes(of: ["gain"])
    #expect(driver.change { $0.subscriptions } == [.gain])
    driver.send(change: .gain, to: 7)
    driver.send(change: .focus, to: 8)
    driver.send(change: .gain, to: 9)
    var values: [Int64?] = []
    do throws(MediaError) {
      for try await change in changes {
        #expect(change.name == "gain")
        values.append(change.value)
        if values.count == 2 { driver.change { $0.isUnplugged = true } }
      }
      Issue.record("the sequence ended without saying why")
    } catch {
      #expect(error.code == .deviceLost)
    }
    #expect(values == [7, 9])
  }
}
