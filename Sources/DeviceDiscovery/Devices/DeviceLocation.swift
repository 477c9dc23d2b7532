// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankV4L2
import SystemPackage

extension CaptureDevice {
  /// The direction that a camera faces.
  public enum Position: String, Hashable, Sendable, CaseIterable {
    /// The direction is unknown, or the camera is external.
    case unspecified
    /// The camera faces the user, like the screen.
    case front
    /// The camera faces away from the user.
    case back
  }

  /// Whether a device is plugged in, is built into the machine, or exists only as software.
  public enum DeviceType: String, Hashable, Sendable, CaseIterable {
    /// The device is plugged in.
    case external
    /// The device is a fixed part of the machine.
    case builtIn = "built_in"
    /// The device is software: the synthetic camera, a file, a kernel test device or a loopback
    /// device.
    case virtual
  }
}

/// The location of a device according to sysfs, which every user can read.
struct DeviceLocation {
  let type: CaptureDevice.DeviceType
  /// The side of the machine's housing on which a built-in camera sits, if the firmware reports it.
  let position: CaptureDevice.Position

  /// Reads the location from a directory in `/sys`.
  ///
  /// - Parameters:
  ///   - directory: The device's directory. Symbolic links are resolved. If a file is missing in
  ///     the directory, the property that the file describes is unknown.
  ///   - driver: The driver's name.
  ///   - bus: The bus address from the driver.
  init(of directory: String, driver: String, bus: String) {
    let real = SystemFiles.resolved(directory) ?? ""
    guard !Self.virtualDrivers.contains(driver), !real.hasPrefix("/sys/devices/virtual/") else {
      (type, position) = (.virtual, .unspecified)
      return
    }
    switch Self.nearest("removable", from: real) {
    case "fixed": type = .builtIn
    case "removable": type = .external
    default:
      let isUSB = bus.hasPrefix("usb") || USBLink.deviceDirectory(of: real) != nil
      type = isUSB ? .external : .builtIn
    }
    // The firmware also reports a position for ports, but a device that is plugged in there may
    // face anywhere. The position is therefore used for built-in devices only.
    let panel = type == .builtIn ? Self.nearest("physical_location/panel", from: real) : nil
    position = panel.flatMap { CaptureDevice.Position(rawValue: $0) } ?? .unspecified
  }

  /// The drivers of virtual devices.
  private static let virtualDrivers: Set = [
    "vivid", "vimc", "v4l2 loopback", "Loopback", "Dummy", "snd_aloop", "snd_dummy",
  ]

  /// The first line of a file with this name in a directory, or in the nearest parent directory
  /// that has one.
  private static func nearest(_ file: String, from directory: String) -> String? {
    var directory = FilePath(directory)
    // The search ends at `/sys/devices`, because all devices are below it.
    while directory.components.count > 2 {
      if let line = SystemFiles.firstLine(of: directory.appending(file).string) { return line }
      directory.removeLastComponent()
    }
    return nil
  }
}

extension CaptureDevice.Position {
  /// Reads the direction that a camera faces: `V4L2_CID_CAMERA_ORIENTATION`.
  ///
  /// If the control cannot be read, the direction is unspecified.
  init(reportedBy device: borrowing VideoDevice) {
    switch try? device.number(of: .cameraOrientation) {
    case 0: self = .front
    case 1: self = .back
    default: self = .unspecified
    }
  }
}

extension CaptureDevice {
  /// The clockwise rotation in degrees that corrects how the sensor is mounted.
  ///
  /// `V4L2_CID_CAMERA_SENSOR_ROTATION` reports the mounting counterclockwise. The result is 0 if
  /// the driver does not report it.
  static func rotationAngle(reportedBy device: borrowing VideoDevice) -> Int64 {
    let angle = (try? device.number(of: .sensorRotation)).flatMap(\.self) ?? 0
    return (360 - angle % 360) % 360
  }
}
