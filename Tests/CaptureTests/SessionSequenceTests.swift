// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import TestSupport
import Testing

@testable import OvercrankCameraControls
@testable import OvercrankCapture

/// Random sequences of session calls and camera faults.
///
/// `OVERCRANK_SEQUENCES` sets their number. The default is 10 000 in a full test run, else 300.
@Suite(.serialized) struct SessionSequenceTests {
  private static let count: Int = {
    ProcessInfo.processInfo.environment["OVERCRANK_SEQUENCES"].flatMap(Int.init)
      ?? RunSize.cases(300, full: 10_000)
  }()

  @Test func `No buffer is missing after random session changes and faults`() async throws {
    var (frames, interruptions, errors, locks, settings, locked) = (0, 0, 0, 0, 0, 0)
    // Sequences without frames and faults would test nothing. How many occur depends on the load:
    // 300 sequences have 190 frames, 40 interruptions and 60 errors, and half of these frames while
    // a build runs. More sequences run until enough have occurred.
    func isEnough() -> Bool {
      frames > Self.count / 10 && interruptions > Self.count / 20 && errors > Self.count / 20
        && locks > Self.count / 5 && settings > Self.count / 5 && locked > Self.count / 20
    }
    var seed = 0
    while seed < Self.count || !isEnough() {
      let sequence = try SessionSequence(seed: UInt64(seed))
      for _ in 0..<24 { try await sequence.step() }
      try await sequence.finish()
      frames += sequence.frameCount
      locks += sequence.lockCount
      settings += sequence.settingCount
      locked += sequence.lockedSettingCount
      for await event in sequence.events {
        switch event {
        case .wasInterrupted: interruptions += 1
        case .runtimeError: errors += 1
        case .interruptionEnded, .didStartRunning, .didStopRunning, .activeFormatDidChange,
          .didOmitInput:
          break
        }
      }
      seed += 1
    }
    print(
      "\(seed) sequences: \(frames) frames taken, \(interruptions) interruptions, "
        + "\(errors) errors, \(locks) locks, \(settings) settings, \(locked) through a lock")
  }
}

/// A session with two fake cameras, and random calls of the session.
private final class SessionSequence {
  private(set) var frameCount = 0
  /// The numbers of device locks, and of changed camera settings.
  private(set) var lockCount = 0
  private(set) var settingCount = 0
  /// The number of settings that were changed through the handle of a lock, while the camera was
  /// locked.
  private(set) var lockedSettingCount = 0
  let events: any AsyncSequence<SessionEvent, Never> & Sendable
  private let seed: UInt64
  private var random: SeededGenerator
  private let machine: FakeVideoSystemCalls
  private let inputs: [DeviceInput]
  private var session: CaptureSession?
  private var outputs: [VideoDataOutput] = []
  private var kept: [SampleBuffer] = []
  private var pool: [BufferPool] = []
  private var lock: DeviceConfiguration?
  private var controls: [CameraControls] = []

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &+ 77)
    let position = Int.random(in: 1...400, using: &random)
    let faults = ["unplug=\(position) replug=1", "at=\(position):eio", "streamon-fails=2", ""]
    let machine = try FakeVideoSystemCalls(
      ["tiny", ["tiny", "hfr-usb mjpegbytes=2000"].randomElement(using: &random) ?? "tiny"]
        .map { "\($0) \(faults.randomElement(using: &random) ?? "")" }
        .joined(separator: "\n"))
    // Without this pause, a camera would leave the tasks of the session no processor time.
    machine.pace()
    inputs = try DeviceSystem.$calls.withValue(machine) {
      try (0..<2).map { number in
        let camera = try CaptureDevice.named("/dev/fakevideo\(number)")
        let format = try camera.fastestFormat()
        guard number == 1, seed % 4 == 0 else {
          return try DeviceInput(device: camera, format: format)
        }
        // The lock is held as long as the input lives.
        var locked = try camera.lockForConfiguration()
        try locked.setActiveFormat(format)
        return try locked.makeInput()
      }
    }
    let session = CaptureSession(inputs[0], retryMilliseconds: 1)
    events = session.events
    (self.machine, self.session, self.random, self.seed) = (machine, session, random, seed)
  }

  func step() async throws {
    guard let session else { return }
    switch Int.random(in: -1..<19, using: &random) {
    case -1...1: await expectingFaults { try await session.startRunning() }
    case 2: await session.stopRunning()
    case 3 where outputs.count < 3:
      let output = VideoDataOutput()
      output.alwaysDiscardsLateVideoFrames = Bool.random(using: &random)
      try await session.addOutput(output)
      outputs.append(output)
    case 4:
      if let output = outputs.popLast() {
        session.removeOutput(output)
        #expect(output.ledger.isBalanced)
      }
    case 5: session.connections.randomElement(using: &random)?.isEnabled.toggle()
    case 6: kept.removeAll()
    case 7: session.beginConfiguration()
    case 8: await expectingFaults { try await session.commitConfiguration() }
    case 9: machine.advance(nanoseconds: Int64.random(in: 0...2_000_000_000, using: &random))
    case 10:
      let input = inputs[Int.random(in: 0..<2, using: &random)]
      if session.canAddInput(input) {
        await expectingFaults { try session.addInput(input) }
      } else {
        await session.removeInput(input)
      }
    case 11: await changeLock()
    case 12, 13: await changeSetting()
    default: await takeFrame(session)
    }
    check()
  }

  /// Takes a frame if one arrives.
  private func takeFrame(_ session: CaptureSession) async {
    guard let output = outputs.last, session.isRunning, kept.count < 3 else { return }
    // If no frame arrives, the waiting task is cancelled.
    let waiting = Task { await output.frames.first { _ in true } }
    let delivered = output.ledger.delivered
    for _ in 0..<1_000 where output.ledger.delivered == delivered && session.isRunning {
      await Task.yield()
    }
    waiting.cancel()
    if let sample = await waiting.value {
      frameCount += 1
      kept.append(sample)
    }
  }

  /// Locks a camera, changes a setting of a locked camera, or unlocks it.
  private func changeLock() async {
    let step = Int.random(in: 0..<3, using: &random)
    guard lock != nil else {
      let camera = inputs[Int.random(in: 0..<2, using: &random)].device
      await expectingFaults {
        try DeviceSystem.$calls.withValue(machine) { lock = try camera.lockForConfiguration() }
        lockCount += 1
      }
      return
    }
    switch step {
    case 0: lock = nil
    case 1:
      await expectingFaults([.modeRefused]) {
        guard let camera = lock?.device else { return }
        let formats = try DeviceSystem.$calls.withValue(machine) { try camera.formats() }
        if let format = formats.randomElement(using: &random) { try lock?.setActiveFormat(format) }
      }
    default:
      await expectingFaults([.modeRefused]) {
        try lock?.setActiveVideoFrameDuration(MediaTime(1, over: 30))
      }
    }
  }

  /// Changes a setting of a camera, or reads all of its settings.
  private func changeSetting() async {
    let refusals: [MediaError.Code] = [
      .controlNotSupported, .controlInactive, .controlReadOnly, .controlOutOfRange,
    ]
    guard controls.count == 2, Int.random(in: 0..<8, using: &random) > 0 else {
      await expectingFaults {
        controls = try DeviceSystem.$calls.withValue(machine) {
          try inputs.map { try CameraControls(device: $0.device) }
        }
      }
      return
    }
    // A locked camera is chosen more often, since its lock lasts for only a few steps.
    let number =
      inputs.firstIndex { Int.random(in: 0..<3, using: &random) > 0 && lock?.device == $0.device }
      ?? Int.random(in: 0..<2, using: &random)
    let (chosen, isLocked) = (controls[number], lock?.device == inputs[number].device)
    let step = Int.random(in: 0..<7, using: &random)
    // Settings use the handle that holds the lock, so the program's own lock does not make the
    // device busy.
    await expectingFaults(refusals, except: isLocked ? [.deviceBusy] : []) {
      switch step {
      case 6 where isLocked: expectLockedOut(inputs[number].device)
      case 0: try chosen.setExposureMode(.continuousAutoExposure)
      case 1:
        try chosen.setExposureModeCustom(
          duration: MediaTime(microseconds: Int64.random(in: 100...40_000, using: &random)),
          gain: nil, rounding: .towardZero)
      case 2: try chosen.setFocusModeLocked(lensPosition: 0.5)
      case 3: try chosen.setFocusMode(.continuousAutoFocus)
      case 4: _ = try chosen.setVideoZoomFactor(1.5)
      default:
        _ = try (chosen.exposureMode, chosen.exposureDuration, chosen.focusMode)
        _ = try (chosen.lensPosition, chosen.videoZoomFactor, chosen.whiteBalanceMode)
      }
      settingCount += 1
      lockedSettingCount += isLocked ? 1 : 0
    }
  }

  /// Sets a control as another program would, and expects that the lock refuses it.
  private func expectLockedOut(_ camera: CaptureDevice) {
    // A lock does not outlive the disconnection of its camera.
    guard (try? lock?.node?.currentFormat()) != nil else { return }
    do {
      _ = try DeviceSystem.$calls.withValue(machine) {
        try VideoDevice(opening: camera.address).set(.gain, to: 11)
      }
      Issue.record("sequence \(seed): a lock did not exclude another program")
    } catch {
      // A device that was unplugged meanwhile, or lacks the control, fails for every program.
      let kind = (error as? CallFailure)?.kind
      #expect([.busy, .unplugged, .notSupported].contains(kind), "\(seed): \(error)")
    }
  }

  /// Allows only errors caused by the machine's faults and by another program's lock.
  private func expectingFaults(
    _ others: [MediaError.Code] = [], except exceptions: [MediaError.Code] = [],
    _ body: () async throws -> Void
  ) async {
    do { try await body() } catch let error as MediaError {
      let codes = [.deviceLost, .deviceFailed, .deviceBusy, .badConfiguration] + others
      #expect(
        codes.contains(error.code) && !exceptions.contains(error.code),
        "sequence \(seed): \(error)")
    } catch { Issue.record(error) }
  }

  private func check() {
    for input in inputs {
      let current = input.pool
      if !pool.contains(where: { $0 === current }) { pool.append(current) }
    }
    for pool in pool { #expect(pool.heldCount <= pool.capacity) }
    guard let session else { return }
    for connection in session.connections {
      #expect(session.inputs.contains { $0 === connection.input })
      #expect(session.outputs.contains { $0 === connection.output })
    }
  }

  func finish() async throws {
    lock = nil
    controls = []
    for _ in 0..<25 { await expectingFaults { try await self.session?.commitConfiguration() } }
    await session?.stopRunning()
    #expect(session?.isRunning == false && session?.isInterrupted == false)
    for output in outputs {
      session?.removeOutput(output)
      #expect(output.ledger.isBalanced)
    }
    kept.removeAll()
    outputs.removeAll()
    // The events end with the session, and an output's thread with the output.
    session = nil
    for pool in pool {
      while pool.heldCount > 0 { await Task.yield() }
      #expect(pool.heldCount == 0)
    }
  }
}
