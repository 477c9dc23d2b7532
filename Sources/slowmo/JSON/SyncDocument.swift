// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `sync`.
struct SyncDocument: Encodable, TextDocument {
  /// The time offset of one recording to the first recording.
  struct Pair: Encodable {
    let a: String
    let b: String
    let offset: MediaTime
    let uncertainty: MediaTime
    let method: RecordingOffset.Method
    let confidence: Double
    let at: MediaTime
    let driftPpm: Double?
    let matchCount: Int

    init(_ a: String, _ b: String, _ measured: RecordingOffset) {
      (self.a, self.b) = (a, b)
      (offset, uncertainty) = (measured.offset, measured.uncertainty)
      (method, confidence) = (measured.method, measured.confidence)
      (at, driftPpm, matchCount) = (measured.time, measured.drift, measured.matchCount)
    }

    var line: String {
      let drift = driftPpm.map { ", drift \(decimal($0, 2)) ppm" } ?? ""
      return "\(b): starts at \(decimal(offset.doubleValue, 6)) s of \(a), "
        + "± \(decimal(uncertainty.doubleValue * 1e3, 3)) ms (\(method.rawValue), "
        + "confidence \(decimal(confidence, 2))\(drift))"
    }
  }

  /// A recording, and the time in which it was measured.
  struct Recording: Encodable {
    let file: String
    /// Nil without video.
    let timeSource: CaptureClock.Source?
    let timeScale: Rational?
    let timeAssumption: CaptureClock.Assumption?

    init(_ file: String, _ clock: CaptureClock?) {
      self.file = file
      (timeSource, timeScale) = (clock?.source, clock?.timeScale)
      timeAssumption = clock?.assumption
    }
  }

  let schema = schemaName("sync")
  let clock: CaptureClock.Choice
  let recordings: [Recording]
  let pairs: [Pair]
  let output: String?
  /// The faults of the files that did not prevent reading them, each after the name of its file.
  let notes: [String]
  let dryRun: Bool

  var lines: [String] { pairs.map(\.line) + [dryRun ? nil : output].compactMap(\.self) }
}
