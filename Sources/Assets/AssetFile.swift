// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

/// Checks of a path before libav opens the file.
enum AssetFile {
  /// Checks that a path is a readable regular file that is not empty.
  ///
  /// - Throws: `MediaError` with different codes for a missing file, missing permission, and a path
  ///   that is no regular file or is empty.
  static func check(_ path: String) throws(MediaError) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else {
      let reason = errno
      guard reason == EACCES else {
        throw MediaError(
          .fileNotFound, "\(path): \(String(cString: strerror(reason)))", recovery: "check the name"
        )
      }
      throw noPermission(path)
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw .invalid(path, "is a directory, not a movie file")
    default: throw .invalid(path, "is not a regular file")
    }
    guard access(path.systemPath, R_OK) == 0 else { throw noPermission(path) }
    guard status.st_size > 0 else { throw .invalid(path, "is empty") }
  }

  private static func noPermission(_ path: String) -> MediaError {
    MediaError(
      .noPermission, "cannot read \(path): permission denied",
      recovery: "check its owner and its mode")
  }
}
