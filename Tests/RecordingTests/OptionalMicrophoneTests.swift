// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// Takes of a camera with a microphone that may be left out.
struct OptionalMicrophoneTests {
  /// Whether the microphone or the camera fails to start while the other one streams.
  enum Failure: CaseIterable {
    case microphone
    case cameraBesideMicrophone

    var error: MediaError {
      MediaError(.deviceFailed, "no bandwidth: \(self)", recovery: "use another port")
    }
  }

  private final class Bus: Sendable {
    let isInUse = Atomic(false)
  }

  private func session(_ failure: Failure?, isOptional: Bool = true) throws -> CaptureSession {
    var camera = try ScriptedCamera(100)
    camera.base = MicrophoneScene.zero
    let bus = Bus()
    let microphone = ScriptedMicrophone(
      [.samples(100_000)], atNanoseconds: camera.base * 1_000,
      switched: { isOn throws(MediaError) in
        if isOn, failure == .microphone { throw Failure.microphone.error }
        bus.isInUse.store(isOn, ordering: .sequentiallyConsistent)
      }, wave: MicrophoneScene.tone)
    let device = try CaptureDevice.named("synthetic")
    let session = CaptureSession(
      MicrophoneInput(device: device, driver: microphone, isOptional: isOptional))
    let driver = ScriptedDriver(
      try camera.frames(0..<150),
      startError: failure == .cameraBesideMicrophone
        && bus.isInUse.load(ordering: .sequentiallyConsistent)
        ? Failure.cameraBesideMicrophone.error : nil)
    try session.addInput(try #require(camera.session(driver).inputs.first))
    return session
  }

  @Test(arguments: [nil] + Failure.allCases)
  func `A take goes on without an optional microphone`(failure: Failure?) throws {
    let scratch = try Scratch()
    let session = try session(failure)
    let settings = RecordingSettings(path: scratch.file("take.mov"))
    let report = try MovieFileOutput(session: session, settings: settings).record()
    #expect(report.problem == nil && report.ledger.stored == 150 && report.ledger.dropped == 0)
    #expect((report.audio == nil) == (failure != nil))
    let asset = try Asset(path: settings.path)
    #expect(asset.videoTrack?.frameCount == 150)
    #expect((asset.audioTrack == nil) == (failure != nil))
    #expect(session.omittedInputs.map(\.error) == (failure.map { [$0.error] } ?? []))
    #expect(session.inputs.count == (failure == nil ? 2 : 1))
  }

  @Test(arguments: Failure.allCases)
  func `A take needs a microphone that is not optional`(failure: Failure) throws {
    let scratch = try Scratch()
    let session = try session(failure, isOptional: false)
    let settings = RecordingSettings(path: scratch.file("take.mov"))
    let output = try MovieFileOutput(session: session, settings: settings)
    #expect(throws: failure.error) { try output.record() }
    #expect(session.omittedInputs.isEmpty && session.inputs.count == 2)
    #expect(try scratch.names() == [])
  }

  @Test(arguments: Failure.allCases)
  func `An audio trigger needs the optional microphone`(failure: Failure) throws {
    let scratch = try Scratch()
    let settings = RecordingSettings(path: scratch.file("take.mov"))
    let output = try MovieFileOutput(session: session(failure), settings: settings)
    var triggers = TriggerSettings(preDuration: .zero, postDuration: MediaTime(seconds: 1))
    triggers.audio = AudioTrigger(threshold: -6)
    #expect(throws: failure.error) { try output.record(on: triggers) }
    #expect(try scratch.names() == [])
  }

  @Test func `Events name the omitted microphone before the start`() async throws {
    let session = try session(.cameraBesideMicrophone)
    let events = session.events
    try await session.startRunning()
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .didStopRunning { break }
    }
    let omitted = try #require(session.omittedInputs.first)
    #expect(omitted.error == Failure.cameraBesideMicrophone.error)
    #expect(seen == [.didStartRunning, .didOmitInput(omitted), .didStopRunning])
  }

  /// A session of an optional microphone, and a camera that is not in it yet.
  private func sessionAndCamera(
    startError: @autoclosure @escaping @Sendable () -> MediaError? = nil
  ) throws -> (CaptureSession, DeviceInput) {
    var camera = try ScriptedCamera(100)
    camera.base = MicrophoneScene.zero
    let microphone = ScriptedMicrophone(
      [.samples(4_800)], atNanoseconds: camera.base * 1_000, wave: MicrophoneScene.tone)
    let session = CaptureSession(
      MicrophoneInput(
        device: try CaptureDevice.named("synthetic"), driver: microphone, isOptional: true))
    let driver = ScriptedDriver(try camera.frames(0..<150), startError: startError())
    let input = try #require(camera.session(driver).inputs.first as? DeviceInput)
    return (session, input)
  }

  @Test func `A microphone runs again if the camera cannot start`() async throws {
    let error = Failure.cameraBesideMicrophone.error
    let (session, camera) = try sessionAndCamera(startError: error)
    let events = session.events
    try await session.startRunning()
    await #expect(throws: error) { try await session.addInput(camera) }
    #expect(session.runningInputs.count == 1 && session.runningInputs.first is MicrophoneInput)
    #expect(session.inputs.count == 1 && session.omittedInputs.isEmpty)
    await session.stopRunning()
    var seen: [SessionEvent] = []
    for await event in events {
      seen.append(event)
      if event == .didStopRunning { break }
    }
    #expect(seen == [.didStartRunning, .didStopRunning])
  }

  @Test func `A failed start omits no microphone`() throws {
    let error = Failure.cameraBesideMicrophone.error
    let session = try session(.microphone)
    let failing = ScriptedDriver([.nothing], startError: error)
    let camera = try ScriptedCamera(100).session(failing)
    try session.addInputWithNoConnections(try #require(camera.inputs.first))
    #expect(throws: error) { try session.startRunning() }
    #expect(session.inputs.count == 3 && session.omittedInputs.isEmpty && !session.isRunning)
  }

  @Test func `An omission does not undo a configuration`() throws {
    let session = try session(.cameraBesideMicrophone)
    let output = VideoDataOutput()
    session.beginConfiguration()
    try session.addOutput(output)
    try session.startRunning()
    #expect(session.inputs.count == 1)
    try session.commitConfiguration()
    #expect(session.inputs.count == 1 && session.outputs.first === output)
    #expect(session.connections.count == 1)
    session.stopRunning()
  }

  @Test func `A microphone runs again after a photo in a larger mode`() throws {
    let machine = try FakeVideoSystemCalls("hfr-usb streamon-fails=2")
    machine.pace()
    let camera = try machine.input()
    let (session, _) = try sessionAndCamera()
    try session.addInput(camera)
    try session.startRunning()
    #expect(session.runningInputs.count == 2)
    let (before, rate) = (camera.format, camera.requestedFrameRate)
    let other = try #require(camera.knownFormats().last { $0.id != before.id })
    try session.restart(camera, as: other)
    #expect(session.runningInputs.count == 1 && session.runningInputs.first === camera)
    #expect(session.inputs.count == 2 && session.omittedInputs.isEmpty)
    try session.restart(camera, as: before, frameRate: rate)
    #expect(session.runningInputs.count == 2 && session.omittedInputs.isEmpty)
    session.stopRunning()
  }

  @Test func `A session of an optional microphone alone needs it`() throws {
    let session = try session(.microphone)
    for camera in session.inputs where camera is DeviceInput { session.removeInput(camera) }
    #expect(throws: Failure.microphone.error) { try session.startRunning() }
    #expect(!session.isRunning && session.inputs.count == 1)
  }
}
