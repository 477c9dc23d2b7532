// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// The operations by which a file is created, as they stand in failures.
enum FileOperation {
  static let create = "create"
  static let write = "write"
}

extension CallFailure {
  /// The failure to create a file, from its errno.
  ///
  /// The errno is `EEXIST` if the name is taken, and `EBUSY` if another program is recording,
  /// recovering or replacing the file.
  package static func creating(_ path: String, _ number: Int32) -> CallFailure {
    output(FileOperation.create, path, number)
  }

  /// The failure to write to a created file, from its errno.
  ///
  /// The errno is `ECANCELED` if the caller cancelled the wait for a pipe.
  package static func writing(_ path: String, _ number: Int32) -> CallFailure {
    output(FileOperation.write, path, number)
  }

  /// The failure to create a file whose path names a device, pipe or socket.
  package static func notRegular(_ path: String) -> CallFailure {
    CallFailure(
      FileOperation.create, path, ENOTSUP, .notRegularFile, reason: "it is not a regular file",
      recovery: "check that its directory exists and is writable")
  }

  private static func output(_ operation: String, _ path: String, _ number: Int32) -> CallFailure {
    let reason =
      number == EBUSY ? "another program is writing it" : text(ofSystemNumber: number)
    let kind: Kind = number == EEXIST ? .nameTaken : kind(ofSystemNumber: number)
    let message: String? =
      switch kind {
      case .nameTaken: "\(path) already exists"
      case .busy: "\(path) is being written by another program"
      case .diskFull: "could not write \(path): \(reason)"
      default: nil
      }
    return CallFailure(operation, path, number, kind, reason: reason, message: message)
  }
}

extension MediaError {
  /// Makes the `MediaError` for a file that cannot be created or written.
  package init(creating failure: CallFailure) {
    self.init(
      failure, at: failure.operation == FileOperation.write ? .fileWriting : .fileCreation)
  }
}

extension CallStage {
  fileprivate static let fileWriting = CallStage(
    fileRows, other: Row(.writeFailed, "check the disk"))
  fileprivate static let fileCreation = CallStage(
    fileRows, other: Row(.cannotCreate, "check that its directory exists and is writable"))

  private static let fileRows: [CallFailure.Kind: Row] = [
    .nameTaken: Row(
      .outputExists, Recovery("choose another name, or replace it", .change(.overwrites))),
    .busy: Row(.outputBusy, "choose another name, or wait until it is finished"),
    .cancelled: Row(.cancelled, "start the reader of the pipe first"),
  ]
}
