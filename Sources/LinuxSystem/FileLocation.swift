// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The file that a path leads to, whether or not this file exists.
///
/// Two paths count as the same file even if they differ in spelling, or if they lead to the file
/// through symbolic links or hard links.
package struct FileLocation {
  /// The bytes of the path with symbolic links resolved; equal for all spellings of one name.
  package let name: [UInt8]
  /// The identity of the file; nil if the file does not exist.
  private var file: FileIdentity?

  package init(_ path: String) {
    var status = stat()
    if stat(path.systemPath, &status) == 0, let real = SystemFiles.resolved(path) {
      name = real.systemBytes
      file = FileIdentity(status)
    } else {
      let directory = path.parentDirectory
      name =
        (SystemFiles.resolved(directory) ?? directory).systemBytes + [0x2F]
        + path.lastPathComponent.systemBytes
    }
  }

  /// Whether both paths lead to the same file, either because they resolve to the same name or
  /// because they are hard links of one file.
  package func isFile(of other: FileLocation) -> Bool {
    guard let file, let found = other.file else { return name == other.name }
    return file == found
  }
}
