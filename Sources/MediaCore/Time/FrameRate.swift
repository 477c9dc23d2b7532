// SPDX-License-Identifier: Apache-2.0

/// Frames per second as an exact fraction above zero: 240/1, 60000/1001.
public struct FrameRate: Hashable, Sendable {
  /// The numerator in lowest terms, above zero.
  public let numerator: Int32
  /// The denominator in lowest terms, above zero.
  public let denominator: Int32

  /// Makes a rate of `numerator / denominator` frames per second and reduces it:
  /// `FrameRate(240)`, `FrameRate(60_000, over: 1001)`.
  ///
  /// - Precondition: Both numbers are above zero, and in lowest terms they fit 32 bits. Use
  ///   ``init(exactly:)`` for numbers from outside the program.
  public init(_ numerator: Int, over denominator: Int = 1) {
    guard let rate = FrameRate(exactly: Rational(Int128(numerator), over: Int128(denominator)))
    else { preconditionFailure("a frame rate is above zero, in 32 bits over 32 bits") }
    self = rate
  }

  /// Makes a rate of this many frames per second.
  ///
  /// - Throws: `MediaError` with `.notPositive` when the rate is zero or below, `.overflow` when
  ///   its lowest terms do not fit 32 bits or the number is invalid.
  public init(_ framesPerSecond: Rational) throws(MediaError) {
    guard framesPerSecond > .zero else {
      throw MediaError(.notPositive, "a rate of \(framesPerSecond) is not above zero")
    }
    guard let rate = FrameRate(exactly: framesPerSecond) else {
      throw .overflow("the rate \(framesPerSecond)")
    }
    self = rate
  }

  /// Makes a rate of this many frames per second; nil for a rate of zero or below, or if its lowest
  /// terms do not fit 32 bits.
  public init?(exactly framesPerSecond: Rational) {
    guard framesPerSecond.isValid, framesPerSecond > .zero,
      let numerator = Int32(exactly: framesPerSecond.numerator),
      let denominator = Int32(exactly: framesPerSecond.denominator)
    else { return nil }
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  /// Makes the frame rate at which each frame lasts for this duration.
  ///
  /// - Throws: `MediaError` as ``init(_:)`` does.
  public init(frameDuration: MediaTime) throws(MediaError) {
    guard frameDuration > .zero else {
      throw MediaError(
        .notPositive, "a frame duration of \(frameDuration.exactDisplayText) is not above zero")
    }
    try self.init(1 / frameDuration.seconds)
  }

  /// The rate as a fraction.
  public var framesPerSecond: Rational {
    Rational(reducing: Int128(numerator), Int128(denominator))
  }

  /// The time from one frame to the next.
  public var frameDuration: MediaTime {
    MediaTime(Int64(denominator), over: numerator)
  }

  /// An approximation of the rate for display only; never use it for decisions.
  public var doubleValue: Double { Double(numerator) / Double(denominator) }
}

extension FrameRate: ExpressibleByIntegerLiteral {
  /// Makes a rate of whole frames per second.
  ///
  /// - Precondition: The same as for ``init(_:over:)``.
  public init(integerLiteral framesPerSecond: Int) { self.init(framesPerSecond, over: 1) }
}

extension FrameRate: Comparable, CustomStringConvertible {
  /// Compares exactly.
  public static func < (left: FrameRate, right: FrameRate) -> Bool {
    Int64(left.numerator) * Int64(right.denominator)
      < Int64(right.numerator) * Int64(left.denominator)
  }

  /// The rate as `"240/1"`.
  public var description: String { "\(numerator)/\(denominator)" }
}
