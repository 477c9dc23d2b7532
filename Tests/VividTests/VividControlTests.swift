// SPDX-License-Identifier: Apache-2.0

import OvercrankCameraControls
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import TestSupport
import Testing

extension VividTests {
  /// The kernel's access priorities for controls, which vivid supports.
  @Suite(.serialized) struct Controls {
    private let node = Vivid.node ?? ""

    /// Sets the brightness as another program would; false if the kernel refuses.
    private func setFromOtherProgram(_ brightness: Int) async throws -> Bool {
      try await run("v4l2-ctl", ["-d", node, "-c", "brightness=\(brightness)"]).status == 0
    }

    private func brightness(_ controls: CameraControls) throws -> CameraControl.Value? {
      try controls.list().first { $0.name == "brightness" }?.value
    }

    @Test func `Only the program that locked a camera can set its controls`() async throws {
      let camera = try CaptureDevice.named(node)
      let controls = try CameraControls(device: camera)
      let before = try brightness(controls)
      var locked = try camera.lockForConfiguration()
      try locked.setActiveFormat(
        try camera.format(matching: ModeRequest(parsing: "320x180@60/yuyv")))
      try controls.set([ControlAssignment(parsing: "brightness=100")])
      #expect(try await !setFromOtherProgram(90))
      let session = CaptureSession(try locked.makeInput())
      try await session.startRunning()
      try controls.set([ControlAssignment(parsing: "brightness=101")])
      #expect(try await !setFromOtherProgram(91))
      let again = try camera.lockForConfiguration()
      try controls.set([ControlAssignment(parsing: "brightness=102")])
      again.unlockForConfiguration()
      #expect(try brightness(controls) == .number(102))
      await session.stopRunning()
      if case .number(let number) = before {
        try controls.set([ControlAssignment(parsing: "brightness=\(number)")])
      }
    }

    @Test func `Other programs can set controls after a camera is unlocked`() async throws {
      let camera = try CaptureDevice.named(node)
      let controls = try CameraControls(device: camera)
      let before = try brightness(controls)
      try camera.lockForConfiguration().unlockForConfiguration()
      #expect(try await setFromOtherProgram(93))
      #expect(try brightness(controls) == .number(93))
      if case .number(let number) = before {
        try controls.set([ControlAssignment(parsing: "brightness=\(number)")])
      }
    }
  }
}
