// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem

/// The free space of a disk.
package enum FreeSpace {
  /// The upper limit of ``reserve(at:)`` in bytes.
  private static let largestReserve: Int64 = 512 << 20

  /// The default free space limit of a capture with repeating triggers, in bytes.
  ///
  /// The limit is 5 % of the size of the disk that holds the file, at most 512 MiB.
  ///
  /// Nil if statvfs(3) fails.
  static func reserve(at path: String) -> Int64? {
    status(at: path).map { min(largestReserve, bytes($0.f_blocks, $0) / 20) }
  }

  /// The free bytes available to unprivileged users on the disk of a file.
  ///
  /// Nil if statvfs(3) fails.
  package static func bytes(at path: String) -> Int64? {
    status(at: path).map { bytes($0.f_bavail, $0) }
  }

  private static func status(at path: String) -> statvfs? {
    var status = statvfs()
    let isKnown =
      statvfs(path.systemPath, &status) == 0
      || statvfs(path.parentDirectory.systemPath, &status) == 0
    return isKnown ? status : nil
  }

  private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
    let (bytes, overflow) = Int64(clamping: blocks)
      .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
    return overflow ? .max : bytes
  }
}
