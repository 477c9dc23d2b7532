// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRecording
import Synchronization

/// A movie that is recorded with a preview.
///
/// The preview has marks and a delayed mirror, and a thread draws it 60 times a second.
struct PreviewedTake {
  let outcome: Outcome
  private let report: RecordingReport
  private let ledger: DataOutputLedger
  private let mirrorLedger: DataOutputLedger

  init(frames: Int64) throws {
    let (input, driver) = try counted(input("synthetic", "640x480@240/mjpg"))
    let session = CaptureSession(input)
    let preview = try VideoPreview(session: session)
    let mirror = try DelayedVideoPreview(session: session, delay: MediaTime(1, over: 4))
    let isOver = Flag()
    try BlockingThread.started {
      while !isOver.value {
        let frame = try? preview.nextFrame(as: .bgra, maximumWidth: 320, maximumHeight: 240)
        if var image = frame?.image {
          _ = LumaHistogram(image)
          PreviewAids(showsFocusPeaking: true, showsZebra: true).apply(to: &image)
        }
        let now = MediaTime(microseconds: MonotonicClock.microseconds())
        _ = try? mirror.nextFrame(as: .bgra, maximumWidth: 320, maximumHeight: 240, at: now)
        usleep(16_667)
      }
    }.detach()
    var settings = RecordingSettings(path: "\(temporaryDirectory)/previewed-take-\(getpid()).mov")
    settings.overwrites = true
    settings.limit = CaptureLimit(frameCount: frames)
    defer { unlink(settings.path) }
    report = try MovieFileOutput(session: session, settings: settings).record()
    isOver.value = true
    ledger = preview.ledger
    mirrorLedger = mirror.ledger
    let requests = driver.requests.dropFirst(warmUp)
    outcome = Outcome(frames: requests.count, requests: requests.reduce(0, +))
  }

  private final class Flag: Sendable {
    private let flag = Atomic<Bool>(false)
    var value: Bool {
      get { flag.load(ordering: .acquiring) }
      set { flag.store(newValue, ordering: .releasing) }
    }
  }

  /// The number of frames that the movie lost.
  var lost: Int64 { report.ledger.dropped }

  /// Whether the ledgers of the movie and the preview balance, and the preview showed frames.
  var isAccounted: Bool {
    report.ledger.isBalanced && report.problem == nil && ledger.isBalanced && ledger.delivered > 0
      && mirrorLedger.isBalanced && mirrorLedger.offered == ledger.offered
  }

  var description: String {
    """
    previewed take: movie: \(report.ledger.stored) of \(report.ledger.expected) frames stored, \
    \(report.ledger.dropped) lost; preview: \(ledger.delivered) of \(ledger.offered) frames shown; mirror: \(mirrorLedger.delivered)
    """
  }
}
