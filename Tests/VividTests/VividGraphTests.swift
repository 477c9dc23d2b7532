// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankV4L2
import TestSupport
import Testing

extension VividTests {
  @Suite struct Graphs {
    private func camera(_ name: String, _ mode: String) throws -> DeviceInput {
      let device = try CaptureDevice.named(name)
      return try DeviceInput(
        device: device, format: device.format(matching: ModeRequest(parsing: mode)))
    }

    @Test(
      .enabled(if: Vivid.multiPlanarNode != nil, "LAB_VIVID makes no multi-planar vivid"),
      arguments: 0..<RunSize.cases(1, full: 20))
    func `Frames of real and synthetic cameras flow as a model says`(seed: Int) async throws {
      let cameras = [
        try camera("\(Vivid.node ?? "")?input=0", "320x180/grey"),
        try camera("\(Vivid.multiPlanarNode ?? "")?input=0", "640x360/nv12"),
        try camera("synthetic:128x96@60", "/grey"), try camera("synthetic:192x96@60", "/grey"),
      ]
      var graph = RandomSessionGraph(cameras: cameras, seed: UInt64(seed) + 1_300)
      try await graph.run()
    }
  }
}
