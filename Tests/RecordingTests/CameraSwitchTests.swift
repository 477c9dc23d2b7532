// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

struct CameraSwitchTests {
  @Test func `A take whose camera is exchanged is finished, and the next one is of the new camera`()
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
    #expect(report.stoppedBy == .signal && report.ledger.stored >= 30)
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
}
