// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankCapture
@testable import OvercrankRecording

/// The reason why a take stopped, which does not depend on whether its file is playable.
struct StopReasonTests {
  /// A limit of a recording, and the stop reason of a take that reaches it.
  enum Limit: CaseIterable {
    case duration, frames, size

    var reason: StopReason {
      switch self {
      case .duration: .duration
      case .frames: .frames
      case .size: .maxSize
      }
    }

    func set(on settings: inout RecordingSettings) {
      switch self {
      case .duration: settings.limit = CaptureLimit(duration: MediaTime(1, over: 5))
      case .frames: settings.limit = CaptureLimit(frameCount: 20)
      case .size: settings.maxRecordedFileSize = 150_000
      }
    }
  }

  @Test(arguments: Limit.allCases)
  func `Reaching a limit of a take is not reported as an error`(limit: Limit) throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    let (report, _) = try camera.take(try camera.frames(0..<100), to: scratch.file("take.mov")) {
      limit.set(on: &$0)
    }
    #expect(report.stoppedBy == limit.reason && report.stoppedBy.isLimit)
    #expect(report.isPlayable && report.problem == nil)
    #expect(report.ledger.stored > 0 && report.ledger.stored < 100)
  }

  @Test func `A take whose camera fails is playable and reports an error`() throws {
    let scratch = try Scratch()
    let camera = try ScriptedCamera(100)
    for (code, reason) in [
      (MediaError.Code.deviceLost, StopReason.deviceLost), (.deviceBusy, .interrupted),
      (.deviceFailed, .error),
    ] {
      let steps = try camera.frames(0..<30) + [.failure(MediaError(code, "the camera"))]
      let (report, _) = try camera.take(steps, to: scratch.file("\(reason).mov"))
      #expect(report.stoppedBy == reason && !report.stoppedBy.isLimit)
      #expect(report.isPlayable && report.problem?.code == code)
      #expect(try Asset(path: report.path).videoTrack?.frameCount == 30)
    }
  }
}
