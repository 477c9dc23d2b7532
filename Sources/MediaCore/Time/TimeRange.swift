// SPDX-License-Identifier: Apache-2.0

/// A half-open stretch of time: from `start` up to, but not including, `end`.
///
/// Whose time it is in (a source's, a composition's, the capture clock's) is said by the name
/// of the property or parameter that holds it.
public struct TimeRange: Hashable, Sendable {
  /// The first instant inside.
  public let start: MediaTime
  /// The first instant after; never before `start`.
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

  /// Makes the range between two computed times, in seconds.
  ///
  /// - Throws: `MediaError` with `.overflow` when one of them is not exactly a time, `.emptyRange`
  ///   when `end` is before `start`.
  public init(start: Rational, end: Rational) throws(MediaError) {
    try self.init(start: MediaTime(start), end: MediaTime(end))
  }

  /// Makes a range whose end is known not to be before its start.
  private init(unchecked start: MediaTime, _ end: MediaTime) {
    self.start = start
    self.end = end
  }

  /// Makes the range of a duration that is not negative.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a negative duration, `.overflow` when the
  ///   end cannot be said exactly.
  public init(start: MediaTime, duration: MediaTime) throws(MediaError) {
    try self.init(start: start, end: MediaTime(start + duration))
  }

  /// From zero for a duration that is not negative.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a negative duration.
  public init(duration: MediaTime) throws(MediaError) {
    try self.init(start: .zero, end: duration)
  }

  /// The length in seconds, exactly.
  ///
  /// A fraction and not a ``MediaTime``, because the difference of two times need not fit one.
  public var duration: Rational {
    // Both are 64 over 32 bits: the difference always fits 128 over 64.
    let above =
      Int128(end.value) * Int128(start.timescale) - Int128(start.value) * Int128(end.timescale)
    return Rational(reducing: above, Int128(end.timescale) * Int128(start.timescale))
  }

  /// Whether the range holds no instant.
  public var isEmpty: Bool { start == end }

  /// Whether `time` lies inside; the end does not.
  public func contains(_ time: MediaTime) -> Bool { start <= time && time < end }

  /// Whether `other` starts no earlier and ends no later; a range contains itself.
  public func contains(_ other: TimeRange) -> Bool { start <= other.start && other.end <= end }

  /// Whether some instant lies in both.
  public func overlaps(_ other: TimeRange) -> Bool {
    max(start, other.start) < min(end, other.end)
  }

  /// What lies in both, or nil where no instant does, as for ranges that only touch.
  public func intersection(_ other: TimeRange) -> TimeRange? {
    guard overlaps(other) else { return nil }
    return TimeRange(unchecked: max(start, other.start), min(end, other.end))
  }
}

extension TimeRange: CustomStringConvertible {
  /// The range as it is spelled: `"1/1..2/1"`, in seconds.
  public var description: String { "\(start)..\(end)" }
}
