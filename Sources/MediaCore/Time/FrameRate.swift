// SPDX-License-Identifier: Apache-2.0

/// Frames per second as an exact fraction above zero: 240/1, 60000/1001.
public struct FrameRate: Hashable, Sendable {
  /// The upper number, above zero, in lowest terms.
  public let numerator: Int32
  /// The lower number, above zero, in lowest terms.
  public let denominator: Int32

  /// Makes a rate and reduces it.
  ///
  /// - Throws: `MediaError` with `.notPositive` when the rate is not above zero, `.overflow`
  ///   when a number of its lowest terms does not fit 32 bits.
  public init(_ framesPerSecond: Rational) throws(MediaError) {
    guard framesPerSecond > .zero else {
      throw MediaError(.notPositive, "a rate of \(framesPerSecond) is not above zero")
    }
    guard let numerator = Int32(exactly: framesPerSecond.numerator),
      let denominator = Int32(exactly: framesPerSecond.denominator)
    else { throw .overflow("the rate \(framesPerSecond)") }
    self.numerator = numerator
    self.denominator = denominator
  }

  /// Makes a rate of `numerator / denominator` frames per second.
  ///
  /// - Throws: `MediaError` as ``init(_:)`` does.
  public init(_ numerator: Int64, _ denominator: Int64) throws(MediaError) {
    try self.init(Rational(Int128(numerator), Int128(denominator)))
  }

  /// Makes the rate at which frames of this duration follow each other.
  ///
  /// - Throws: `MediaError` as ``init(_:)`` does.
  public init(frameDuration: MediaTime) throws(MediaError) {
    try self.init(Rational.one.divided(by: frameDuration.seconds))
  }

  /// Frames per second.
  public var framesPerSecond: Rational {
    Rational(reducing: Int128(numerator), Int128(denominator))
  }

  /// The time from one frame to the next.
  public var frameDuration: MediaTime {
    // Both numbers are above zero, so this time exists.
    MediaTime(unchecked: Int64(denominator), numerator)
  }

  /// Frames per second for display, never for deciding.
  public var doubleValue: Double { Double(numerator) / Double(denominator) }
}

extension MediaTime {
  /// Makes a time whose timescale is known to be above zero.
  init(unchecked value: Int64, _ timescale: Int32) {
    self.value = value
    self.timescale = timescale
  }
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
