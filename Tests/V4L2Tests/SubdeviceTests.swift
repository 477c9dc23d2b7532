// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport
import Testing

@testable import V4L2

struct SubdeviceTests {
  @Test func `The parts of a camera are the nodes of its device, in the kernel's order`() throws {
    let scratch = try Scratch()
    for folder in ["devices", "devices/camera", "devices/other", "class"] {
      #expect(mkdir(scratch.file(folder), 0o700) == 0)
    }
    let nodes = [
      ("video0", "camera"), ("video1", "other"), ("v4l-subdev10", "camera"),
      ("v4l-subdev9", "camera"), ("v4l-subdev2", "other"), ("v4l-touch0", "camera"),
    ]
    for (node, device) in nodes {
      #expect(mkdir(scratch.file("class/\(node)"), 0o700) == 0)
      #expect(symlink("../../devices/\(device)", scratch.file("class/\(node)/device")) == 0)
    }
    let calls = KernelCalls(nodeFolder: "/dev", classFolder: scratch.file("class"))
    #expect(
      calls.subdevices(of: "/dev/video0") == ["/dev/v4l-subdev9", "/dev/v4l-subdev10"])
    #expect(calls.subdevices(of: "/dev/video1") == ["/dev/v4l-subdev2"])
    #expect(calls.subdevices(of: "/dev/video7") == [])
    // Another name of the node, as udev gives.
    let link = scratch.file("by-id")
    let node = scratch.file("video1")
    #expect(symlink("video1", link) == 0)
    #expect(mkdir(node, 0o700) == 0)
    #expect(calls.subdevices(of: link) == ["/dev/v4l-subdev2"])
  }
}
