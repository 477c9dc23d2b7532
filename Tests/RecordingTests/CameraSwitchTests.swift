// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

struct CameraSwitchTests {
  @Test func `Replacing the camera of a session ends its recording`()
    throws
  {
    let scratch = try Scratch()
    let inputs = try ["synthetic:128x96@240", "synthetic:192x96@240"].map { name in
      let camera = try CaptureDevice.named(name)
      return try DeviceInput(
        device: camera, format: camera.format(matching: ModeRequest(parsing: "/mjpg")))
    }
    let session = CaptureSession(inputs[0])
    let takes = [scratch.file("first.mov"), scratch.file("second.mov")]
    let movie = MovieFileOutput(settings: RecordingSettings(path: takes[0]))
    try session.addOutput(movie)
    try session.startRunning()
    let failure = Mutex<String?>(nil)
    var switcher: BlockingThread?
    let report = try movie.record { progress in
      guard progress.stored >= 30, switcher == nil else { return }
      switcher = try? BlockingThread {
        do {
          session.beginConfiguration()
          session.removeInput(inputs[0])
          try session.addInput(inputs[1])
          try session.commitConfiguration()
        } catch { failure.withLock { $0 = "\(error)" } }
      }
    }
    switcher?.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(report.problem == nil && report.isPlayable && report.ledger.isBalanced)
    #expect(report.stoppedBy.rawValue == "reconfigured" && report.ledger.stored >= 30)
    let first = try #require(try Asset(path: takes[0]).videoTrack)
    #expect(first.frameCount == Int(report.ledger.stored))
    #expect(session.isRunning)
    session.removeOutput(movie)
    var settings = RecordingSettings(path: takes[1])
    settings.limit = CaptureLimit(frameCount: 20)
    _ = try MovieFileOutput(session: session, settings: settings).record()
    let widths = try takes.map { try Asset(path: $0).videoTrack?.width }
    #expect(widths == [128, 192])
    session.stopRunning()
  }

  /// An event that changes a session while it records.
  enum Change: CaseIterable {
    case preset, removalOfCamera, removalOfOutput, stopOfSession, stopOfOutput, otherProgram, unplug

    var faults: String {
      switch self {
      case .otherProgram: "fail=DQBUF:EBUSY@60*1"
      case .unplug: "unplug=60"
      default: ""
      }
    }

    /// Whether the change is a fault of the camera, not a call of the program.
    var isFault: Bool { self == .otherProgram || self == .unplug }

    var reason: String {
      switch self {
      case .preset, .removalOfCamera, .removalOfOutput: "reconfigured"
      case .stopOfSession, .stopOfOutput: "stopped"
      case .otherProgram: "interrupted"
      case .unplug: "device_lost"
      }
    }
  }

  @Test(arguments: Change.allCases)
  func `A take reports why its session or camera stopped`(change: Change) throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("hfr-usb mjpegbytes=4000 \(change.faults)")
    machine.pace()
    let input = try machine.input()
    let session = CaptureSession(input)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.verifiesFrameRate = false
    let movie = MovieFileOutput(settings: settings)
    try session.addOutput(movie)
    // A camera with a fault is started by the take, so that the fault occurs during the take.
    if !change.isFault { try session.startRunning() }
    let failure = Mutex<String?>(nil)
    var thread: BlockingThread?
    let report = try movie.record { progress in
      guard progress.stored >= 10, thread == nil else { return }
      thread = try? BlockingThread {
        do {
          switch change {
          case .preset: try session.setSessionPreset(.low)
          case .removalOfCamera: session.removeInput(input)
          case .removalOfOutput: session.removeOutput(movie)
          case .stopOfSession: session.stopRunning()
          case .stopOfOutput: movie.stop()
          case .otherProgram, .unplug: break
          }
        } catch { failure.withLock { $0 = "\(error)" } }
      }
    }
    thread?.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(report.stoppedBy.rawValue == change.reason)
    #expect(report.isPlayable && report.ledger.isBalanced && report.ledger.stored >= 10)
    #expect((report.problem != nil) == change.isFault)
    #expect(try Asset(path: report.path).videoTrack?.frameCount == Int(report.ledger.stored))
    #expect(session.isRunning == [.preset, .removalOfOutput, .stopOfOutput].contains(change))
    session.stopRunning()
  }
}
