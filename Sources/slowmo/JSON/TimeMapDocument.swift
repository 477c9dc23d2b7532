// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The time map of a movie, as `info` describes it.
struct TimeMapDocument: Encodable {
  /// Consecutive frames of one recording that play at one speed, or along one ramp.
  struct Segment: Encodable {
    let firstIndex: Int
    let lastIndex: Int
    /// The index of the recording; nil for frames of unknown origin.
    let recording: Int?
    /// Seconds of capture time per second of the movie; nil where it varies.
    let timeScale: Rational?
    /// Whether the recording goes on from the segment before without a cut.
    let continued: Bool
  }

  /// A recording from which frames come.
  struct Recording: Encodable {
    /// The identity in hexadecimal digits.
    let id: String
    /// The origin of its capture times: `recording`, `tag` or `file`.
    let timeSource: CaptureClock.Source
    let lossesKnown: Bool
  }

  let segments: [Segment]
  let recordings: [Recording]

  init(_ map: TimeMap) {
    segments = map.segments.map {
      Segment(
        firstIndex: $0.frames.lowerBound, lastIndex: $0.frames.upperBound - 1,
        recording: $0.recording, timeScale: $0.timeScale, continued: $0.isContinued)
    }
    recordings = map.recordings.map { recording in
      let digits = String(recording.identity, radix: 16)
      let source: CaptureClock.Source =
        switch recording.basis {
        case .driver: .recording
        case .statedRate: .tag
        case .fileTimes: .file
        }
      return Recording(
        id: String(repeating: "0", count: 16 - digits.count) + digits, timeSource: source,
        lossesKnown: recording.knowsLosses)
    }
  }

  /// The map as a line of text.
  var line: String {
    let scales = Set(segments.map(\.timeScale))
    let speed =
      scales.count == 1
      ? (scales.first ?? nil).map { scale in
        "1 s of the movie shows \(scale.denominator == 1 ? "\(scale.numerator)" : "\(scale)") s"
      } ?? "at varying speed"
      : "at several speeds"
    let count = recordings.count == 1 ? "1 recording" : "\(recordings.count) recordings"
    return "time map: \(count), \(speed)"
  }
}
