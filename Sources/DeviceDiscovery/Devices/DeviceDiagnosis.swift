// SPDX-License-Identifier: Apache-2.0

import OvercrankALSA
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2

/// Conditions that may keep a device from delivering all of its frames.
package struct DeviceDiagnosis: Hashable, Sendable {
  /// Whether this user may not open the device.
  package var isForbidden = false
  /// The group whose members may open the device; nil if the node grants access to no group.
  package var permittedGroup: String?
  /// Other programs that have the device open, such as `firefox (process 123)`.
  ///
  /// Programs of other users are missing.
  package var holders: [String] = []
  /// Whether another program streams from the device.
  package var isStreamingElsewhere = false
  /// The USB connection; nil for a device on another bus.
  package var usb: USBLink?

  package init() {}
}

extension CaptureDevice {
  /// Finds out what keeps the device from delivering all of its frames.
  ///
  /// A camera is opened briefly, and its current format is set again, which changes nothing. The
  /// call blocks.
  package func diagnosis() -> DeviceDiagnosis {
    var diagnosis = DeviceDiagnosis()
    diagnosis.isForbidden = isForbidden
    diagnosis.permittedGroup = permittedGroup
    switch source {
    case .v4l2(let path):
      diagnosis.holders = DeviceHolder.find(of: path).map(\.description)
      diagnosis.isStreamingElsewhere = Self.isStreamingElsewhere(path)
      let node = (SystemFiles.resolved(path) ?? path).lastPathComponent
      diagnosis.usb = USBLink(ofDeviceAt: "/sys/class/video4linux/\(node)/device")
    case .alsa(let node):
      let stream = "\(ALSASystem.calls.nodeDirectory)/pcmC\(node.card)D\(node.device)c"
      diagnosis.holders = DeviceHolder.find(of: stream).map(\.description)
      diagnosis.usb = USBLink(ofDeviceAt: "/sys/class/sound/card\(node.card)/device")
    case .synthetic, .file: break
    }
    return diagnosis
  }

  private static func isStreamingElsewhere(_ path: String) -> Bool {
    do throws(CallFailure) {
      var device = try VideoDevice(opening: path)
      return try device.isStreamingElsewhere()
    } catch {
      // Some drivers do not even open a device that another program uses.
      return error.kind == .busy
    }
  }
}
