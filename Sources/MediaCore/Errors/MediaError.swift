// SPDX-License-Identifier: Apache-2.0

/// The error of this library: what kind of failure, what failed on what and why, and what to do.
///
/// Every public function that throws, throws this type. Programs decide by ``code``; people read
/// ``message`` and ``recovery``.
public struct MediaError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// A kind of failure; each module adds its kinds in an extension, and new ones may be added.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The name that documents carry, such as `device_busy`.
    public let rawValue: String

    /// Makes a kind of this name.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// The failed call below this library.
  public struct Cause: Hashable, Sendable, Codable {
    /// The call or the step, such as `open`.
    public let operation: String
    /// The file, device or codec it was tried on.
    public let subject: String
    /// The number of the error as errno(3) lists them; nil where the library below has its own.
    public let errorNumber: Int32?

    /// Describes a failed call.
    public init(_ operation: String, on subject: String, errorNumber: Int32?) {
      self.operation = operation
      self.subject = subject
      self.errorNumber = errorNumber
    }
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, on which file or device, and why: one line without a final period.
  public let message: String
  /// What to try next; nil where the message says all there is to say.
  public let recovery: Recovery?
  /// The ranges that the message names, in that order, in the time of the edited composition or
  /// source; empty for most errors.
  public let ranges: [TimeRange]
  /// The failed call below, where one is to blame.
  public let cause: Cause?

  /// Makes an error of a kind.
  public init(
    _ code: Code, _ message: String, recovery: Recovery? = nil, ranges: [TimeRange] = [],
    cause: Cause? = nil
  ) {
    self.code = code
    self.message = message
    self.recovery = recovery
    self.ranges = ranges
    self.cause = cause
  }

  /// The text of ``recovery``; empty without one.
  public var recoverySuggestion: String { recovery?.description ?? "" }

  /// The message and the recovery in one line.
  public var description: String {
    recovery.map { "\(message); \($0)" } ?? message
  }
}
