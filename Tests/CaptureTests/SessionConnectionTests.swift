// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCapture

/// Claims about connections that a program makes itself.
@Suite(.serialized) struct SessionConnectionTests {
  private func camera(_ width: Int) throws -> DeviceInput {
    let device = try CaptureDevice.named("synthetic:\(width)x96@240")
    return try DeviceInput(
      device: device, format: device.format(matching: ModeRequest(parsing: "/grey")))
  }

  @Test func `Each of two cameras feeds its own output`() async throws {
    let session = CaptureSession()
    let cameras = [try camera(128), try camera(192)]
    let outputs = [VideoDataOutput(), VideoDataOutput(), VideoDataOutput()]
    for camera in cameras { try session.addInputWithNoConnections(camera) }
    for output in outputs { try session.addOutputWithNoConnections(output) }
    #expect(session.connections.isEmpty)
    // The second camera feeds two outputs.
    for (camera, output) in zip([cameras[0], cameras[1], cameras[1]], outputs) {
      let connection = try CaptureConnection(
        inputPorts: camera.ports(for: .video), output: output)
      #expect(
        connection.inputPorts == camera.ports(for: .video) && session.canAddConnection(connection))
      try session.addConnection(connection)
    }
    try await session.startRunning()
    for (output, width) in zip(outputs, [128, 192, 192]) {
      let sample = try #require(await output.frames.first { _ in true })
      #expect(sample.formatDescription.width == width)
    }
    let connection = try #require(session.connections.last)
    session.removeConnection(connection)
    let offered = outputs[2].ledger.offered
    var iterator = outputs[1].frames.makeAsyncIterator()
    for _ in 0..<5 { #expect(try await iterator.next() != nil) }
    #expect(outputs[2].ledger.offered == offered && session.connections.count == 2)
    // A connection that was removed can be added again.
    try session.addConnection(connection)
    #expect(await outputs[2].frames.first { _ in true } != nil)
    await session.stopRunning()
  }

  @Test func `A refused connection says why`() throws {
    let session = CaptureSession()
    let (first, second) = (try camera(128), try camera(192))
    let (output, audio) = (VideoDataOutput(), AudioDataOutput())
    let port = first.ports(for: .video)
    let connection = try CaptureConnection(inputPorts: port, output: output)
    func expectRefused(_ connection: CaptureConnection, _ reason: String) {
      #expect(!session.canAddConnection(connection))
      let error = #expect(throws: MediaError.self) { try session.addConnection(connection) }
      #expect(error?.code == .badConfiguration)
      #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }
    expectRefused(connection, "is not an input")
    try session.addInputWithNoConnections(first)
    expectRefused(connection, "is not in the session")
    try session.addOutputWithNoConnections(output)
    try session.addOutputWithNoConnections(audio)
    expectRefused(try CaptureConnection(inputPorts: port, output: audio), "does not accept video")
    try session.addConnection(connection)
    try session.addInputWithNoConnections(second)
    expectRefused(
      try CaptureConnection(inputPorts: second.ports(for: .video), output: output),
      first.device.address)
    for ports in [[], first.ports(for: .video) + second.ports(for: .video)] {
      let error = #expect(throws: MediaError.self) {
        _ = try CaptureConnection(inputPorts: ports, output: output)
      }
      #expect(error?.code == .badConfiguration)
    }
    #expect(session.connections.count == 1)
  }

  @Test func `A camera that replaces another keeps its connections`() async throws {
    let session = CaptureSession(try camera(128))
    let outputs = (0..<3).map { _ in VideoDataOutput() }
    for output in outputs { try await session.addOutput(output) }
    func connection(_ output: VideoDataOutput) -> CaptureConnection? {
      session.connections.first { $0.output === output }
    }
    try #require(connection(outputs[0])).setVideoRotationAngle(90)
    try #require(connection(outputs[1])).isEnabled = false
    session.removeConnection(try #require(connection(outputs[2])))
    try await session.switchCamera(to: try camera(192))
    #expect(session.inputs.count == 1)
    #expect(connection(outputs[0])?.videoRotationAngle == 90)
    #expect(connection(outputs[1])?.isEnabled == false)
    #expect(connection(outputs[2]) == nil)
    let sized = session.inputs.first as? DeviceInput
    #expect(sized?.format.width == 192)
    // A camera that is added later is connected as usual.
    await session.removeInput(try #require(sized))
    try await session.addInput(try camera(128))
    #expect(session.connections.count == 3)
    #expect(connection(outputs[0])?.videoRotationAngle == 0)
    try await session.addInput(try camera(192))
    let error = #expect(throws: MediaError.self) {
      try session.switchCamera(to: try camera(256))
    }
    #expect(error?.code == .badConfiguration && session.inputs.count == 2)
  }

  @Test func `A switched camera replaces that one alone`() async throws {
    let session = CaptureSession()
    let cameras = [try camera(128), try camera(192)]
    let outputs = [VideoDataOutput(), VideoDataOutput()]
    for (camera, output) in zip(cameras, outputs) {
      try await session.addInput(camera)
      try await session.addOutput(output)
    }
    // The second output gets the frames of the second camera.
    session.removeConnection(try #require(session.connections.last))
    try session.addConnection(
      CaptureConnection(inputPorts: cameras[1].ports(for: .video), output: outputs[1]))
    let new = try camera(256)
    session.beginConfiguration()
    await session.removeInput(cameras[0])
    try await session.switchCamera(to: new, from: cameras[1])
    try await session.commitConfiguration()
    #expect(session.connections.count == 1)
    #expect(session.connections.first?.output === outputs[1])
    #expect(session.connections.first?.input === new)
  }

  @Test(arguments: [true, false])
  func `Cameras with other ports can be exchanged`(gainsAudio: Bool) async throws {
    let inputs = [try camera(128), try FakeVideoSystemCalls("hfr-usb").input()]
    #expect(inputs.map(\.ports.count) == [2, 1])
    let (old, new) = gainsAudio ? (inputs[1], inputs[0]) : (inputs[0], inputs[1])
    let session = CaptureSession(old)
    let (video, audio) = (VideoDataOutput(), AudioDataOutput())
    try await session.addOutput(video)
    try await session.addOutput(audio)
    let connection = try #require(session.connections.first { $0.output === video })
    try connection.setVideoRotationAngle(90)
    try await session.switchCamera(to: new)
    let kept = try #require(session.connections.first { $0.output === video })
    #expect(kept.input === new && kept.videoRotationAngle == 90)
    #expect(session.connections.contains { $0.output === audio } == gainsAudio)
  }

  @Test func `Changes of several threads all take effect`() async throws {
    let session = CaptureSession(try camera(128))
    try await session.startRunning()
    let outputs = (0..<24).map { _ in VideoDataOutput() }
    try await withThrowingTaskGroup { group in
      for output in outputs { group.addTask { try await session.addOutput(output) } }
      try await group.waitForAll()
    }
    #expect(session.outputs.count == 24 && session.connections.count == 24)
    await withTaskGroup { group in
      for output in outputs { group.addTask { session.removeOutput(output) } }
    }
    #expect(session.outputs.isEmpty && session.connections.isEmpty)
    await session.stopRunning()
  }

  @Test func `A failed switch of cameras leaves the old one running`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb\nhfr-usb streamon-fails=1")
    machine.pace()
    let inputs = try DeviceSystem.$calls.withValue(machine) {
      try (0..<2).map { number in
        let camera = try CaptureDevice.named("/dev/fakevideo\(number)")
        return try DeviceInput(device: camera, format: try camera.fastestFormat())
      }
    }
    let session = CaptureSession(inputs[0])
    let output = VideoDataOutput()
    try await session.addOutput(output)
    try await session.startRunning()
    let error = await #expect(throws: MediaError.self) {
      try await session.switchCamera(to: inputs[1])
    }
    #expect(error?.code == .deviceFailed)
    #expect(session.runningInputs.count == 1 && session.runningInputs.first === inputs[0])
    #expect(await output.frames.first { _ in true } != nil)
    try await session.switchCamera(to: inputs[1])
    #expect(session.runningInputs.count == 1 && session.runningInputs.first === inputs[1])
    #expect(await output.frames.first { _ in true } != nil)
    await session.stopRunning()
  }

  @Test func `A connection follows a rotation coordinator`() throws {
    let machine = try FakeVideoSystemCalls("stepwise-sensor")
    let input = try machine.input()
    let session = CaptureSession(input)
    let output = VideoDataOutput()
    try session.addOutput(output)
    let connection = try #require(session.connections.first)
    let coordinator = CaptureDevice.RotationCoordinator(device: input.device, sensors: "/nowhere")
    coordinator.deviceRotationAngle = 90
    try connection.follow(coordinator)
    // The front camera sees the device rotate in the opposite direction.
    #expect(connection.videoRotationAngle == 270)
    coordinator.deviceRotationAngle = 180
    #expect(connection.videoRotationAngle == 180 && !connection.isVideoMirrored)
    // A camera that faces away from the user sees the device rotate as the user does.
    coordinator.deviceRotationAngle = 90
    try session.switchCamera(to: try camera(128))
    let other = try #require(session.connections.first)
    #expect(other.videoRotationAngle == 90)
    coordinator.deviceRotationAngle = 270
    #expect(other.videoRotationAngle == 270)
    try other.setVideoRotationAngle(0)
    coordinator.deviceRotationAngle = 90
    #expect(other.videoRotationAngle == 0)
  }
}

// MARK: - Random graphs

extension SessionConnectionTests {
  @Test(arguments: 0..<RunSize.cases(8, full: 40))
  func `Frames flow where a model of the session says`(seed: Int) async throws {
    var graph = RandomSessionGraph(
      cameras: try [128, 192, 256, 320].map { try camera($0) }, seed: UInt64(seed) + 900)
    try await graph.run()
  }
}
