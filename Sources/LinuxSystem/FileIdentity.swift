// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The identity of a file, independent of its names: device and inode number.
package struct FileIdentity: Hashable, Sendable {
  private let device: dev_t
  private let number: ino_t

  init(_ status: stat) { (device, number) = (status.st_dev, status.st_ino) }

  /// The identity of an open file; nil for an invalid descriptor.
  package init?(_ descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The identity of the file at a path, with symbolic links followed; nil if none exists.
  package init?(at path: String) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The identity of a directory entry.
  ///
  /// A symbolic link is not followed. Nil if the name is free.
  package init?(ofName path: String) {
    guard let status = SystemFiles.entryStatus(path) else { return nil }
    self.init(status)
  }
}
