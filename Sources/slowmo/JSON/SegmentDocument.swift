// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON object of one segment: its source range, target range and speed.
struct SegmentDocument: Encodable {
  struct Range: Encodable {
    let start: String
    let end: String

    init(_ start: Rational, _ end: Rational) {
      self.start = start.description
      self.end = end.description
    }
  }
  /// The path of the source file; nil for a gap.
  let file: String?
  let source: Range?
  let target: Range
  /// The playback speed of the segment.
  ///
  /// For a ramp, the mean speed.
  let speed: Speed?
  /// The kind of motion: `constant`, `ramp`, `hold` or `empty`.
  let motion: String
  let reversed: Bool
  /// The speeds at the start and the end of a ramp.
  private(set) var startSpeed: Rational?
  private(set) var endSpeed: Rational?

  /// The segment as a text line.
  let line: String

  enum CodingKeys: CodingKey {
    case file, source, target, speed, motion, reversed, startSpeed, endSpeed
  }

  init(_ segment: TrackSegment) throws {
    file = segment.source?.path
    source = segment.mapping.map { Range($0.sourceStart, $0.sourceEnd) }
    target = Range(segment.target.start.seconds, segment.target.end.seconds)
    speed = try segment.speed()
    reversed = segment.mapping?.isReversed ?? false
    var summary = "speed \(speed?.description ?? "none")"
    switch segment.mapping?.motion {
    case .constant: motion = "constant"
    case .hold: motion = "hold"
    case nil: motion = "empty"
    case .ramp:
      motion = "ramp"
      startSpeed = try segment.mapping?.speed(at: segment.target.start.seconds)
      endSpeed = try segment.mapping?.speed(at: segment.target.end.seconds)
      summary = "speed \(Self.text(startSpeed)) to \(Self.text(endSpeed))"
    }
    let from = segment.mapping.map(Self.summary) ?? "a gap"
    line = "plan: \(from) at \(segment.target.displayText), \(summary)"
  }

  private static func summary(_ mapping: PlaybackMapping) -> String {
    let start = "source \(mapping.sourceStart.displayText)"
    if mapping.motion == .hold { return "\(start) is frozen" }
    return
      "\(start)..\(mapping.sourceEnd.displayText) plays\(mapping.isReversed ? " backwards" : "")"
  }

  /// Returns a speed as text.
  ///
  /// It is a fraction if the denominator is below 10,000, otherwise a decimal.
  private static func text(_ speed: Rational?) -> String {
    speed.map { $0.denominator < 10_000 ? $0.description : $0.displayText } ?? ""
  }
}
