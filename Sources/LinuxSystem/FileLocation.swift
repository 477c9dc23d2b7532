// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Which file a path leads to, whether it exists or not.
///
/// Two paths lead to one file in spite of other spellings, symbolic links and hard links.
package struct FileLocation {
  /// The bytes of the path without symbolic links: the same for each spelling of one name.
  package let name: [UInt8]
  /// The file itself, where it exists.
  private var file: FileIdentity?

  package init(_ path: String) {
    var status = stat()
    if stat(path.systemPath, &status) == 0, let real = Self.real(path) {
      name = real
      file = FileIdentity(status)
    } else {
      let (folder, last) = path.folderAndName
      name =
        (Self.real(folder.isEmpty ? "." : folder) ?? folder.systemBytes) + [0x2F]
        + last.systemBytes
    }
  }

  /// Whether both lead to one file, also by two names of it.
  package func isFile(of other: FileLocation) -> Bool {
    guard let file, let found = other.file else { return name == other.name }
    return file == found
  }

  private static func real(_ path: String) -> [UInt8]? {
    guard let real = realpath(path.systemPath, nil) else { return nil }
    defer { free(real) }
    return String(systemPath: real).systemBytes
  }
}
