// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankRecording
import Synchronization

/// A session with three outputs: a movie, a fast data output, and a slow data output that takes 20
/// ms per frame.
///
/// The test accounts for every frame of every output.
struct ThreeOutputs {
  /// The counts of frames at one data output.
  private struct Seen {
    var count = 0
    var isInOrder = true
    /// The number of frames whose address is not that of the driver's buffer.
    var copies = 0
    var last: UInt32?
  }

  let outcome: Outcome
  private let report: RecordingReport
  private let ledgers: [DataOutputLedger]
  private let seen: [Seen]

  init(frames: Int64) throws {
    let (input, driver) = try counted(input("synthetic", "1280x720@240/mjpg"))
    let session = CaptureSession(input)
    let seen = (0..<2).map { _ in Box() }
    let outputs = [VideoDataOutput(), VideoDataOutput()]
    for (number, output) in outputs.enumerated() {
      try session.addOutput(output)
      let box = seen[number]
      output.setSampleBufferHandler { sample in
        box.note(sample, of: driver)
        if number == 1 { usleep(20_000) }
      }
    }
    outputs[0].alwaysDiscardsLateVideoFrames = false
    var settings = RecordingSettings(path: "\(temporaryDirectory)/three-outputs-\(getpid()).mov")
    settings.overwrites = true
    settings.limit = CaptureLimit(frameCount: frames)
    defer { unlink(settings.path) }
    report = try MovieFileOutput(session: session, settings: settings).record()
    // Frames that still wait are delivered after the stop. They are released when their handler has
    // returned.
    while outputs.contains(where: { $0.ledger.waiting > 0 || $0.keptCount > 0 }) { usleep(1_000) }
    ledgers = outputs.map(\.ledger)
    self.seen = seen.map(\.value)
    let requests = driver.requests.dropFirst(warmUp)
    outcome = Outcome(frames: requests.count, requests: requests.reduce(0, +))
  }

  private final class Box: Sendable {
    private let seen = Mutex(Seen())
    var value: Seen { seen.withLock { $0 } }

    func note(_ sample: SampleBuffer, of driver: CountingDriver) {
      let number = sample.attachments.sequence
      let isCopy = sample.withBytes { $0.baseAddress } != driver.address(ofFrame: number)
      seen.withLock { seen in
        seen.count += 1
        seen.copies += isCopy ? 1 : 0
        if let last = seen.last, number != last &+ 1 { seen.isInOrder = false }
        seen.last = number
      }
    }
  }

  /// The number of frames lost by the movie or by the fast output.
  var lost: Int64 { report.ledger.dropped + (ledgers[0].offered - ledgers[0].delivered) }

  /// Whether every output's ledger balances, and no data output received a copied frame.
  var isAccounted: Bool {
    report.ledger.isBalanced && report.problem == nil && ledgers.allSatisfy(\.isBalanced)
      && zip(ledgers, seen).allSatisfy { $0.delivered == $1.count }
      && seen.allSatisfy { $0.copies == 0 }
      && (lost > 0 || seen[0].isInOrder)
  }

  var description: String {
    let reasons = ledgers[1].dropped.sorted { $0.key.rawValue < $1.key.rawValue }
      .map { "\($0.value) \($0.key.rawValue)" }.joined(separator: ", ")
    return """
      three outputs: movie: \(report.ledger.stored) of \(report.ledger.expected) frames stored, \
      \(report.ledger.dropped) lost
      three outputs: fast: \(ledgers[0].delivered) of \(ledgers[0].offered) frames, \
      \(seen[0].isInOrder ? "each in order" : "with gaps")
      three outputs: 20 ms a frame: \(ledgers[1].delivered) of \(ledgers[1].offered) frames; \
      dropped: \(reasons); adds up: \(ledgers[1].isBalanced)
      three outputs: copies to data outputs: \(seen.map(\.copies).reduce(0, +)) in \
      \(seen.map(\.count).reduce(0, +)) frames handed over
      """
  }
}
