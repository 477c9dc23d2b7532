// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankV4L2

/// The lasting name of a device node, whose number changes with every restart.
struct DeviceIdentity {
  /// The names that udev made of the device's own words, by the node they point to.
  private let links: [String: String]
  /// The names that udev made of the socket it is plugged in to.
  private let places: [String: String]

  /// Reads udev's links, as they are now.
  ///
  /// - Parameter nodeFolder: The folder that nodes are in, `/dev`.
  init(nodeFolder: String) {
    self.init(linksIn: "\(nodeFolder)/v4l/by-id", placesIn: "\(nodeFolder)/v4l/by-path")
  }

  /// Reads the links of folders such as `/dev/v4l/by-id` and `/dev/v4l/by-path`.
  init(linksIn folder: String, placesIn other: String? = nil) {
    links = Self.links(in: folder)
    places = other.map(Self.links(in:)) ?? [:]
  }

  private static func links(in folder: String) -> [String: String] {
    var links: [String: String] = [:]
    // Sorted, so that of two links to one node the same wins each time.
    for name in SystemFiles.entries(in: folder).sorted() {
      guard let node = SystemFiles.resolved("\(folder)/\(name)"), links[node] == nil else {
        continue
      }
      links[node] = name
    }
    return links
  }

  /// The name of a node: udev's, or the same made of the USB device's own words, or udev's name
  /// of the socket it is in, or what is sure to exist, driver and bus.
  ///
  /// - Parameters:
  ///   - node: The path without symbolic links.
  ///   - driver: The driver's name.
  ///   - bus: Where the device sits, as the driver says.
  /// - Returns: The name, of letters that a command line leaves alone.
  func name(of node: String, driver: String, bus: String) -> String {
    if let link = links[node] { return Self.withoutFirstIndex(link) }
    if let name = Self.usbName(of: node) { return name }
    if let position = places[node] { return Self.withoutFirstIndex(position) }
    return Self.cleaned("\(driver)-\(bus)")
  }

  /// `usb-046d_HD_Pro_Webcam_C920_A1B2C3-video-index0` without its end; others of the same
  /// camera (`index2`) keep theirs.
  static func withoutFirstIndex(_ link: String) -> String {
    let end = "-video-index0"
    return link.hasSuffix(end) ? String(link.dropLast(end.count)) : link
  }

  /// What udev would say where it does not run; nil for a device without a serial number, which
  /// its words do not tell from another of its kind.
  private static func usbName(of node: String) -> String? {
    let last = node.lastPathComponent
    let device = "/sys/class/video4linux/\(last)/device/.."
    guard let vendor = SystemFiles.firstLine(of: "\(device)/idVendor"),
      let product = SystemFiles.firstLine(of: "\(device)/idProduct"),
      let serial = SystemFiles.firstLine(of: "\(device)/serial")
    else { return nil }
    let index = SystemFiles.firstLine(of: "/sys/class/video4linux/\(last)/index") ?? "0"
    let maker = SystemFiles.firstLine(of: "\(device)/manufacturer") ?? vendor
    let model = SystemFiles.firstLine(of: "\(device)/product") ?? product
    return withoutFirstIndex(cleaned("usb-\(maker)_\(model)_\(serial)-video-index\(index)"))
  }

  /// The text with `_` for everything that a name on a command line should not hold.
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
