// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankExport
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankRecording
import Synchronization

/// Clips around triggers, whose replays are exported while the capture continues.
struct ReplayedClips {
  let outcome: Outcome
  private let report: TriggeredReport
  private let replayed: Int
  private static let count = 3

  init() throws {
    let (input, driver) = try counted(input("synthetic", "1280x720@240/mjpg"))
    let session = CaptureSession(input)
    @Sendable func path(_ number: Int) -> String {
      "\(temporaryDirectory)/replayed-\(getpid())-\(number)"
    }
    var settings = RecordingSettings(path: path(0) + ".mov")
    settings.overwrites = true
    let movie = try MovieFileOutput(session: session, settings: settings)
    var triggers = TriggerSettings(
      preDuration: MediaTime(1, over: 10), postDuration: MediaTime(4, over: 10))
    triggers.repeats = true
    triggers.quietPeriod = .zero
    triggers.maximumClipCount = Self.count
    triggers.clipPath = { path($0) + ".mov" }
    let done = Mutex(0)
    let replays = ReplayExporter(speed: Speed(1, over: 8), overwrites: true) { replay in
      if case .success = replay.result { done.withLock { $0 += 1 } }
    }
    var number = 0
    report = try movie.record(on: triggers) { event in
      switch event {
      case .waiting: movie.trigger(.call)
      case .finished(let clip):
        number += 1
        replays.add(clip.path, to: path(number) + ".replay.mp4")
        movie.trigger(.call)
      default: break
      }
    }
    replays.finish()
    for number in 0...Self.count {
      unlink(path(number) + ".mov")
      unlink(path(number) + ".replay.mp4")
    }
    replayed = done.withLock { $0 }
    let requests = driver.requests.dropFirst(warmUp)
    outcome = Outcome(frames: requests.count, requests: requests.reduce(0, +))
  }

  /// Frames that the capture lost.
  var lost: Int64 { report.ledger.dropped }

  /// Whether the ledger balances, and each clip has its replay.
  var isAccounted: Bool {
    report.ledger.isBalanced && report.problem == nil && report.clips.count == Self.count
      && replayed == Self.count
  }

  var description: String {
    """
    replayed clips: \(report.clips.count) clips, \(report.ledger.dropped) of \
    \(report.ledger.expected) frames lost; \(replayed) replays
    """
  }
}
