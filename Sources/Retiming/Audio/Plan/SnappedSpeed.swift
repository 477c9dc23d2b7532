// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The policy for speeds that `low-quality` does not support.
public enum UnsupportedSpeedPolicy: Hashable, Sendable {
  /// Throws `.speedOutOfRange`.
  case refused
  /// Plays at the nearest supported speed from the start of the range.
  ///
  /// If the supported speed is lower, the end of the audio is cut off; if it is higher, silence
  /// fills the end of the range. The report lists the changed ranges.
  case snapped
}

/// A range that plays at another speed than requested.
public struct SnappedSpeed: Hashable, Sendable, Codable {
  /// The range in composition time.
  public let target: TimeRange
  /// The requested speed in source seconds per output second.
  public let requested: Speed
  /// The actual speed in source seconds per output second.
  public let played: Speed
}

extension AudioRetimer {
  /// The speeds of `low-quality`: 1/2, 2/3, 4/5, 1, 5/4, 3/2 and 2.
  ///
  /// A speed that differs from one of them by at most one part per million, such as 0.666667,
  /// counts as supported and plays as requested.
  public static let lowQualitySpeeds: [Speed] = [
    (1, 2), (2, 3), (4, 5), (1, 1), (5, 4), (3, 2), (2, 1),
  ]
  .map { above, below in Speed(above, over: below) }

  /// Returns the supported speed closest to `speed` by ratio.
  ///
  /// If two speeds are equally close, the one closer to 1 is returned.
  ///
  /// - Returns: Nil if `speed` is supported.
  static func snapped(_ speed: Speed) -> Speed? {
    let value = speed.fraction.doubleValue
    func distance(_ other: Speed) -> Double {
      max(value / other.fraction.doubleValue, other.fraction.doubleValue / value)
    }
    let fromOne = lowQualitySpeeds.sorted {
      max($0.fraction.doubleValue, 1 / $0.fraction.doubleValue)
        < max($1.fraction.doubleValue, 1 / $1.fraction.doubleValue)
    }
    guard let nearest = fromOne.min(by: { distance($0) < distance($1) }) else { return nil }
    return distance(nearest) <= 1.000_001 ? nil : nearest
  }
}

extension AudioPlan {
  /// Replaces unsupported speeds of segments with supported ones, cutting or padding each segment.
  ///
  /// First, each ramp is divided into pieces of constant speed, 25 per second.
  ///
  /// - Throws: `MediaError` with `.speedOutOfRange` if the policy refuses unsupported speeds.
  static func snapped(
    _ segments: [AudioSegment], _ others: UnsupportedSpeedPolicy
  ) throws(MediaError) -> (segments: [AudioSegment], changes: [SnappedSpeed]) {
    var played: [AudioSegment] = []
    var changes: [SnappedSpeed] = []
    var pieces: [AudioSegment] = []
    for segment in segments {
      let mapping = segment.mapping
      pieces += try exactly("the ramp to \(mapping.target.displayText)") { () throws(MediaError) in
        try mapping.linearPieces(perSecond: 25, atLeast: 8)
          .map { AudioSegment($0, of: segment.source) }
      }
    }
    for piece in pieces {
      guard let mapping = piece.mapping.line else {
        played.append(piece)
        continue
      }
      let requested = try exactly("the speed of \(mapping.target.displayText)") {
        () throws(MediaError) in
        try mapping.speed()
      }
      guard let speed = AudioRetimer.snapped(requested) else {
        played.append(piece)
        continue
      }
      guard others == .snapped else {
        throw MediaError(
          .speedOutOfRange,
          "low-quality audio plays at 1/2, 2/3, 4/5, 1, 5/4, 3/2 and 2 only, and \(mapping.target.displayText) "
            + "is at \(requested); \(speed) is the nearest",
          recovery: Recovery(
            "choose another algorithm, or the nearest supported speed; mute supports any speed",
            .change(.pitchAlgorithm), .change(.otherAudioSpeeds)))
      }
      changes.append(SnappedSpeed(target: mapping.target, requested: requested, played: speed))
      played.append(
        try exactly("the audio of \(mapping.target.displayText) at \(speed)") {
          () throws(MediaError) in
          // If the snapped speed is lower than requested, only a part of the source range fits into
          // the target range.
          let available = try (mapping.target.duration * speed.fraction).checked("what plays")
          let length = min(mapping.source.duration, available)
          let source = try MediaTime(length)
          return AudioSegment(
            PlaybackMapping(
              try TimeMapping(
                source: TimeRange(start: mapping.source.start, duration: source),
                target: TimeRange(
                  start: mapping.target.start,
                  duration: MediaTime(length / speed.fraction)))),
            of: piece.source)
        })
    }
    return (played, changes)
  }
}
