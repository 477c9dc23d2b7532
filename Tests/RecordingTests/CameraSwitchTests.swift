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

  /// A change of a camera's mode during a take.
  struct ModeChange: CustomTestStringConvertible {
    let before: String
    let after: String
    /// Whether the take continues in its file.
    let goesOn: Bool
    /// Whether the session runs before the take.
    var isRunning = true

    var testDescription: String { "\(before) to \(after), running: \(isRunning)" }
  }

  @Test(arguments: [
    ModeChange(before: "640x480@240/mjpg", after: "640x480@120/mjpg", goesOn: true),
    ModeChange(
      before: "640x480@120/mjpg", after: "640x480@480/mjpg", goesOn: true, isRunning: false),
    ModeChange(before: "640x480@240/mjpg", after: "640x480@240/yuyv", goesOn: false),
    ModeChange(before: "640x480@240/mjpg", after: "1280x720@240/mjpg", goesOn: false),
    ModeChange(
      before: "640x480@240/mjpg", after: "1280x720@240/mjpg", goesOn: false, isRunning: false),
  ])
  func `A take continues if only the frame rate changes`(change: ModeChange) throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("any-mode mjpegbytes=4000")
    machine.pace()
    let (input, after) = try DeviceSystem.$calls.withValue(machine) {
      let camera = try CaptureDevice.named("/dev/fakevideo0")
      let formats = try camera.formats()
      func format(_ name: String) throws -> CaptureFormat {
        try #require(formats.first { $0.id == name }, "\(formats.map(\.id))")
      }
      return (
        try DeviceInput(device: camera, format: format(change.before)), try format(change.after)
      )
    }
    let (before, name) = (input.negotiatedFrameRate, input.format.id)
    let session = CaptureSession(input)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.verifiesFrameRate = false
    let movie = MovieFileOutput(settings: settings)
    try session.addOutput(movie)
    if change.isRunning { try session.startRunning() }
    let failure = Mutex<String?>(nil)
    let isChanged = Atomic(false)
    var thread: BlockingThread?
    var storedAtChange: Int64 = 0
    let report = try movie.record { progress in
      if progress.stored >= 20, thread == nil {
        thread = try? BlockingThread {
          do { try input.setActiveFormat(after) } catch { failure.withLock { $0 = "\(error)" } }
          isChanged.store(true, ordering: .releasing)
        }
      }
      if isChanged.load(ordering: .acquiring), storedAtChange == 0 {
        storedAtChange = progress.stored
      }
      // Frames of the old stream may still wait in the queue.
      if storedAtChange > 0, progress.stored >= storedAtChange + 200 { movie.stop() }
    }
    thread?.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(report.stoppedBy == (change.goesOn ? .stopped : .reconfigured))
    #expect(report.isPlayable && report.ledger.isBalanced && report.problem == nil)
    #expect(report.negotiatedFrameRate == before && report.mode == name)
    #expect(report.warnings.contains { $0.contains("was set to") } == change.goesOn)
    let track = try #require(try Asset(path: report.path).videoTrack)
    #expect(track.frameCount == Int(report.ledger.stored))
    let times = try (0..<track.frameCount).map { try track.frames.time(ofFrame: Int64($0)) }
    let steps = zip(times, times.dropFirst()).map { $1.seconds - $0.seconds }
    let periods = [before, after.maxFrameRate].map { $0.frameDuration.doubleValue }
    func isPeriod(_ step: Rational, _ number: Int) -> Bool {
      abs(step.doubleValue / periods[number] - 1) < 0.05
    }
    let first = steps.prefix { isPeriod($0, 0) }.count
    #expect(first >= 19 && change.goesOn == (first < steps.count))
    if change.goesOn, first < steps.count {
      // One longer step lies between the streams. The frames lost in it are counted.
      let last = steps.reversed().prefix { isPeriod($0, 1) }.count
      #expect(first + last + 1 == steps.count && last >= 19, "\(steps.map(\.doubleValue))")
      #expect(report.gaps.count <= 1 && report.measuredFrameRate == nil)
      let missing = Int64((steps[first].doubleValue / periods[0]).rounded()) - 1
      #expect(abs(report.ledger.lostDevice - missing) <= 1)
    }
    session.stopRunning()
  }

  @Test(arguments: [true, false])
  func `A take continues if the camera cannot start at another rate`(isRunning: Bool) throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("any-mode mjpegbytes=4000 streamon-fails=2")
    machine.pace()
    let input = try machine.input()
    let other = try #require(
      input.knownFormats().first {
        $0.fourcc == input.format.fourcc && $0.width == input.format.width
          && $0.height == input.format.height && $0.id != input.format.id
      })
    let before = input.format.id
    let session = CaptureSession(input)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.verifiesFrameRate = false
    let movie = MovieFileOutput(settings: settings)
    try session.addOutput(movie)
    if isRunning { try session.startRunning() }
    let code = Mutex<MediaError.Code?>(nil)
    var thread: BlockingThread?
    var storedAtChange: Int64 = 0
    let report = try movie.record { progress in
      if progress.stored >= 20, thread == nil {
        thread = try? BlockingThread {
          do throws(MediaError) { try input.setActiveFormat(other) } catch {
            let found = error.code
            code.withLock { $0 = found }
          }
        }
      }
      if code.withLock({ $0 != nil }), storedAtChange == 0 { storedAtChange = progress.stored }
      if storedAtChange > 0, progress.stored >= storedAtChange + 100 { movie.stop() }
    }
    thread?.join()
    #expect(code.withLock { $0 } == .deviceFailed && input.format.id == before)
    #expect(report.stoppedBy == .stopped && report.problem == nil && report.isPlayable)
    #expect(report.ledger.isBalanced && report.warnings.isEmpty)
    #expect(try Asset(path: report.path).videoTrack?.frameCount == Int(report.ledger.stored))
    session.stopRunning()
  }

  @Test func `A camera set by a preset does not join a take of another`() throws {
    let scratch = try Scratch()
    let machine = try FakeVideoSystemCalls("any-mode mjpegbytes=4000\nany-mode mjpegbytes=4000")
    machine.pace()
    let inputs = try DeviceSystem.$calls.withValue(machine) {
      try (0..<2).map { number in
        let camera = try CaptureDevice.named("/dev/fakevideo\(number)")
        let formats = try camera.formats()
        let large = try #require(formats.first { $0.width == 1_920 })
        return try DeviceInput(device: camera, format: large)
      }
    }
    let session = CaptureSession(inputs[0])
    try session.setSessionPreset(.vga640x480)
    var settings = RecordingSettings(path: scratch.file("take.mov"))
    settings.verifiesFrameRate = false
    let movie = MovieFileOutput(settings: settings)
    try session.addOutput(movie)
    try session.startRunning()
    let failure = Mutex<String?>(nil)
    var thread: BlockingThread?
    let report = try movie.record { progress in
      guard progress.stored >= 20, thread == nil else { return }
      thread = try? BlockingThread {
        do { try session.switchCamera(to: inputs[1]) } catch {
          failure.withLock { $0 = "\(error)" }
        }
      }
    }
    thread?.join()
    #expect(failure.withLock { $0 } == nil && inputs[1].format.width == 640)
    #expect(report.stoppedBy == .reconfigured && report.problem == nil)
    #expect(session.runningInputs.count == 1 && session.runningInputs.first === inputs[1])
    session.removeOutput(movie)
    let output = VideoDataOutput()
    try session.addOutput(output)
    #expect(output.withNextFrame { _ in true } == true)
    session.stopRunning()
  }
}
