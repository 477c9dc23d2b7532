// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// What becomes of sound at a speed that `low-quality` does not have.
public enum UnsupportedSpeedPolicy: Hashable, Sendable {
  /// It is refused, with `.speedOutOfRange`.
  case refused
  /// It plays at the nearest speed there is, from its start on: what is left over when its time is
  /// up is not heard, and what is missing until then is silence. The report says where.
  case snapped
}

/// Sound that plays at another speed than was asked for.
public struct SnappedSpeed: Hashable, Sendable, Codable {
  /// When it plays, in the composition.
  public let target: TimeRange
  /// Source seconds for each second of output, as asked for.
  public let requested: Speed
  /// Source seconds for each second of output, as played.
  public let played: Speed
}

extension AudioRetimer {
  /// The speeds that `low-quality` has: 1/2, 2/3, 4/5, 1, 5/4, 3/2 and 2.
  ///
  /// A speed within a millionth of one, such as 0.666667, is one, and played as it is.
  public static let lowQualitySpeeds: [Speed] = [
    (1, 2), (2, 3), (4, 5), (1, 1), (5, 4), (3, 2), (2, 1),
  ]
  .map { above, below in Speed(above, over: below) }

  /// The nearest of ``lowQualitySpeeds``, by the quotient of the two; of two as near, the one
  /// nearer to 1.
  ///
  /// - Returns: Nil when `speed` is one of them.
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
  /// The segments as they play at speeds that `low-quality` has, each other one cut or followed by
  /// silence, and what was changed; or an error with `.speedOutOfRange` when others are refused.
  ///
  /// A ramp is followed by 25 lines a second.
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
      let asked = try exactly("the speed of \(mapping.target.displayText)") {
        () throws(MediaError) in
        try mapping.speed()
      }
      guard let speed = AudioRetimer.snapped(asked) else {
        played.append(piece)
        continue
      }
      guard others == .snapped else {
        throw MediaError(
          .speedOutOfRange,
          "low-quality sound plays at 1/2, 2/3, 4/5, 1, 5/4, 3/2 and 2 only, and \(mapping.target.displayText) "
            + "is at \(asked); \(speed) is the nearest")
      }
      changes.append(SnappedSpeed(target: mapping.target, requested: asked, played: speed))
      played.append(
        try exactly("the sound of \(mapping.target.displayText) at \(speed)") {
          () throws(MediaError) in
          // As much as plays in the time there is, and no more than there is to play.
          let room = try (mapping.target.duration * speed.fraction).checked("what plays")
          let length = min(mapping.source.duration, room)
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
