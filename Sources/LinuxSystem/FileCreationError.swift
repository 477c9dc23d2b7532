// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// The reason why a file cannot be created or written at a path.
package struct FileCreationError: Error, Sendable {
  package let path: String
  /// The errno.
  ///
  /// `EEXIST` if the name is taken, `ENOTSUP` for a device, pipe or socket, `EBUSY` if another
  /// program is writing the file, `ECANCELED` if the caller cancelled the wait for a pipe.
  package let errorNumber: Int32
  /// True if writing to the file failed, false if creating the file failed.
  package let isWriting: Bool
  /// Whether the path names a device, pipe or socket instead of a regular file.
  package let isNoFile: Bool

  package init(path: String, errorNumber: Int32, isWriting: Bool = false) {
    self.path = path
    self.errorNumber = errorNumber
    self.isWriting = isWriting
    isNoFile = false
  }

  /// Makes the error for a path that names no regular file.
  package init(noFile path: String) {
    self.path = path
    errorNumber = ENOTSUP
    isWriting = false
    isNoFile = true
  }

  /// Whether the reason is that another program is recording, recovering or replacing the file.
  package var isBusy: Bool { errorNumber == EBUSY }
  /// Whether the reason is that the name is taken by a file that must not be replaced.
  package var isNameTaken: Bool { errorNumber == EEXIST }
  /// Whether the reason is that the disk or the user's quota is full, or that the file is too
  /// large.
  package var isDiskFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(errorNumber) }
  /// The reason in the system's own text (strerror).
  package var reason: String {
    isNoFile
      ? "it is not a regular file"
      : isBusy ? "another program is writing it" : String(cString: strerror(errorNumber))
  }
  /// The failed operation, the file and the reason, in one line.
  package var message: String {
    isNameTaken
      ? "\(path) already exists"
      : isBusy
        ? "\(path) is being written by another program"
        : "could not \(isWriting || isDiskFull ? "write" : "create") \(path): \(reason)"
  }
}

extension MediaError {
  /// Makes the `MediaError` for a file that cannot be created or written.
  package init(_ error: FileCreationError) {
    self.init(
      error.isNameTaken
        ? .outputExists
        : error.isBusy
          ? .outputBusy
          : error.isDiskFull
            ? .diskFull
            : error.errorNumber == ECANCELED
              ? .cancelled : error.isWriting ? .writeFailed : .cannotCreate,
      error.message, recovery: error.recovery,
      cause: Cause(
        error.isWriting ? "write" : "create", on: error.path, errorNumber: error.errorNumber))
  }
}

extension FileCreationError {
  fileprivate var recovery: Recovery {
    isNameTaken
      ? Recovery("choose another name, or replace it", .change(.overwrites))
      : isBusy
        ? "choose another name, or wait until it is finished"
        : isDiskFull
          ? "free some space and try again"
          : errorNumber == ECANCELED
            ? "start the reader of the pipe first"
            : isWriting ? "check the disk" : "check that its directory exists and is writable"
  }
}
