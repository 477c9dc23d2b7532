// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// The items of well-known menus, by the numbers that choose them.
package enum ControlItem {
  // Of `ControlID.automaticExposure`.
  package static let exposureAutomatic = Int64(V4L2_EXPOSURE_AUTO.rawValue)
  package static let exposureManual = Int64(V4L2_EXPOSURE_MANUAL.rawValue)
  package static let exposureShutterPriority = Int64(V4L2_EXPOSURE_SHUTTER_PRIORITY.rawValue)
  package static let exposureAperturePriority = Int64(V4L2_EXPOSURE_APERTURE_PRIORITY.rawValue)
  // Of `ControlID.whiteBalancePreset`.
  package static let whiteBalanceManual = Int64(V4L2_WHITE_BALANCE_MANUAL.rawValue)
  package static let whiteBalanceAutomatic = Int64(V4L2_WHITE_BALANCE_AUTO.rawValue)
  // Of `ControlID.flashMode`.
  package static let ledOff = Int64(V4L2_FLASH_LED_MODE_NONE.rawValue)
  package static let ledFlashes = Int64(V4L2_FLASH_LED_MODE_FLASH.rawValue)
  package static let ledLights = Int64(V4L2_FLASH_LED_MODE_TORCH.rawValue)
}

/// The bits of well-known sets.
package enum ControlBit {
  // Of `ControlID.lock3A`.
  package static let lockExposure = Int64(V4L2_LOCK_EXPOSURE)
  package static let lockWhiteBalance = Int64(V4L2_LOCK_WHITE_BALANCE)
  package static let lockFocus = Int64(V4L2_LOCK_FOCUS)
  // Of `ControlID.automaticFocusStatus`.
  package static let focusIsBusy = Int64(V4L2_AUTO_FOCUS_STATUS_BUSY)
  // Of `ControlID.regionOfInterestAutomatics`, as <linux/uvcvideo.h> of Linux 6.15 has them.
  package static let regionExposure: Int64 = 1 << 0
  package static let regionFocus: Int64 = 1 << 3
}
