// SPDX-License-Identifier: Apache-2.0

extension MediaError.Code {
  /// The file does not exist.
  public static let fileNotFound = Self(rawValue: "file_not_found")
  /// This user may not open the file or device.
  public static let noPermission = Self(rawValue: "no_permission")
  /// The file is not a movie, is damaged, or is cut off.
  public static let invalidData = Self(rawValue: "invalid_data")
  /// The disk failed during a read.
  public static let readFailed = Self(rawValue: "read_failed")
  /// The disk or the encoder failed during a write.
  public static let writeFailed = Self(rawValue: "write_failed")
  /// The disk is full.
  public static let diskFull = Self(rawValue: "disk_full")
  /// A file of this name exists and may not be replaced.
  public static let outputExists = Self(rawValue: "output_exists")
  /// Another program is writing the file of this name.
  public static let outputBusy = Self(rawValue: "output_busy")
  /// The file cannot be created at its path.
  public static let cannotCreate = Self(rawValue: "cannot_create")
  /// The system has no memory, or no thread, left.
  public static let outOfMemory = Self(rawValue: "out_of_memory")
  /// The work was cancelled.
  public static let cancelled = Self(rawValue: "cancelled")
  /// The exact result does not fit the integers that would hold it.
  public static let overflow = Self(rawValue: "overflow")
  /// A time or rate that is needed does not fit the integers that would hold it.
  public static let notExact = Self(rawValue: "not_exact")
  /// A timescale, a denominator or a divisor is not above zero.
  public static let notPositive = Self(rawValue: "not_positive")
  /// A duration or a range that must be longer than zero is not.
  public static let emptyRange = Self(rawValue: "empty_range")
  /// A time, a range or a frame is not in the source.
  public static let outsideSource = Self(rawValue: "outside_source")
  /// The image cannot be converted.
  public static let notConvertible = Self(rawValue: "not_convertible")
  /// The text is not in the expected syntax.
  public static let syntax = Self(rawValue: "syntax")
}

extension MediaError.Code {
  /// Whether exact arithmetic failed, not what it was asked for.
  package var isArithmetic: Bool { self == .overflow || self == .notPositive }
}

extension MediaError {
  /// A result that does not fit.
  static func overflow(_ what: String) -> MediaError {
    MediaError(.overflow, "\(what) does not fit the numbers that hold exact times")
  }
}
