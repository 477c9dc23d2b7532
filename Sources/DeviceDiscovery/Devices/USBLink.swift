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
  /// The directory of the device in `/sys`, which is the same for all nodes of a device.
  ///
  /// Nil if it is unknown.
  package let directory: String?
  /// The number of the bus.
  ///
  /// Devices on one bus share its capacity.
  package let bus: Int?
  /// The greatest rate of the isochronous endpoints of a camera, in bytes per second.
  ///
  /// Nil for a camera with bulk endpoints alone, which only the connection limits, and for other
  /// devices.
  package let isochronousBytesPerSecond: Int64?
  /// The file that switches the automatic suspension of the device; nil if it is off.
  package let suspensionSwitch: String?

  package init(
    megabitsPerSecond: Int, supportsSuperSpeed: Bool, directory: String? = nil, bus: Int?,
    isochronousBytesPerSecond: Int64? = nil, suspensionSwitch: String? = nil
  ) {
    (self.megabitsPerSecond, self.supportsSuperSpeed) = (megabitsPerSecond, supportsSuperSpeed)
    (self.directory, self.bus, self.suspensionSwitch) = (directory, bus, suspensionSwitch)
    self.isochronousBytesPerSecond = isochronousBytesPerSecond
  }

  /// Reads the connection of a device from its directory in `/sys`, or from the directory of one of
  /// its interfaces.
  ///
  /// Nil if neither the directory nor a parent directory belongs to a USB device.
  package init?(ofDeviceAt directory: String) {
    guard let device = Self.deviceDirectory(of: directory),
      let text = SystemFiles.firstLine(of: "\(device)/speed"),
      // The number may have decimals: sysfs writes the low speed of USB as 1.5.
      let speed = text.split(separator: ".").first.flatMap({ Int($0) }), speed > 0
    else { return nil }
    megabitsPerSecond = speed
    self.directory = device
    bus = SystemFiles.firstLine(of: "\(device)/busnum").flatMap { Int($0) }
    supportsSuperSpeed = Self.supportsSuperSpeed(
      SystemFiles.bytes(of: "\(device)/bos_descriptors"))
    isochronousBytesPerSecond = Self.isochronousBytesPerSecond(
      SystemFiles.bytes(of: "\(device)/descriptors"), megabitsPerSecond: speed)
    let power = "\(device)/power/control"
    suspensionSwitch = SystemFiles.firstLine(of: power) == "auto" ? power : nil
  }

  /// The connections of all USB cameras by the names of their first nodes, such as `video0`.
  ///
  /// Reads sysfs alone, so no camera is opened.
  ///
  /// - Parameter classDirectory: The directory with an entry for each video node. Tests pass their own.
  /// - Returns: The connections. Cameras on other buses are left out.
  package static func ofCameras(
    in classDirectory: String = "/sys/class/video4linux"
  ) -> [String: USBLink] {
    let nodes = SystemFiles.entries(in: classDirectory).filter {
      $0.hasPrefix("video") && SystemFiles.firstLine(of: "\(classDirectory)/\($0)/index") == "0"
    }
    let links = nodes.map { ($0, USBLink(ofDeviceAt: "\(classDirectory)/\($0)/device")) }
    return Dictionary(links, uniquingKeysWith: { first, _ in first }).compactMapValues { $0 }
  }

  /// The directory in `/sys` of a USB device, given its directory or that of one of its interfaces.
  ///
  /// Two functions of one device, such as a camera and its microphone, have the same directory. Nil
  /// if neither the directory nor a parent directory belongs to a USB device.
  static func deviceDirectory(of directory: String) -> String? {
    guard let real = SystemFiles.resolved(directory) else { return nil }
    var device = FilePath(real)
    // The directory of an interface has no file `speed`. The file is in the parent directory, which
    // belongs to the device.
    while SystemFiles.firstLine(of: device.appending("speed").string) == nil {
      guard device.removeLastComponent(), !device.components.isEmpty else { return nil }
    }
    guard SystemFiles.firstLine(of: device.appending("busnum").string) != nil else { return nil }
    return device.string
  }

  /// The greatest payload rate, in bytes per second.
  ///
  /// This is the rate of a camera's isochronous endpoint or, for other devices, the limit of bulk
  /// transfers by the USB specifications.
  package var maximumBytesPerSecond: Int64 {
    let limit: Int64 =
      switch megabitsPerSecond {
      case ..<12: 64_000
      case ..<480: 1_216_000
      case ..<5_000: 53_248_000
      case ..<10_000: 500_000_000
      // At 10 gigabits per second and more, 128 of 132 bits carry data.
      default: Int64(megabitsPerSecond) * 121_000
      }
    return min(limit, isochronousBytesPerSecond ?? limit)
  }

  /// The part of the connection's capacity that isochronous endpoints may use together, in bytes per
  /// second: 80 % of each microframe at 480 megabits per second.
  ///
  /// Nil for other speeds.
  package var isochronousBudget: Int64? {
    (480..<5_000).contains(megabitsPerSecond) ? 48_000_000 : nil
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

  /// The greatest rate of the isochronous endpoints in the video interfaces of a device, in bytes per
  /// second.
  ///
  /// An interface has several alternate settings, whose endpoints differ in their rates.
  ///
  /// - Parameters:
  ///   - descriptors: The device descriptor and the configurations, as in the file `descriptors` of
  ///     sysfs. Each descriptor has a length and a type.
  ///   - speed: The speed of the connection in megabits per second.
  /// - Returns: Nil if no video interface has an isochronous endpoint. A bulk endpoint beside one is
  ///   for still images.
  static func isochronousBytesPerSecond(
    _ descriptors: [UInt8], megabitsPerSecond speed: Int
  ) -> Int64? {
    let packetsPerSecond: Int64 = speed >= 480 ? 8_000 : 1_000
    var (offset, isVideo) = (0, false)
    // The exponent of the interval between the packets of the last isochronous endpoint.
    var exponent: Int64?
    var greatest: Int64 = 0
    func number(at index: Int) -> Int64 {
      Int64(descriptors[index]) | Int64(descriptors[index + 1]) << 8
    }
    while offset + 2 <= descriptors.count {
      let (length, kind) = (Int(descriptors[offset]), descriptors[offset + 1])
      guard length >= 2, offset + length <= descriptors.count else { break }
      switch kind {
      case DescriptorType.interface where length >= 9:
        isVideo = descriptors[offset + 5] == 0x0E && descriptors[offset + 6] == 2
        exponent = nil
      case DescriptorType.endpoint where isVideo && length >= 7:
        guard descriptors[offset + 3] & 3 == 1 else { break }
        let size = number(at: offset + 4)
        let interval = Int64(min(16, max(1, descriptors[offset + 6]))) - 1
        exponent = interval
        // Bits 11 and 12 are the number of further packets in a microframe.
        greatest = max(
          greatest, (size & 0x7FF) * (1 + (size >> 11 & 3)) * packetsPerSecond >> interval)
      case DescriptorType.companion where length >= 6:
        guard let exponent else { break }
        greatest = max(greatest, number(at: offset + 4) * packetsPerSecond >> exponent)
      case DescriptorType.largeCompanion where length >= 8:
        guard let exponent else { break }
        let bytes = number(at: offset + 4) | number(at: offset + 6) << 16
        greatest = max(greatest, bytes * packetsPerSecond >> exponent)
      default: break
      }
      offset += length
    }
    return greatest > 0 ? greatest : nil
  }

  private enum DescriptorType {
    static let (interface, endpoint, companion): (UInt8, UInt8, UInt8) = (4, 5, 0x30)
    /// The companion of an isochronous SuperSpeedPlus endpoint, which states more than 48 KiB.
    static let largeCompanion: UInt8 = 0x31
  }
}
