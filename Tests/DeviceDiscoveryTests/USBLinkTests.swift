// SPDX-License-Identifier: Apache-2.0

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
    #expect(link == USBLink(megabitsPerSecond: 480, supportsSuperSpeed: false, bus: 1))
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
