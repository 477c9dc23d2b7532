// SPDX-License-Identifier: Apache-2.0

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
}

extension MediaError.Code {
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
