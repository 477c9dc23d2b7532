// SPDX-License-Identifier: Apache-2.0

/// Source seconds per output second: 1/8 is eight times slower, 2 is twice as fast.
public struct Speed: Hashable, Sendable {
  /// The speed as a fraction above zero.
  public let fraction: Rational

  /// As it was captured.
  public static let normal = Speed(unchecked: .one)

  private init(unchecked fraction: Rational) { self.fraction = fraction }

  /// Makes a speed above zero.
  ///
  /// - Throws: `MediaError` with `.notPositive` for zero and below.
  public init(_ fraction: Rational) throws(MediaError) {
    guard fraction > .zero else {
      throw MediaError(.notPositive, "a speed of \(fraction) is not above zero")
    }
    self.fraction = fraction
  }

  /// Output seconds per source second: the inverse.
  ///
  /// - Throws: `MediaError` with `.overflow` when it does not fit.
  public func stretch() throws(MediaError) -> Rational { try Rational.one.divided(by: fraction) }

  /// The output time that a stretch of source time takes.
  ///
  /// - Throws: `MediaError` with `.overflow` when it cannot be said exactly.
  public func targetDuration(of source: MediaTime) throws(MediaError) -> MediaTime {
    try MediaTime(source.seconds.divided(by: fraction))
  }
}

extension Speed: Comparable, CustomStringConvertible {
  /// Slower is less.
  public static func < (left: Speed, right: Speed) -> Bool { left.fraction < right.fraction }

  /// The speed as `"1/8"`.
  public var description: String { fraction.description }
}
