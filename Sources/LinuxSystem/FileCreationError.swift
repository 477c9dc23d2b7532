// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// Why a file cannot be created or written at a path.
package struct FileCreationError: Error, Sendable {
  package let path: String
  /// The errno; `EEXIST` for a name that is taken, `ENOTSUP` for a device, pipe or socket, `EBUSY`
  /// for a file that another program is writing.
  package let errorNumber: Int32
  /// Whether the file was there, and could not be written.
  package let isWriting: Bool
  /// Whether the path leads to a device, pipe or socket.
  package let isNoFile: Bool

  package init(path: String, errorNumber: Int32, isWriting: Bool = false) {
    self.path = path
    self.errorNumber = errorNumber
    self.isWriting = isWriting
    isNoFile = false
  }

  /// What stands at the path is no ordinary file.
  package init(noFile path: String) {
    self.path = path
    errorNumber = ENOTSUP
    isWriting = false
    isNoFile = true
  }

  /// Whether another program is recording, recovering or replacing the file.
  package var isBusy: Bool { errorNumber == EBUSY }
  /// Whether the name is taken by a file that may not be replaced.
  package var isNameTaken: Bool { errorNumber == EEXIST }
  /// Whether the disk, or what this user may take of it, is full.
  package var isDiskFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(errorNumber) }
  /// Why, in the system's words.
  package var reason: String {
    isNoFile
      ? "it is no ordinary file"
      : isBusy ? "another program is writing it" : String(cString: strerror(errorNumber))
  }
  /// What failed, on which file, and why: one line.
  package var message: String {
    isNameTaken
      ? "\(path) exists already"
      : isBusy
        ? "\(path) is being written by another program"
        : "could not \(isWriting || isDiskFull ? "write" : "create") \(path): \(reason)"
  }
}

extension MediaError {
  /// A file that cannot be created or written at a path.
  package init(_ error: FileCreationError) {
    self.init(
      error.isNameTaken
        ? .outputExists
        : error.isBusy
          ? .outputBusy
          : error.isDiskFull ? .diskFull : error.isWriting ? .writeFailed : .cannotCreate,
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
          : isWriting ? "check the disk" : "check that its folder exists and may be written to"
  }
}
