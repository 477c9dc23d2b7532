// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import SystemPackage

/// The USB connection of a device, as sysfs reports it.
package struct USBLink: Hashable, Sendable {
  /// The speed of the connection in megabits per second, such as 480 or 5000.
  package let megabitsPerSecond: Int
  /// Whether the device itself supports 5000 megabits per second or more.
  ///
  /// False if the kernel does not report it.
  package let supportsSuperSpeed: Bool
  /// The number of the bus.
  ///
  /// Devices on one bus share its capacity.
  package let bus: Int?

  package init(megabitsPerSecond: Int, supportsSuperSpeed: Bool, bus: Int?) {
    self.megabitsPerSecond = megabitsPerSecond
    self.supportsSuperSpeed = supportsSuperSpeed
    self.bus = bus
  }

  /// Reads the connection of a device from its directory in `/sys`, or from the directory of one of
  /// its interfaces.
  ///
  /// Nil if neither the directory nor a parent directory belongs to a USB device.
  package init?(ofDeviceAt directory: String) {
    guard let real = SystemFiles.resolved(directory) else { return nil }
    var device = FilePath(real)
    // The directory of an interface has no file `speed`. The file is in the parent directory, which
    // belongs to the device.
    while SystemFiles.firstLine(of: device.appending("speed").string) == nil {
      guard device.removeLastComponent(), !device.components.isEmpty else { return nil }
    }
    guard let text = SystemFiles.firstLine(of: device.appending("speed").string),
      // The number may have decimals: sysfs writes the low speed of USB as 1.5.
      let speed = text.split(separator: ".").first.flatMap({ Int($0) }), speed > 0,
      SystemFiles.firstLine(of: device.appending("busnum").string) != nil
    else { return nil }
    megabitsPerSecond = speed
    bus = SystemFiles.firstLine(of: device.appending("busnum").string).flatMap { Int($0) }
    supportsSuperSpeed = Self.supportsSuperSpeed(
      SystemFiles.bytes(of: device.appending("bos_descriptors").string))
  }

  /// The greatest payload rate of the connection, in bytes per second.
  ///
  /// This is the limit of bulk transfers by the USB specifications. Isochronous transfers, which most
  /// cameras use, reach less than half of it at 480 megabits per second.
  package var maximumBytesPerSecond: Int64 {
    switch megabitsPerSecond {
    case ..<12: 64_000
    case ..<480: 1_216_000
    case ..<5_000: 53_248_000
    case ..<10_000: 500_000_000
    // At 10 gigabits per second and more, 128 of 132 bits carry data.
    default: Int64(megabitsPerSecond) * 121_000
    }
  }

  /// Whether the binary object store of a device has a SuperSpeed capability.
  ///
  /// The descriptors have a length and a type each. Type 16 is a capability, whose third byte is 3
  /// for SuperSpeed and 10 for SuperSpeedPlus.
  static func supportsSuperSpeed(_ descriptors: [UInt8]) -> Bool {
    var offset = 0
    while offset + 2 < descriptors.count {
      let length = Int(descriptors[offset])
      guard length >= 3 else { return false }
      if descriptors[offset + 1] == 16, [3, 10].contains(descriptors[offset + 2]) { return true }
      offset += length
    }
    return false
  }
}
