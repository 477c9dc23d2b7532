// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankV4L2

extension CaptureDevice {
  /// Which way a camera looks.
  public enum Position: String, Hashable, Sendable, CaseIterable {
    /// Nobody says, or the camera is no part of the machine.
    case unspecified
    /// At whoever looks at the screen.
    case front
    /// Away from whoever looks at the screen.
    case back
  }

  /// How a device came to the machine.
  public enum DeviceType: String, Hashable, Sendable, CaseIterable {
    /// It is plugged in from outside.
    case external
    /// It is a part of the machine.
    case builtIn = "built_in"
    /// It is a program, or gives what a program hands it: the synthetic camera, a file, the
    /// kernel's own test devices and loopbacks.
    case virtual
  }
}

/// What the kernel tells everyone about where a device sits in the machine.
struct DeviceLocation {
  let type: CaptureDevice.DeviceType
  /// The side of the housing that a built-in device is on, where the firmware says.
  let position: CaptureDevice.Position

  /// Reads it from a folder of `/sys`.
  ///
  /// - Parameters:
  ///   - folder: That of the device, links included; what is missing there says nothing.
  ///   - driver: The driver's name.
  ///   - bus: Where the device sits, as the driver says.
  init(of folder: String, driver: String, bus: String) {
    let real = SystemFiles.resolved(folder) ?? ""
    guard !Self.virtualDrivers.contains(driver), !real.hasPrefix("/sys/devices/virtual/") else {
      (type, position) = (.virtual, .unspecified)
      return
    }
    switch Self.nearest("removable", from: real) {
    case "fixed": type = .builtIn
    case "removable": type = .external
    default: type = bus.hasPrefix("usb") ? .external : .builtIn
    }
    // A socket has a side, too, which says nothing about what is plugged in there.
    let panel = type == .builtIn ? Self.nearest("physical_location/panel", from: real) : nil
    position = panel.flatMap { CaptureDevice.Position(rawValue: $0) } ?? .unspecified
  }

  /// Drivers whose devices are programs.
  private static let virtualDrivers: Set = [
    "vivid", "vimc", "v4l2 loopback", "Loopback", "Dummy", "snd_aloop", "snd_dummy",
  ]

  /// The first line of a file in a folder, or in the nearest one above it that has such a file.
  private static func nearest(_ file: String, from folder: String) -> String? {
    var parts = folder.split(separator: "/")
    // The devices of all machines lie below /sys/devices/.
    while parts.count > 2 {
      if let line = SystemFiles.firstLine(of: "/\(parts.joined(separator: "/"))/\(file)") {
        return line
      }
      parts.removeLast()
    }
    return nil
  }
}

extension CaptureDevice.Position {
  /// What a camera's driver says: `V4L2_CID_CAMERA_ORIENTATION`.
  ///
  /// A driver that fails to say so says nothing.
  init(askedOf device: borrowing VideoDevice) {
    switch try? device.number(of: .cameraOrientation) {
    case 0: self = .front
    case 1: self = .back
    default: self = .unspecified
    }
  }
}
