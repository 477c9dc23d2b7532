// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// The torch, and changes of the subject area.
struct TorchTests {
  private let machine: FakeVideoSystemCalls

  init() throws {
    machine = try FakeVideoSystemCalls("sensor-module")
    machine.pace()
  }

  private func camera() throws -> (DeviceInput, CameraControls) {
    try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      return (
        try DeviceInput(device: camera, format: try camera.fastestFormat()),
        try CameraControls(device: camera)
      )
    }
  }

  /// The value of the LED mode control: 0 off, 1 flash, 2 torch.
  private var led: Int64 { machine.controlValue(ControlID.flashMode.rawValue) }

  @Test func `The torch lights only while the session runs`() throws {
    let (input, controls) = try camera()
    #expect(try controls.torchMode == .off && controls.torchLevel == 0)
    try controls.setTorchModeOn(level: 0.5)
    #expect(try controls.torchMode == .on)
    #expect(try controls.isTorchActive == false && controls.torchLevel == 0)
    #expect(led == 0)
    let session = CaptureSession(input)
    for _ in 0..<2 {
      try session.startRunning()
      #expect(led == 2)
      #expect(try controls.torchLevel == 0.5)
      session.stopRunning()
      #expect(led == 0)
      #expect(try controls.torchMode == .on)
    }
    try session.startRunning()
    try controls.setTorchMode(.off)
    #expect(led == 0)
    try controls.setTorchMode(.on)
    #expect(led == 2)
    session.stopRunning()
    let error = #expect(throws: MediaError.self) { try controls.setTorchModeOn(level: 0) }
    #expect(error?.code == .controlOutOfRange)
  }

  @Test func `The torch goes out when the camera controls are deallocated`() throws {
    let (input, controls) = try camera()
    let session = CaptureSession(input)
    try session.startRunning()
    try DeviceSystem.$calls.withValue(machine) {
      let others = try CameraControls(device: input.device)
      try others.setTorchMode(.on)
      #expect(led == 2)
      _ = consume others
    }
    #expect(led == 0)
    #expect(try controls.torchMode == .off)
    session.stopRunning()
  }

  @Test func `The automatic torch lights while frames are dark`() async throws {
    let (input, controls) = try camera()
    func show(_ brightness: Int) throws {
      try controls.set([ControlAssignment(name: "brightness", text: "\(brightness)")])
    }
    try show(5)
    try controls.setTorchMode(.auto)
    #expect(try controls.torchMode == .auto)
    let session = CaptureSession(input)
    try await session.startRunning()
    while led != 2 { await Task.yield() }
    // The torch's own light does not switch it off.
    try show(100)
    try show(250)
    while led != 0 { await Task.yield() }
    try show(5)
    while led != 2 { await Task.yield() }
    await session.stopRunning()
    #expect(led == 0)
    #expect(try controls.torchMode == .auto)
  }

  @Test func `The automatic torch switches with hysteresis`() {
    var torch = AutomaticTorch()
    let lit = [0.5, 0.2, 0.1, 0.3, 0.55, 0.7, 0.3, 0.05].map { torch.see($0) }
    #expect(lit == [false, false, true, true, true, false, false, true])
  }

  @Test func `A subject area change needs motion or a change of brightness`() {
    var detector = SubjectAreaDetector()
    func see(_ averages: [Double], at seconds: Int64) -> SubjectAreaChange? {
      detector.see(BrightnessGrid(averages: averages), at: seconds * 1_000_000)
    }
    let gray = [Double](repeating: 100, count: 8)
    #expect(see(gray, at: 0) == nil)
    #expect(see(gray.map { $0 + 5 }, at: 1) == nil)
    // A brightness change in one of the eight image parts is too little. In two parts, it is
    // enough.
    #expect(see([200] + gray.dropFirst(), at: 2) == nil)
    let moved = see([200, 200] + gray.dropFirst(2), at: 3)
    #expect(moved?.changedShare == 0.25)
    #expect(moved?.presentationTimeStamp == MediaTime(seconds: 3))
    // Each frame is compared with the last reported frame, and reports have a minimum interval.
    #expect(see([200, 200] + gray.dropFirst(2), at: 5) == nil)
    let darker = see([Double](repeating: 51, count: 8), at: 6)
    #expect(darker?.changedShare == 1 && darker?.meanLevel == 0.2)
    #expect(detector.see(BrightnessGrid(averages: gray), at: 6_500_000) == nil)
  }

  @Test func `Subject area changes are reported until the camera is freed`() async throws {
    var opened = [try camera()]
    let controls = opened[0].1
    let changes = opened[0].0.subjectAreaChanges
    var session: CaptureSession? = CaptureSession(opened[0].0)
    try await session?.startRunning()
    let light = Task {
      var brightness = 20
      while !Task.isCancelled {
        brightness = 220 - brightness
        try controls.set([ControlAssignment(name: "brightness", text: "\(brightness)")])
        await Task.yield()
      }
    }
    var reportCount = 0
    for await change in changes {
      reportCount += 1
      #expect(change.changedShare == 1)
      light.cancel()
      await session?.stopRunning()
      session = nil
      opened = []
    }
    #expect(reportCount >= 1)
  }
}
