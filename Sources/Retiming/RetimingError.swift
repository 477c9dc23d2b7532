// SPDX-License-Identifier: Apache-2.0

/// What cannot be played at another speed, and why.
public struct RetimingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  ///
  /// New ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `overflow`.
    public let rawValue: String
    /// A speed that the sound cannot follow.
    public static let speedOutOfRange = Code(rawValue: "speed_out_of_range")
    /// A sampling rate or a number of channels that is not supported.
    public static let unsupportedFormat = Code(rawValue: "unsupported_format")
    /// Mappings that overlap, start before zero or end after the duration; a duration or a tick
    /// that is not above zero.
    public static let invalidMappings = Code(rawValue: "invalid_mappings")
    /// Frames whose times are not in order.
    public static let notAscending = Code(rawValue: "not_ascending")
    /// A time that would be needed does not fit the numbers that hold exact times.
    public static let notExact = Code(rawValue: "not_exact")
    /// A reader that gave another number of samples or channels than was asked for.
    public static let invalidSamples = Code(rawValue: "invalid_samples")
    /// The library that does the work failed.
    public static let engine = Code(rawValue: "engine")
    /// The caller asked to stop.
    public static let cancelled = Code(rawValue: "cancelled")
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
}
