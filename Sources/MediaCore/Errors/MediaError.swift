// SPDX-License-Identifier: Apache-2.0

/// The error that every throwing public function of the library throws.
///
/// Programs branch on ``code``; people read ``message`` and ``recovery``.
public struct MediaError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// A kind of failure.
  ///
  /// Each module declares its codes in an extension; new codes may be added.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The code as it appears in JSON documents, such as `device_busy`.
    public let rawValue: String

    /// Makes a code with this name.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// The failed call of a lower layer: the kernel, FFmpeg or ALSA.
  public struct Cause: Hashable, Sendable, Codable {
    /// The call or step, such as `open`.
    public let operation: String
    /// The file, device or codec that the call worked on.
    public let subject: String
    /// The error number of errno(3); nil if the lower layer reported none or has its own error
    /// numbers.
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
  /// The failed operation, its file or device, and the reason.
  ///
  /// One line without a final period.
  public let message: String
  /// A remedy for the error; nil if the message alone suffices.
  public let recovery: Recovery?
  /// The ranges named in ``message``, in the same order, in the time of the edited composition or
  /// source.
  ///
  /// Empty for most errors.
  public let ranges: [TimeRange]
  /// The failed call of a lower layer; nil if no such call failed.
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

  /// The text of ``recovery``; empty where ``recovery`` is nil.
  public var recoverySuggestion: String { recovery?.description ?? "" }

  /// The message and the recovery in one line.
  public var description: String {
    recovery.map { "\(message); \($0)" } ?? message
  }
}
