// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Which file an open file or a name is: the same for all its names.
package struct FileIdentity: Hashable, Sendable {
  private let device: dev_t
  private let number: ino_t

  init(_ status: stat) { (device, number) = (status.st_dev, status.st_ino) }

  /// The file of a descriptor; nil where there is none.
  package init?(_ descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The file that a path leads to; nil where there is none.
  package init?(at path: String) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    self.init(status)
  }

  /// What has a name, which may be a symbolic link; nil where the name is free.
  package init?(ofName path: String) {
    var status = stat()
    guard lstat(path.systemPath, &status) == 0 else { return nil }
    self.init(status)
  }
}
