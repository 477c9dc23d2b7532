// SPDX-License-Identifier: Apache-2.0

/// A piece of a source, and the piece of the composition it fills.
///
/// The counterpart of `CMTimeMapping`: linear, so its speed is the same throughout.
///
/// It never overflows while no time is negative, no timescale is above 1 000 000, and either
/// each range is on one timescale and no value reaches 2^53, or no value reaches 2^32. The time
/// that is mapped is held to the same.
public struct TimeMapping: Hashable, Sendable {
  /// The part that is played, in the time of the source; longer than zero.
  public let source: TimeRange
  /// Where it is played, in the time of the composition; longer than zero.
  public let target: TimeRange

  /// Makes a mapping between two ranges that are both longer than zero.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when one of them is empty.
  public init(source: TimeRange, target: TimeRange) throws(MediaError) {
    guard !source.isEmpty, !target.isEmpty else {
      throw MediaError(
        .emptyRange,
        "a mapping from \(source.displayText) to \(target.displayText) has an empty side")
    }
    self.source = source
    self.target = target
  }

  /// Source seconds per composition second.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func speed() throws(MediaError) -> Speed {
    try Speed(source.duration / target.duration)
  }

  /// The instant of the composition at which a source time plays, exactly; invalid where that does
  /// not fit.
  ///
  /// Times outside the source range continue the same line.
  public func targetSeconds(of time: Rational) -> Rational {
    Self.map(time, from: source, to: target)
  }

  /// The source time that plays at an instant of the composition, exactly; invalid where that does
  /// not fit.
  ///
  /// Times outside the target range continue the same line.
  public func sourceSeconds(of time: Rational) -> Rational {
    Self.map(time, from: target, to: source)
  }

  private static func map(_ time: Rational, from: TimeRange, to: TimeRange) -> Rational {
    let stretch = to.duration / from.duration
    return (time - from.start.seconds) * stretch + to.start.seconds
  }
}
