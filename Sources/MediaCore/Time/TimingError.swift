// SPDX-License-Identifier: Apache-2.0

/// What cannot be said as an exact time, and why.
public struct TimingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  ///
  /// New ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `overflow`.
    public let rawValue: String
    /// The exact result does not fit the integers that would hold it.
    public static let overflow = Code(rawValue: "overflow")
    /// A timescale, a denominator or a divisor that is not above zero.
    public static let notPositive = Code(rawValue: "not_positive")
    /// A duration or a range that would have to be longer than zero is not.
    public static let emptyRange = Code(rawValue: "empty_range")
    /// A time or a frame that the source does not have.
    public static let outsideSource = Code(rawValue: "outside_source")
    /// Text that is not in the syntax asked for.
    public static let syntax = Code(rawValue: "syntax")
  }

  /// What kind of failure this is.
  public let code: Code
  /// One sentence without a final period, for people.
  public let description: String

  /// Makes an error of a kind, with its sentence.
  public init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }

  static func overflow(_ what: String) -> TimingError {
    TimingError(.overflow, "\(what) does not fit the numbers that hold exact times")
  }
}
