// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankV4L2

/// Finds persistent names for device nodes, whose numbers may change at a restart.
struct DeviceIdentity {
  /// The names of udev's `by-id` links, which contain the device's own strings, by node path.
  private let links: [String: String]
  /// The names of udev's `by-path` links, which contain the device's port, by node path.
  private let paths: [String: String]

  /// Reads the current links of udev.
  ///
  /// - Parameter nodeDirectory: The directory of the device nodes, usually `/dev`.
  init(nodeDirectory: String) {
    self.init(linksIn: "\(nodeDirectory)/v4l/by-id", pathsIn: "\(nodeDirectory)/v4l/by-path")
  }

  /// Reads the links in directories such as `/dev/v4l/by-id` and `/dev/v4l/by-path`.
  init(linksIn directory: String, pathsIn other: String? = nil) {
    links = Self.links(in: directory)
    paths = other.map(Self.links(in:)) ?? [:]
  }

  private static func links(in directory: String) -> [String: String] {
    var links: [String: String] = [:]
    // Several links may lead to one node. Sorting makes the choice between them deterministic.
    for name in SystemFiles.entries(in: directory).sorted() {
      guard let node = SystemFiles.resolved("\(directory)/\(name)"), links[node] == nil else {
        continue
      }
      links[node] = name
    }
    return links
  }

  /// The persistent name of a node.
  ///
  /// The name comes from the first of these sources that exists: udev's `by-id` link, the USB
  /// device's own strings, udev's `by-path` link, or the driver's name and bus address.
  ///
  /// - Parameters:
  ///   - node: The path without symbolic links.
  ///   - driver: The driver's name.
  ///   - bus: The bus address from the driver.
  /// - Returns: A name without characters that a shell interprets.
  func name(of node: String, driver: String, bus: String) -> String {
    if let link = links[node] { return Self.withoutFirstIndex(link) }
    if let name = Self.usbName(of: node) { return name }
    if let position = paths[node] { return Self.withoutFirstIndex(position) }
    return Self.cleaned("\(driver)-\(bus)")
  }

  /// Removes the suffix `-video-index0` from a link name such as
  /// `usb-046d_HD_Pro_Webcam_C920_A1B2C3-video-index0`.
  ///
  /// Other nodes of the same camera, such as `index2`, keep their suffix.
  static func withoutFirstIndex(_ link: String) -> String {
    let end = "-video-index0"
    return link.hasSuffix(end) ? String(link.dropLast(end.count)) : link
  }

  /// The name that udev would create for a USB device.
  ///
  /// Used on systems without udev.
  ///
  /// Nil for a device without a serial number, because its name would not be unique.
  private static func usbName(of node: String) -> String? {
    let last = node.lastPathComponent
    let device = "/sys/class/video4linux/\(last)/device/.."
    guard SystemFiles.firstLine(of: "\(device)/serial") != nil, let name = usbStrings(of: device)
    else { return nil }
    let index = SystemFiles.firstLine(of: "/sys/class/video4linux/\(last)/index") ?? "0"
    return withoutFirstIndex(cleaned("\(name)-video-index\(index)"))
  }

  /// The ids of a microphone: the current one, and those that find it too.
  ///
  /// The current id consists of the name of the sound card and the number of the device. If the card is
  /// part of a USB device without a serial number, its bus address follows, whether another device of
  /// the model is present or not. The id without the address is then a former one, as is the id by the
  /// card's own name.
  ///
  /// The parameters are those of ``name(ofCard:at:driver:bus:)``, and the number of the device.
  func ids(
    ofCard node: String, at directory: String, driver: String, bus: String, device: UInt32
  ) -> (current: String, former: [String]) {
    let plain = "\(name(ofCard: node, at: directory, driver: driver, bus: bus))-pcm\(device)"
    let oldest = "\(name(of: node, driver: driver, bus: bus))-pcm\(device)"
    guard let usb = USBLink.deviceDirectory(of: directory),
      SystemFiles.firstLine(of: "\(usb)/serial")?.isEmpty ?? true, !plain.contains(bus)
    else { return (plain, [oldest]) }
    return (Self.cleaned("\(plain)-\(bus)"), [plain, oldest])
  }

  /// The persistent name of a sound card.
  ///
  /// The name comes from the first of these sources that exists: udev's `by-id` link, the strings of
  /// the card's USB device, udev's `by-path` link, or the card's name and bus address. The strings
  /// of a USB device without a serial number are those of its model, so two such devices have the
  /// same name.
  ///
  /// - Parameters:
  ///   - node: The path of the card's control node without symbolic links.
  ///   - directory: The directory in `/sys` of the device that has the card.
  ///   - driver: The card's name.
  ///   - bus: The bus address of the card.
  /// - Returns: A name without characters that a shell interprets.
  func name(ofCard node: String, at directory: String, driver: String, bus: String) -> String {
    if links[node] == nil, let device = USBLink.deviceDirectory(of: directory),
      let name = Self.usbStrings(of: device)
    {
      let interface = SystemFiles.firstLine(of: "\(directory)/bInterfaceNumber") ?? "00"
      return Self.cleaned("\(name)-\(interface)")
    }
    return name(of: node, driver: driver, bus: bus)
  }

  /// The manufacturer, the product and, if present, the serial number of a USB device, as udev joins
  /// them.
  ///
  /// - Parameter device: The device's directory in `/sys`.
  /// - Returns: Nil for a directory of no USB device.
  private static func usbStrings(of device: String) -> String? {
    guard let vendor = SystemFiles.firstLine(of: "\(device)/idVendor"),
      let product = SystemFiles.firstLine(of: "\(device)/idProduct")
    else { return nil }
    let maker = SystemFiles.firstLine(of: "\(device)/manufacturer") ?? vendor
    let model = SystemFiles.firstLine(of: "\(device)/product") ?? product
    let serial = SystemFiles.firstLine(of: "\(device)/serial").map { "_\($0)" } ?? ""
    return "usb-\(maker)_\(model)\(serial)"
  }

  /// Replaces characters that are unsafe on a command line with `_`.
  static func cleaned(_ text: String) -> String {
    let allowed = Set("#+-.:=@_".utf8)
    return String(
      decoding: text.utf8.map { byte in
        let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        return isLetter || isDigit || allowed.contains(byte) ? byte : UInt8(ascii: "_")
      }, as: UTF8.self)
  }
}
