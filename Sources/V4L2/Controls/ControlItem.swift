// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

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
