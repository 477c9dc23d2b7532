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
      (self.operation, self.subject, self.errorNumber) = (operation, subject, errorNumber)
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
    (self.code, self.message, self.recovery, self.ranges) = (code, message, recovery, ranges)
    self.cause = cause
  }

  /// The text of ``recovery``; empty where ``recovery`` is nil.
  public var recoverySuggestion: String { recovery?.description ?? "" }

  /// The message and the recovery in one line.
  public var description: String {
    recovery.map { "\(message); \($0)" } ?? message
  }
}

extension MediaError.Code {
  /// The file does not exist.
  public static let fileNotFound = Self(rawValue: "file_not_found")
  /// The user has no permission to open the file or device.
  public static let noPermission = Self(rawValue: "no_permission")
  /// The file is not a movie, is damaged, or is truncated.
  public static let invalidData = Self(rawValue: "invalid_data")
  /// A read from disk failed.
  public static let readFailed = Self(rawValue: "read_failed")
  /// A write to disk or an encoder failed.
  public static let writeFailed = Self(rawValue: "write_failed")
  /// The disk is full.
  public static let diskFull = Self(rawValue: "disk_full")
  /// An output file of this name exists and replacing it is not allowed.
  public static let outputExists = Self(rawValue: "output_exists")
  /// Another program is writing a file of this name.
  public static let outputBusy = Self(rawValue: "output_busy")
  /// The file cannot be created at the given path.
  public static let cannotCreate = Self(rawValue: "cannot_create")
  /// The system has no memory or thread left.
  public static let outOfMemory = Self(rawValue: "out_of_memory")
  /// An optional component that the operation needs is not installed.
  public static let missingComponent = Self(rawValue: "missing_component")
  /// The operation was cancelled.
  public static let cancelled = Self(rawValue: "cancelled")
  /// An exact result does not fit the integers in which exact numbers are stored.
  public static let overflow = Self(rawValue: "overflow")
  /// An operation needs a time or rate that cannot be stored exactly.
  ///
  /// The message names the time or rate.
  public static let notExact = Self(rawValue: "not_exact")
  /// A timescale, denominator or divisor is zero or negative.
  public static let notPositive = Self(rawValue: "not_positive")
  /// A duration or range is empty but must be longer than zero.
  public static let emptyRange = Self(rawValue: "empty_range")
  /// A time, range or frame lies outside the source.
  public static let outsideSource = Self(rawValue: "outside_source")
  /// The image cannot be converted to the requested pixel format or size.
  public static let notConvertible = Self(rawValue: "not_convertible")
  /// A metadata key or value cannot be stored in a movie.
  public static let invalidMetadata = Self(rawValue: "invalid_metadata")
  /// The text is not in the expected syntax.
  public static let syntax = Self(rawValue: "syntax")

  /// True for `.overflow` and `.notPositive`, the two codes that exact arithmetic throws; false for
  /// all other codes.
  package var isArithmetic: Bool { self == .overflow || self == .notPositive }
}

extension MediaError {
  /// Makes an error for a result that does not fit the integers of exact times.
  static func overflow(_ what: String) -> MediaError {
    MediaError(.overflow, "\(what) exceeds the range of exact times")
  }
}
