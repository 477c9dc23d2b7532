// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankV4L2
import TestSupport

@testable import OvercrankCameraControls

extension ScriptedControls {
  /// Opens the camera of this driver.
  func camera(
    waitForChoice: @escaping @Sendable () -> Void = AutomaticValues.pause
  ) throws -> CameraControls {
    try DeviceSystem.$calls.withValue(self) {
      try CameraControls(path: "/dev/video0", waitForChoice: waitForChoice)
    }
  }
}
