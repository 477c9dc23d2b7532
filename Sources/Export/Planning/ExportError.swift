// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRetiming

/// Why a composition cannot be exported, or why the export ended early.
public struct ExportError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `output_exists`.
    public let rawValue: String

    /// Makes a kind of this name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A file of this name exists and may not be replaced.
    public static let outputExists = Code(rawValue: "output_exists")
    /// Another program is writing the file of this name.
    public static let outputBusy = Code(rawValue: "output_busy")
    /// The file cannot be created where it should be.
    public static let cannotCreate = Code(rawValue: "cannot_create")
    /// The name of the file asks for a container that is not written.
    public static let unsupportedContainer = Code(rawValue: "unsupported_container")
    /// The composition has something that this kind of export cannot do.
    public static let unsupportedSource = Code(rawValue: "unsupported_source")
    /// Without re-encoding, a cut must fall on a key frame.
    public static let cutNotOnKeyFrame = Code(rawValue: "cut_not_on_key_frame")
    /// The codec cannot store pictures of the size that was asked for.
    public static let boxRefused = Code(rawValue: "box_refused")
    /// The sound cannot be retimed in this way.
    public static let audioRefused = Code(rawValue: "sound_refused")
    /// The disk is full.
    public static let diskFull = Code(rawValue: "disk_full")
    /// The disk or the encoder failed.
    public static let writeFailed = Code(rawValue: "write_failed")
    /// The export was cancelled; nothing was left behind.
    public static let cancelled = Code(rawValue: "cancelled")
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

  init(_ error: FileCreationError) {
    self.init(
      error.isNameTaken
        ? .outputExists
        : error.isBusy
          ? .outputBusy
          : error.isDiskFull ? .diskFull : error.isWriting ? .writeFailed : .cannotCreate,
      error.message, hint: error.hint)
  }

  init(_ error: LibAVError) {
    guard !error.isCancelled else {
      self = .isCancelled
      return
    }
    // The source is to blame, not the disk: damaged data, or a format the encoder does not take.
    let isOfSource =
      error.isInvalidData
      || error.systemErrorNumber.map { [EINVAL, ERANGE, ENOSYS, ETIMEDOUT, EAGAIN].contains($0) }
        ?? false
    guard !isOfSource else {
      self.init(
        .unsupportedSource, error.description,
        hint: "check that the source plays, or export in the other way")
      return
    }
    self.init(
      error.isDiskFull ? .diskFull : .writeFailed, error.description,
      hint: error.isDiskFull
        ? "free some space and try again" : "check the disk, or export in the other way")
  }

  init(_ error: RetimingError) {
    guard error.code != .cancelled else {
      self = .isCancelled
      return
    }
    self.init(
      .audioRefused, error.description,
      hint: "choose another algorithm with --pitch; mute takes any speed")
  }

  /// Whatever was thrown below.
  init(any error: any Error) {
    switch error {
    case let error as ExportError: self = error
    case let error as FileCreationError: self.init(error)
    case let error as LibAVError: self.init(error)
    case let error as RetimingError: self.init(error)
    // A source may be read again at any time, and its reading be cancelled.
    case let error as AssetError where error.code == .cancelled: self = .isCancelled
    case let error as AssetError:
      self.init(Code(rawValue: error.code.rawValue), error.message, hint: error.hint)
    default:
      self.init(.unsupportedSource, "\(error)", hint: "choose rounder times or speeds")
    }
  }

  static func hasNoFrames(_ path: String) -> ExportError {
    ExportError(
      .unsupportedSource, "\(path) holds no pictures", hint: "give a movie with pictures")
  }

  static let isCancelled = ExportError(
    .cancelled, "the export was cancelled", hint: "nothing was left behind")
}
