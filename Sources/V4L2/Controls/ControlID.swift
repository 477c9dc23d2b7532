// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// The ID of a control: `V4L2_CID_…`.
package struct ControlID: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  private init(_ number: Int32) { self.init(rawValue: UInt32(bitPattern: number)) }

  // Image controls.
  package static let brightness = ControlID(V4L2_CID_BRIGHTNESS)
  package static let contrast = ControlID(V4L2_CID_CONTRAST)
  package static let saturation = ControlID(V4L2_CID_SATURATION)
  package static let hue = ControlID(V4L2_CID_HUE)
  package static let hueAutomatic = ControlID(V4L2_CID_HUE_AUTO)
  package static let gamma = ControlID(V4L2_CID_GAMMA)
  package static let sharpness = ControlID(V4L2_CID_SHARPNESS)
  package static let backlightCompensation = ControlID(V4L2_CID_BACKLIGHT_COMPENSATION)
  package static let automaticBrightness = ControlID(V4L2_CID_AUTOBRIGHTNESS)
  package static let chromaGain = ControlID(V4L2_CID_CHROMA_GAIN)
  package static let automaticChroma = ControlID(V4L2_CID_CHROMA_AGC)
  package static let isMirrored = ControlID(V4L2_CID_HFLIP)
  package static let isFlipped = ControlID(V4L2_CID_VFLIP)
  /// Image rotation in degrees.
  package static let rotation = ControlID(V4L2_CID_ROTATE)
  /// Menu: off, 50 Hz, 60 Hz, automatic.
  package static let powerLineFrequency = ControlID(V4L2_CID_POWER_LINE_FREQUENCY)

  // White balance.
  package static let automaticWhiteBalance = ControlID(V4L2_CID_AUTO_WHITE_BALANCE)
  /// Button: measures the white balance once.
  package static let whiteBalanceOnce = ControlID(V4L2_CID_DO_WHITE_BALANCE)
  package static let redBalance = ControlID(V4L2_CID_RED_BALANCE)
  package static let blueBalance = ControlID(V4L2_CID_BLUE_BALANCE)
  /// White balance temperature in kelvin.
  package static let whiteBalanceTemperature = ControlID(V4L2_CID_WHITE_BALANCE_TEMPERATURE)
  /// Menu: manual, automatic, incandescent, ….
  package static let whiteBalancePreset = ControlID(V4L2_CID_AUTO_N_PRESET_WHITE_BALANCE)

  // Exposure.
  /// Exposure in a driver-specific unit.
  ///
  /// For sensors, the unit is usually one line.
  package static let exposure = ControlID(V4L2_CID_EXPOSURE)
  package static let automaticGain = ControlID(V4L2_CID_AUTOGAIN)
  package static let gain = ControlID(V4L2_CID_GAIN)
  package static let analogueGain = ControlID(V4L2_CID_ANALOGUE_GAIN)
  /// Menu: automatic, manual, shutter priority, aperture priority.
  package static let automaticExposure = ControlID(V4L2_CID_EXPOSURE_AUTO)
  /// Exposure time in units of 100 µs.
  package static let exposureTime = ControlID(V4L2_CID_EXPOSURE_ABSOLUTE)
  /// Whether automatic exposure may lower the frame rate.
  package static let exposureMayLowerRate = ControlID(V4L2_CID_EXPOSURE_AUTO_PRIORITY)
  /// Exposure bias in thousandths of an EV.
  package static let exposureBias = ControlID(V4L2_CID_AUTO_EXPOSURE_BIAS)
  package static let exposureMetering = ControlID(V4L2_CID_EXPOSURE_METERING)
  /// A menu of scene modes: none, night and others.
  package static let sceneMode = ControlID(V4L2_CID_SCENE_MODE)
  /// Integer menu: ISO values, each multiplied by 1000.
  package static let isoSensitivity = ControlID(V4L2_CID_ISO_SENSITIVITY)
  package static let automaticISO = ControlID(V4L2_CID_ISO_SENSITIVITY_AUTO)
  package static let wideDynamicRange = ControlID(V4L2_CID_WIDE_DYNAMIC_RANGE)
  package static let imageStabilization = ControlID(V4L2_CID_IMAGE_STABILIZATION)
  /// Bitmask: exposure, white balance, focus.
  package static let lock3A = ControlID(V4L2_CID_3A_LOCK)

  // Lens controls.
  /// Focus distance in a driver-specific unit.
  ///
  /// Larger values are closer.
  package static let focus = ControlID(V4L2_CID_FOCUS_ABSOLUTE)
  package static let focusRelative = ControlID(V4L2_CID_FOCUS_RELATIVE)
  package static let automaticFocus = ControlID(V4L2_CID_FOCUS_AUTO)
  package static let automaticFocusStart = ControlID(V4L2_CID_AUTO_FOCUS_START)
  package static let automaticFocusStop = ControlID(V4L2_CID_AUTO_FOCUS_STOP)
  /// Bitmask: busy, reached, failed.
  package static let automaticFocusStatus = ControlID(V4L2_CID_AUTO_FOCUS_STATUS)
  package static let automaticFocusRange = ControlID(V4L2_CID_AUTO_FOCUS_RANGE)
  /// Zoom in a driver-specific unit.
  package static let zoom = ControlID(V4L2_CID_ZOOM_ABSOLUTE)
  package static let zoomRelative = ControlID(V4L2_CID_ZOOM_RELATIVE)
  package static let zoomContinuous = ControlID(V4L2_CID_ZOOM_CONTINUOUS)
  package static let iris = ControlID(V4L2_CID_IRIS_ABSOLUTE)
  /// Pan in arc seconds.
  package static let pan = ControlID(V4L2_CID_PAN_ABSOLUTE)
  /// Tilt in arc seconds.
  package static let tilt = ControlID(V4L2_CID_TILT_ABSOLUTE)
  /// Whether the privacy shutter is closed.
  package static let privacy = ControlID(V4L2_CID_PRIVACY)
  /// Menu: front, back, external.
  package static let cameraOrientation = ControlID(V4L2_CID_CAMERA_ORIENTATION)
  /// The mounting rotation of the sensor, in degrees.
  package static let sensorRotation = ControlID(V4L2_CID_CAMERA_SENSOR_ROTATION)

  // The region of interest for exposure and focus (UVC cameras).
  /// Region of interest: a rectangle in sensor pixels.
  package static let regionOfInterest = ControlID(
    rawValue: UInt32(CVideo4Linux_CID_UVC_REGION_OF_INTEREST_RECT))
  /// Bitmask: the automatic modes that use the region of interest.
  package static let regionOfInterestAutomatics = ControlID(
    rawValue: UInt32(CVideo4Linux_CID_UVC_REGION_OF_INTEREST_AUTO))

  // Flash LED controls.
  /// Menu: none, flash, torch.
  package static let flashMode = ControlID(V4L2_CID_FLASH_LED_MODE)
  package static let flashStrobeSource = ControlID(V4L2_CID_FLASH_STROBE_SOURCE)
  /// Button: fires the flash.
  package static let flashStrobe = ControlID(V4L2_CID_FLASH_STROBE)
  package static let flashStrobeStop = ControlID(V4L2_CID_FLASH_STROBE_STOP)
  package static let flashStrobeStatus = ControlID(V4L2_CID_FLASH_STROBE_STATUS)
  /// Flash duration limit in microseconds.
  package static let flashTimeout = ControlID(V4L2_CID_FLASH_TIMEOUT)
  /// Flash current in milliamperes.
  package static let flashIntensity = ControlID(V4L2_CID_FLASH_INTENSITY)
  /// Torch current in milliamperes.
  package static let torchIntensity = ControlID(V4L2_CID_FLASH_TORCH_INTENSITY)
  /// Bitmask of faults.
  ///
  /// Any fault switches the LED off.
  package static let flashFault = ControlID(V4L2_CID_FLASH_FAULT)
  package static let flashReady = ControlID(V4L2_CID_FLASH_READY)

  // Sensor timing controls.
  package static let horizontalBlanking = ControlID(V4L2_CID_HBLANK)
  package static let verticalBlanking = ControlID(V4L2_CID_VBLANK)
  package static let pixelRate = ControlID(V4L2_CID_PIXEL_RATE)

  /// The number of the control's units per second, or nil where its value is not a time.
  package var timescale: Int32? {
    switch self {
    case .exposureTime: 10_000
    case .flashTimeout: 1_000_000
    default: nil
    }
  }

  /// A value of this control as a time, or nil where its unit is not a time.
  package func time(of number: Int64) -> MediaTime? {
    timescale.map { MediaTime(number, over: $0) }
  }

  /// Whether the control belongs to a flash LED (`V4L2_CTRL_CLASS_FLASH`).
  ///
  /// The LED may have a separate device node.
  package var isOfLED: Bool { rawValue & 0x0FFF_0000 == UInt32(V4L2_CTRL_CLASS_FLASH) }

  /// The control of the automatic mode that overrides this control, or nil if none does.
  package var automatic: ControlID? {
    switch self {
    case .exposureTime, .exposure, .iris: .automaticExposure
    case .gain, .analogueGain: .automaticGain
    case .isoSensitivity: .automaticISO
    case .focus, .focusRelative: .automaticFocus
    case .whiteBalanceTemperature, .redBalance, .blueBalance, .whiteBalanceOnce:
      .automaticWhiteBalance
    case .hue: .hueAutomatic
    case .brightness: .automaticBrightness
    case .chromaGain: .automaticChroma
    default: nil
    }
  }

  /// Whether this control, which switches an automatic mode, is set to manual.
  ///
  /// - Parameter value: The value of this control.
  /// - Returns: True if the user may set the controls whose ``automatic`` is this control. False if
  ///   the automatic mode sets them.
  package func isManual(at value: Int64) -> Bool {
    // In manual mode and in shutter priority, the user sets the exposure time.
    guard self == .automaticExposure else { return value == 0 }
    return value == Int64(V4L2_EXPOSURE_MANUAL.rawValue)
      || value == Int64(V4L2_EXPOSURE_SHUTTER_PRIORITY.rawValue)
  }

  /// The well-known camera controls, in ID order.
  ///
  /// If a driver cannot enumerate its controls, the controls in this list are queried one by one.
  package static let wellKnown: [ControlID] = names.keys.sorted { $0.rawValue < $1.rawValue }

  /// The kernel's name of the control in v4l2-ctl spelling, such as `focus_absolute`, or its ID.
  ///
  /// Used for controls that the device lacks. For controls that the device has, its driver may use
  /// another name.
  package var wellKnownName: String {
    Self.names[self] ?? "control 0x\(String(rawValue, radix: 16))"
  }

  private static let names: [ControlID: String] = [
    brightness: "brightness",
    contrast: "contrast",
    saturation: "saturation",
    hue: "hue",
    hueAutomatic: "hue_automatic",
    gamma: "gamma",
    sharpness: "sharpness",
    backlightCompensation: "backlight_compensation",
    automaticBrightness: "brightness_automatic",
    chromaGain: "chroma_gain",
    automaticChroma: "color_killer",
    isMirrored: "horizontal_flip",
    isFlipped: "vertical_flip",
    rotation: "rotate",
    powerLineFrequency: "power_line_frequency",
    automaticWhiteBalance: "white_balance_automatic",
    whiteBalanceOnce: "do_white_balance",
    redBalance: "red_balance",
    blueBalance: "blue_balance",
    whiteBalanceTemperature: "white_balance_temperature",
    whiteBalancePreset: "white_balance_auto_preset",
    exposure: "exposure",
    automaticGain: "gain_automatic",
    gain: "gain",
    analogueGain: "analogue_gain",
    automaticExposure: "auto_exposure",
    exposureTime: "exposure_time_absolute",
    exposureMayLowerRate: "exposure_dynamic_framerate",
    exposureBias: "auto_exposure_bias",
    exposureMetering: "exposure_metering_mode",
    sceneMode: "scene_mode",
    isoSensitivity: "iso_sensitivity",
    automaticISO: "iso_sensitivity_auto",
    wideDynamicRange: "wide_dynamic_range",
    imageStabilization: "image_stabilization",
    lock3A: "3a_lock",
    focus: "focus_absolute",
    focusRelative: "focus_relative",
    automaticFocus: "focus_automatic_continuous",
    automaticFocusStart: "auto_focus_start",
    automaticFocusStop: "auto_focus_stop",
    automaticFocusStatus: "auto_focus_status",
    automaticFocusRange: "auto_focus_range",
    zoom: "zoom_absolute",
    zoomRelative: "zoom_relative",
    zoomContinuous: "zoom_continuous",
    iris: "iris_absolute",
    pan: "pan_absolute",
    tilt: "tilt_absolute",
    privacy: "privacy",
    cameraOrientation: "camera_orientation",
    sensorRotation: "camera_sensor_rotation",
    regionOfInterest: "region_of_interest_rectangle",
    regionOfInterestAutomatics: "region_of_interest_auto_ctrls",
    flashMode: "led_mode",
    flashStrobeSource: "strobe_source",
    flashStrobe: "strobe",
    flashStrobeStop: "stop_strobe",
    flashStrobeStatus: "strobe_status",
    flashTimeout: "strobe_timeout",
    flashIntensity: "intensity_flash_mode",
    torchIntensity: "intensity_torch_mode",
    flashFault: "faults",
    flashReady: "ready_to_strobe",
    horizontalBlanking: "horizontal_blanking",
    verticalBlanking: "vertical_blanking",
    pixelRate: "pixel_rate",
  ]
}

/// The item indices of well-known menus.
package enum ControlItem {
  // Items of `ControlID.automaticExposure`.
  package static let exposureAutomatic = Int64(V4L2_EXPOSURE_AUTO.rawValue)
  package static let exposureManual = Int64(V4L2_EXPOSURE_MANUAL.rawValue)
  package static let exposureShutterPriority = Int64(V4L2_EXPOSURE_SHUTTER_PRIORITY.rawValue)
  package static let exposureAperturePriority = Int64(V4L2_EXPOSURE_APERTURE_PRIORITY.rawValue)
  // Items of `ControlID.whiteBalancePreset`.
  package static let whiteBalanceManual = Int64(V4L2_WHITE_BALANCE_MANUAL.rawValue)
  package static let whiteBalanceAutomatic = Int64(V4L2_WHITE_BALANCE_AUTO.rawValue)
  // Items of `ControlID.automaticFocusRange`.
  package static let focusAnywhere = Int64(V4L2_AUTO_FOCUS_RANGE_AUTO.rawValue)
  package static let focusNormal = Int64(V4L2_AUTO_FOCUS_RANGE_NORMAL.rawValue)
  package static let focusNear = Int64(V4L2_AUTO_FOCUS_RANGE_MACRO.rawValue)
  package static let focusFar = Int64(V4L2_AUTO_FOCUS_RANGE_INFINITY.rawValue)
  // Items of `ControlID.sceneMode`.
  package static let sceneNone = Int64(V4L2_SCENE_MODE_NONE.rawValue)
  package static let sceneNight = Int64(V4L2_SCENE_MODE_NIGHT.rawValue)
  // Items of `ControlID.flashMode`.
  package static let ledOff = Int64(V4L2_FLASH_LED_MODE_NONE.rawValue)
  package static let ledFlashes = Int64(V4L2_FLASH_LED_MODE_FLASH.rawValue)
  package static let ledLights = Int64(V4L2_FLASH_LED_MODE_TORCH.rawValue)
}

/// The bits of well-known bitmask controls.
package enum ControlBit {
  // Bits of `ControlID.lock3A`.
  package static let lockExposure = Int64(V4L2_LOCK_EXPOSURE)
  package static let lockWhiteBalance = Int64(V4L2_LOCK_WHITE_BALANCE)
  package static let lockFocus = Int64(V4L2_LOCK_FOCUS)
  // Bits of `ControlID.automaticFocusStatus`.
  package static let focusIsBusy = Int64(V4L2_AUTO_FOCUS_STATUS_BUSY)
  // Bits of `ControlID.regionOfInterestAutomatics`, from <linux/uvcvideo.h> of Linux 6.15.
  package static let regionExposure: Int64 = 1 << 0
  package static let regionFocus: Int64 = 1 << 3
}
