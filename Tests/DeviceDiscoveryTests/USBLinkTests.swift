// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import TestSupport
import Testing

@testable import OvercrankDeviceDiscovery
@testable import OvercrankV4L2

/// The bandwidth of a camera's USB link, and its use by other programs.
struct USBLinkTests {
  /// A binary object store descriptor with a USB 2.0 extension.
  ///
  /// SuperSpeed devices have a second capability.
  private static let usb2: [UInt8] = [5, 15, 12, 0, 1, 7, 16, 2, 6, 0, 0, 0]
  private static let usb3 = usb2 + [10, 16, 3, 0, 14, 0, 1, 10, 255, 7]

  @Test func `A USB interface has the link speed of its parent device`() throws {
    let root = try Scratch()
    try root.writeSystemFile("480\n", "1-2/speed")
    try root.writeSystemFile("1\n", "1-2/busnum")
    try root.writeSystemFile("00\n", "1-2/1-2:1.0/bInterfaceNumber")
    let link = try #require(USBLink(ofDeviceAt: root.file("1-2/1-2:1.0")))
    #expect(
      link
        == USBLink(
          megabitsPerSecond: 480, supportsSuperSpeed: false,
          directory: SystemFiles.resolved(root.file("1-2")), bus: 1))
    #expect(USBLink(ofDeviceAt: root.path) == nil)
    #expect(USBLink(ofDeviceAt: root.file("missing")) == nil)
    // A network card has a speed but is not a USB device.
    try root.writeSystemFile("1000\n", "net/speed")
    #expect(USBLink(ofDeviceAt: root.file("net")) == nil)
  }

  @Test func `Detects SuperSpeed support from the USB descriptors`() throws {
    let root = try Scratch()
    try root.writeSystemFile("480\n", "a/speed")
    try root.writeSystemFile("1\n", "a/busnum")
    for (descriptors, isFast) in [(Self.usb2, false), (Self.usb3, true), ([], false)] {
      _ = try root.write(descriptors, as: "a/bos_descriptors")
      #expect(USBLink(ofDeviceAt: root.file("a"))?.supportsSuperSpeed == isFast)
    }
    // Descriptors with too many bytes, of zero length, and truncated.
    for damaged in [[UInt8](repeating: 0, count: 40), [200, 16], Array(Self.usb3.prefix(13))] {
      #expect(!USBLink.supportsSuperSpeed(damaged))
    }
  }

  @Test func `A faster USB link has a higher maximum byte rate`() {
    let speeds = [1, 12, 480, 5_000, 10_000, 20_000]
    let limits = speeds.map {
      USBLink(megabitsPerSecond: $0, supportsSuperSpeed: false, bus: nil).maximumBytesPerSecond
    }
    #expect(limits == limits.sorted() && Set(limits).count == limits.count)
    #expect(zip(speeds, limits).allSatisfy { $1 < Int64($0) * 125_000 })
  }

  /// A device with a video interface of alternate settings, and an audio interface.
  ///
  /// Each endpoint has a kind, a packet size, an interval, and the bytes of its companion, or 0.
  private static func descriptors(
    _ endpoints: [(kind: UInt8, size: Int, interval: UInt8, companion: Int)]
  ) -> [UInt8] {
    func low(_ number: Int) -> [UInt8] { [UInt8(number & 255), UInt8(number >> 8)] }
    var bytes: [UInt8] = [18, 1] + [UInt8](repeating: 0, count: 16)
    bytes += [9, 4, 0, 0, 1, 0x0E, 1, 0, 0, 7, 5, 0x83, 3, 16, 0, 8]
    for (index, endpoint) in endpoints.enumerated() {
      bytes += [9, 4, 1, UInt8(index), 1, 0x0E, 2, 0, 0]
      bytes += [7, 5, 0x81, endpoint.kind] + low(endpoint.size) + [endpoint.interval]
      if endpoint.companion > 0xFFFF {
        let (upper, lower) = (endpoint.companion >> 16, endpoint.companion & 0xFFFF)
        bytes += [6, 0x30, 0, 0x80, 1, 0, 8, 0x31, 0, 0] + low(lower) + low(upper)
      } else if endpoint.companion > 0 {
        bytes += [6, 0x30, 0, 0] + low(endpoint.companion)
      }
    }
    return bytes + [9, 4, 3, 1, 1, 1, 2, 0, 0, 9, 5, 0x82, 5, 0xFF, 0x17, 1, 0, 0]
  }

  @Test(
    arguments: [
      (480, [(5, 192, 1, 0), (5, 0x1400, 1, 0), (5, 1_024, 1, 0)], 24_576_000),
      (480, [(5, 0x0C00, 2, 0)], 8_192_000), (480, [(2, 512, 0, 0)], nil), (480, [], nil),
      (12, [(5, 1_023, 1, 0)], 1_023_000),
      // The bulk endpoint is for still images.
      (480, [(5, 1_024, 1, 0), (2, 512, 0, 0)], 8_192_000),
      (10_000, [(5, 1_024, 1, 98_304)], 786_432_000),
      (5_000, [(5, 1_024, 1, 1_024), (5, 1_024, 1, 49_152)], 393_216_000),
      (5_000, [(5, 1_024, 2, 3_072)], 12_288_000),
    ] as [(Int, [(UInt8, Int, UInt8, Int)], Int64?)])
  func `The largest alternate setting limits an isochronous camera`(
    speed: Int, endpoints: [(UInt8, Int, UInt8, Int)], expected: Int64?
  ) throws {
    let root = try Scratch()
    try root.writeSystemFile("\(speed)\n", "a/speed")
    try root.writeSystemFile("1\n", "a/busnum")
    let bytes = Self.descriptors(endpoints.map { ($0.0, $0.1, $0.2, $0.3) })
    _ = try root.write(bytes, as: "a/descriptors")
    let link = try #require(USBLink(ofDeviceAt: root.file("a")))
    #expect(link.isochronousBytesPerSecond == expected)
    let plain = USBLink(megabitsPerSecond: speed, supportsSuperSpeed: false, bus: 1)
    #expect(
      link.maximumBytesPerSecond
        == min(plain.maximumBytesPerSecond, expected ?? plain.maximumBytesPerSecond))
    for count in bytes.indices {
      _ = USBLink.isochronousBytesPerSecond(Array(bytes[..<count]), megabitsPerSecond: speed)
    }
  }

  @Test func `Finds the connections of all USB cameras without opening one`() throws {
    let root = try Scratch()
    // These nodes belong to no USB device.
    for node in ["video3", "vbi0"] { try root.writeSystemFile("0\n", "class/\(node)/index") }
    for (port, nodes) in [("1-1", ["video0", "video1"]), ("1-2", ["video2"])] {
      try root.writeSystemFile("480\n", "\(port)/speed")
      try root.writeSystemFile("1\n", "\(port)/busnum")
      for (index, node) in nodes.enumerated() {
        let directory = "\(port)/\(node)"
        try root.writeSystemFile("\(index)\n", "\(directory)/index")
        #expect(symlink(root.file(directory), root.file("class/\(node)")) == 0)
        #expect(symlink(root.file(port), root.file("\(directory)/device")) == 0)
      }
    }
    let links = USBLink.ofCameras(in: root.file("class"))
    #expect(links.keys.sorted() == ["video0", "video2"])
    #expect(links["video2"]?.directory == SystemFiles.resolved(root.file("1-2")))
  }

  @Test func `Reads whether the kernel suspends an unused USB device`() throws {
    let root = try Scratch()
    try root.writeSystemFile("480\n", "a/speed")
    try root.writeSystemFile("1\n", "a/busnum")
    for (text, isOn) in [("auto\n", true), ("on\n", false)] {
      try root.writeSystemFile(text, "a/power/control")
      let path = USBLink(ofDeviceAt: root.file("a"))?.suspensionSwitch
      #expect((path != nil) == isOn && path?.hasSuffix("a/power/control") != false)
    }
  }

  @Test(arguments: [("hfr-usb busy=1", true), ("hfr-usb", false), ("mplane-sensor", false)])
  func `Detects a camera that another program streams from`(
    cameras: String, isBusy: Bool
  ) throws {
    let machine = try FakeVideoSystemCalls(cameras)
    try DeviceSystem.$calls.withValue(machine) {
      let device = try CaptureDevice.named("/dev/fakevideo0")
      let before = try VideoDevice(opening: "/dev/fakevideo0").currentFormat()
      let diagnosis = device.diagnosis()
      #expect(diagnosis.isStreamingElsewhere == isBusy)
      #expect(!diagnosis.isForbidden && diagnosis.usb == nil)
      #expect(try VideoDevice(opening: "/dev/fakevideo0").currentFormat() == before)
    }
  }
}
