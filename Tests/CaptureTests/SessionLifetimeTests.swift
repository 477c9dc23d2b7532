// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankPreview
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCapture

/// The lifetime of a session, and its short initializers.
struct SessionLifetimeTests {
  @Test func `A session made from a camera uses the fastest camera format`() throws {
    let session = try CaptureSession(CaptureDevice.named("synthetic"))
    #expect(session.connections.isEmpty && session.inputs.count == 1)
    let input = try #require(session.inputs.first as? DeviceInput)
    #expect(input.negotiatedFrameRate == 240)
  }

  @Test func `A session can be created with a camera and a frame rate`() throws {
    let camera = try CaptureDevice.named("synthetic")
    for rate in [60, 120, FrameRate(60_000, over: 1001)] as [FrameRate] {
      let session = try CaptureSession(camera, frameRate: rate)
      let input = try #require(session.inputs.first as? DeviceInput)
      #expect(input.negotiatedFrameRate == rate)
    }
    #expect { try CaptureSession(camera, frameRate: 1_000_000) } throws: {
      ($0 as? MediaError)?.code == .noMatchingFormat
    }
  }

  @Test func `A running session stays alive while its output is in use`() async throws {
    weak var session: CaptureSession?
    func output() async throws -> VideoDataOutput {
      let output = VideoDataOutput()
      let made = try CaptureSession(CaptureDevice.named("synthetic:320x240@240"))
      try await made.addOutput(output)
      try await made.startRunning()
      session = made
      return output
    }
    let frames = try await output().frames
    var count = 0
    for await _ in frames {
      count += 1
      if count == 20 { break }
    }
    #expect(count == 20)
    await session?.stopRunning()
    #expect(session == nil)
  }

  @Test func `A running session without outputs is deallocated`() async throws {
    weak var session: CaptureSession?
    do {
      let output = VideoDataOutput()
      let made = try CaptureSession(CaptureDevice.named("synthetic:320x240@240"))
      try await made.addOutput(output)
      session = made
      try await made.startRunning()
      made.removeOutput(output)
    }
    #expect(session == nil)
  }

  @Test func `A session that never ran is freed with its last output`() throws {
    weak var session: CaptureSession?
    do {
      let made = try CaptureSession(CaptureDevice.named("synthetic:320x240@240"))
      try made.addOutput(VideoDataOutput())
      session = made
    }
    #expect(session == nil)
  }

  @Test func `A session lives until its last output is released`()
    async throws
  {
    weak var camera: DeviceInput?
    weak var other: VideoDataOutput?
    func makeOutput() throws -> VideoDataOutput {
      let session = try CaptureSession(CaptureDevice.named("synthetic:320x240@240"))
      camera = session.inputs.first as? DeviceInput
      let (output, second) = (VideoDataOutput(), VideoDataOutput())
      // New outputs are kept by a session that is being configured, too.
      session.beginConfiguration()
      try session.addOutput(output)
      try session.addOutput(second)
      try session.commitConfiguration()
      other = second
      #expect(session.outputs.count == 2 && output.session === session)
      return output
    }
    do {
      let output = try makeOutput()
      // The session and the other output are deallocated.
      #expect(camera != nil && other == nil)
      #expect(output.nativeFormat != nil && output.session?.connections.count == 1)
      let frames = output.frames
      try await #require(output.session).startRunning()
      var count = 0
      for await _ in frames {
        count += 1
        if count == 20 { break }
      }
      let session = try #require(output.session)
      #expect(session.isRunning && session.outputs.first === output && session === output.session)
      await session.stopRunning()
    }
    #expect(camera == nil)
  }

  @Test func `A session that has run is freed with its last output`() async throws {
    weak var video: VideoDataOutput?
    weak var audio: AudioDataOutput?
    weak var preview: VideoPreview?
    weak var camera: DeviceInput?
    do {
      let session = try CaptureSession(CaptureDevice.named("synthetic:320x240@240"))
      camera = session.inputs.first as? DeviceInput
      let outputs = (VideoDataOutput(), AudioDataOutput(), try VideoPreview(session: session))
      (video, audio, preview) = outputs
      try await session.addOutput(outputs.0)
      try await session.addOutput(outputs.1)
      outputs.1.setSampleBufferHandler { _ in }
      let frames = outputs.0.frames
      try await session.startRunning()
      for await _ in frames { break }
      await session.stopRunning()
    }
    // The thread of an output may hold the last sample a moment longer.
    while video != nil || audio != nil || preview != nil || camera != nil { await Task.yield() }
  }

  @Test func `A removed output does not keep its session alive`() throws {
    weak var camera: DeviceInput?
    let output = AudioDataOutput()
    do {
      let session = try CaptureSession(CaptureDevice.named("synthetic:320x240@240"))
      camera = session.inputs.first as? DeviceInput
      try session.addOutput(output)
      #expect(session.connections.first?.output === output)
      session.removeOutput(output)
    }
    #expect(output.session == nil && camera == nil)
  }

  private func input(_ machine: FakeVideoSystemCalls) throws -> DeviceInput {
    try machine.input()
  }

  /// The next attempt to restart the input is an hour away.
  ///
  /// If something keeps the input alive until then, the test ends at its limit of half an hour.
  @Test(.timeLimit(.minutes(30)), arguments: [false, true])
  func `Releasing an interrupted session frees its camera at once`(isStopped: Bool)
    async throws
  {
    let machine = try FakeVideoSystemCalls("hfr-usb unplug=20 replug=1")
    weak var dropped: DeviceInput?
    do {
      let input = try self.input(machine)
      dropped = input
      let session = CaptureSession(input, retryMilliseconds: 3_600_000)
      let events = session.events
      try await session.startRunning()
      for await event in events where event == .didStopRunning { break }
      #expect(session.isInterrupted)
      if isStopped { await session.stopRunning() }
    }
    while dropped != nil { await Task.yield() }
    machine.advance(nanoseconds: 2_000_000_000)
    try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      var locked = try camera.lockForConfiguration()
      try locked.setActiveFormat(try camera.fastestFormat())
    }
  }

  @Test func `Releasing a stopped session frees its camera at once`() async throws {
    let machine = try FakeVideoSystemCalls("hfr-usb")
    // Without this pause, the capture thread would leave the test no processor time.
    machine.pace()
    for _ in 0..<100 {
      weak var dropped: DeviceInput?
      do {
        let input = try self.input(machine)
        dropped = input
        let session = CaptureSession(input)
        try await session.startRunning()
        await session.stopRunning()
      }
      #expect(dropped == nil)
    }
  }
}
