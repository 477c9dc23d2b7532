// SPDX-License-Identifier: Apache-2.0

/// A source range, and the composition range that it fills at constant speed.
///
/// The counterpart of `CMTimeMapping`.
///
/// Results never overflow if the two ranges and the time to map meet these conditions:
///
/// - No time is negative, and no timescale is above 1 000 000.
/// - Every ``MediaTime/value`` is below 2^32. Alternatively, each range uses a single timescale,
///   and every value is below 2^53.
public struct TimeMapping: Hashable, Sendable {
  /// The played range, in source time, longer than zero.
  public let source: TimeRange
  /// The range that the source range fills, in composition time, longer than zero.
  public let target: TimeRange

  /// Makes a mapping between two ranges that are both longer than zero.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when one of the ranges is empty.
  public init(source: TimeRange, target: TimeRange) throws(MediaError) {
    guard !source.isEmpty, !target.isEmpty else {
      throw MediaError(
        .emptyRange,
        "a mapping from \(source.displayText) to \(target.displayText) has an empty range")
    }
    (self.source, self.target) = (source, target)
  }

  /// Returns the speed in source seconds per composition second.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit 128-bit integers.
  public func speed() throws(MediaError) -> Speed {
    try Speed(source.duration / target.duration)
  }

  /// Returns the exact composition time at which a source time plays, in seconds.
  ///
  /// The result is ``Rational/invalid`` if the fraction does not fit 128-bit integers.
  ///
  /// For a time outside the source range, the mapping is continued at the same speed.
  public func targetSeconds(of time: Rational) -> Rational {
    Self.map(time, from: source, to: target)
  }

  /// Returns the exact source time that plays at a composition time, in seconds.
  ///
  /// The result is ``Rational/invalid`` if the fraction does not fit 128-bit integers.
  ///
  /// For a time outside the target range, the mapping is continued at the same speed.
  public func sourceSeconds(of time: Rational) -> Rational {
    Self.map(time, from: target, to: source)
  }

  private static func map(_ time: Rational, from: TimeRange, to: TimeRange) -> Rational {
    let stretch = to.duration / from.duration
    return (time - from.start.seconds) * stretch + to.start.seconds
  }
}
