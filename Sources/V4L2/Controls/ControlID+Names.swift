// SPDX-License-Identifier: Apache-2.0

extension ControlID {
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
