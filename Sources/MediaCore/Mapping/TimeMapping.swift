// SPDX-License-Identifier: Apache-2.0

/// A source range, and the composition range that it fills at constant speed.
///
/// The counterpart of `CMTimeMapping`.
///
/// Results never overflow under three conditions. No time is negative. No timescale is above 1 000
/// 000. Either each range uses one timescale and values below 2^53, or all values are below 2^32.
/// The same limits hold for the mapped time.
public struct TimeMapping: Hashable, Sendable {
  /// The played range, in source time, longer than zero.
  public let source: TimeRange
  /// The range that it fills, in composition time, longer than zero.
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
    self.source = source
    self.target = target
  }

  /// Returns the speed in source seconds per composition second.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func speed() throws(MediaError) -> Speed {
    try Speed(source.duration / target.duration)
  }

  /// Returns the exact composition time at which a source time plays.
  ///
  /// Invalid where the fraction does not fit.
  ///
  /// Times outside the source range continue at the same speed.
  public func targetSeconds(of time: Rational) -> Rational {
    Self.map(time, from: source, to: target)
  }

  /// Returns the exact source time that plays at a composition time.
  ///
  /// Invalid where the fraction does not fit.
  ///
  /// Times outside the target range continue at the same speed.
  public func sourceSeconds(of time: Rational) -> Rational {
    Self.map(time, from: target, to: source)
  }

  private static func map(_ time: Rational, from: TimeRange, to: TimeRange) -> Rational {
    let stretch = to.duration / from.duration
    return (time - from.start.seconds) * stretch + to.start.seconds
  }
}
