// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV

/// Why a movie file cannot be read.
public struct AssetError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `file_not_found`.
    public let rawValue: String
    /// There is no such file.
    public static let notFound = Code(rawValue: "file_not_found")
    /// This user may not read the file.
    public static let noPermission = Code(rawValue: "no_permission")
    /// The file is no movie, is damaged, or is cut off.
    public static let invalidData = Code(rawValue: "invalid_data")
    /// The disk failed while the file was read.
    public static let readFailed = Code(rawValue: "read_failed")
    /// ``Asset/cancelReading()`` was called.
    public static let cancelled = Code(rawValue: "cancelled")
    /// The file lasts no time, so there is nothing to edit.
    public static let emptyRange = Code(rawValue: "empty_range")
    /// A frame or a time that the file does not have.
    public static let outsideAsset = Code(rawValue: "outside_source")
  }

  /// What kind of failure this is.
  public let code: Code
  /// What failed, on which file, and why: one line.
  public let message: String
  /// What to try next: one line.
  public let hint: String

  /// Makes an error of a kind, with its two lines.
  public init(_ code: Code, _ message: String, hint: String) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message and the hint in one line.
  public var description: String { "\(message); \(hint)" }

  /// A failure of libav as an asset's.
  init(_ error: LibAVError) {
    guard !error.isCancelled else {
      self.init(
        .cancelled, "the reading of \(error.subject) was cancelled", hint: "nothing was written")
      return
    }
    // The one line of libav's by which a file that is cut off is known.
    if error.logLine?.contains("moov atom not found") == true {
      self.init(
        .invalidData,
        "\(error.subject) has no index (moov): it is cut off, or was never finished",
        hint: "check that it is a movie, and copy it again from where it was recorded")
      return
    }
    if let format = error.unsupportedFormat {
      self.init(
        .invalidData,
        "\(error.subject) is no movie but what libavformat calls \(format), which may name other files",
        hint: "give the movie itself")
      return
    }
    switch error.systemErrorNumber {
    case ESPIPE:
      self.init(
        .invalidData, "\(error.subject) is no regular file, and cannot be read more than once",
        hint: "save it to a file first")
      return
    case ETIMEDOUT:
      self.init(
        .invalidData, "\(error.subject) is damaged: libavformat reads it in circles without an end",
        hint: "check that it is a movie file that plays")
      return
    default: break
    }
    let code: Code =
      switch error.systemErrorNumber {
      case ENOENT: .notFound
      case EACCES, EPERM: .noPermission
      case EIO: .readFailed
      default: .invalidData
      }
    self.init(code, error.description, hint: "check that it is a movie file that plays")
  }

  static func invalid(_ path: String, _ why: String) -> AssetError {
    AssetError(
      .invalidData, "\(path) \(why)", hint: "give a movie file, such as one that record has written"
    )
  }
}
