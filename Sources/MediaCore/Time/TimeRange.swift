// SPDX-License-Identifier: Apache-2.0

/// A half-open time range: from `start` up to, but not including, `end`.
///
/// A range does not store the time axis of its bounds. Each property or parameter of this type
/// documents the axis: time of the source, of the composition, or of the capture clock.
public struct TimeRange: Hashable, Sendable {
  /// The first instant inside the range.
  public let start: MediaTime
  /// The first instant after the range; never before `start`.
  public let end: MediaTime

  /// Makes the range from `start` up to `end`.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when `end` is before `start`.
  public init(start: MediaTime, end: MediaTime) throws(MediaError) {
    guard start <= end else {
      throw MediaError(
        .emptyRange, "the range \(start.displayText)..\(end.displayText) ends before it starts")
    }
    self.init(unchecked: start, end)
  }

  /// Makes a range between two computed times, in seconds.
  ///
  /// - Throws: `MediaError` with `.overflow` when a bound is not exactly representable,
  ///   `.emptyRange` when `end` is before `start`.
  public init(start: Rational, end: Rational) throws(MediaError) {
    try self.init(start: MediaTime(start), end: MediaTime(end))
  }

  /// Makes a range from checked bounds; `end` must not be before `start`.
  private init(unchecked start: MediaTime, _ end: MediaTime) {
    (self.start, self.end) = (start, end)
  }

  /// Makes a range from a start and a nonnegative duration.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a negative duration, `.overflow` when the end is
  ///   not exactly representable.
  public init(start: MediaTime, duration: MediaTime) throws(MediaError) {
    try self.init(start: start, end: MediaTime(start + duration))
  }

  /// Makes a range from zero up to a nonnegative duration.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a negative duration.
  public init(duration: MediaTime) throws(MediaError) {
    try self.init(start: .zero, end: duration)
  }

  /// The exact duration in seconds.
  ///
  /// The type is ``Rational``, because the difference of two times may not fit a ``MediaTime``.
  public var duration: Rational {
    // Both bounds have 64-bit values and 32-bit timescales. So the difference has a numerator of at
    // most 128 bits and a denominator of 64 bits.
    let above =
      Int128(end.value) * Int128(start.timescale) - Int128(start.value) * Int128(end.timescale)
    return Rational(reducing: above, Int128(end.timescale) * Int128(start.timescale))
  }

  /// True if the range is empty, that is, if its start equals its end; false otherwise.
  public var isEmpty: Bool { start == end }

  /// Returns true if `start <= time < end`, and false otherwise.
  public func contains(_ time: MediaTime) -> Bool { start <= time && time < end }

  /// Returns true if `other` lies entirely inside this range or equals it, and false otherwise.
  public func contains(_ other: TimeRange) -> Bool { start <= other.start && other.end <= end }

  /// Returns true if an instant lies in both ranges, and false if they are disjoint or only touch.
  public func overlaps(_ other: TimeRange) -> Bool {
    max(start, other.start) < min(end, other.end)
  }

  /// The common part of two ranges; nil for ranges that are disjoint or only touch.
  public func intersection(_ other: TimeRange) -> TimeRange? {
    guard overlaps(other) else { return nil }
    return TimeRange(unchecked: max(start, other.start), min(end, other.end))
  }
}

extension TimeRange: CustomStringConvertible {
  /// The range as `"1/1..2/1"`, in seconds.
  public var description: String { "\(start)..\(end)" }
}
