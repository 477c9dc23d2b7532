// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Foundation
import TestSupport
import Testing

@testable import OvercrankV4L2

struct SubdeviceTests {
  /// Writes a file, and creates the directories above it.
  private func write(_ text: String, _ path: String) throws {
    let file = URL(fileURLWithPath: path)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file)
  }

  @Test func `Finds subdevices and LEDs of a camera in its media device`()
    throws
  {
    let scratch = try Scratch()
    // The kernel has these nodes below devices on different buses.
    let nodes = [
      ("video0", "81:0", "csi/video4linux"), ("video1", "81:1", "usb/video4linux"),
      ("v4l-subdev0", "81:5", "i2c/3-0036/video4linux"),
      ("v4l-subdev1", "81:6", "i2c/3-0063/video4linux"),
    ]
    let classDirectory = scratch.file("class")
    try FileManager.default.createDirectory(
      atPath: classDirectory, withIntermediateDirectories: true)
    for (name, number, position) in nodes {
      let directory = scratch.file("devices/\(position)/\(name)")
      try write(number + "\n", directory + "/dev")
      let device = scratch.file("devices/\(position)").replacingOccurrences(
        of: "/video4linux", with: "")
      try FileManager.default.createSymbolicLink(
        atPath: directory + "/device", withDestinationPath: device)
      try FileManager.default.createSymbolicLink(
        atPath: "\(classDirectory)/\(name)", withDestinationPath: directory)
    }
    for media in ["csi/media1", "usb/media0", "csi/media_other"] {
      try write("", scratch.file("devices/\(media)/dev"))
    }
    let calls = KernelVideoCalls(nodeDirectory: "/dev", classDirectory: classDirectory)
    func parts(_ node: String) -> [String] {
      // The device 81:9 has no node on this system.
      calls.parts(of: node) { $0 == "/dev/media1" ? ["81:6", "81:9"] : [] }
    }
    #expect(parts("/dev/video0") == ["/dev/v4l-subdev1"])
    #expect(parts("/dev/video1") == [])
    #expect(parts("/dev/video7") == [])
    // udev gives the node another name.
    try write("", scratch.file("video0"))
    let link = scratch.file("by-id")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "video0")
    #expect(parts(link) == ["/dev/v4l-subdev1"])
    // A file that is not a media device has no subdevices.
    #expect(KernelVideoCalls.entityNodes(CVideo4Linux_ENTITY_FLASH)("/dev/null") == [])
    #expect(KernelVideoCalls.entityNodes(CVideo4Linux_ENTITY_FLASH)(scratch.file("none")) == [])
  }
}
