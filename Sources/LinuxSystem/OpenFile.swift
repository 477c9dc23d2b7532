// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An open file that several parts of the program share, whatever becomes of its name; it is closed
/// with the last of them.
package final class OpenFile: Sendable {
  /// The name to report; the file may have lost it.
  package let path: String
  package let descriptor: Int32

  /// Takes over a descriptor.
  package init(adopting descriptor: Int32, path: String) {
    self.descriptor = descriptor
    self.path = path
  }

  deinit { close(descriptor) }

  package var identity: FileIdentity? { FileIdentity(descriptor) }

  /// Whether the path still leads to this file.
  package var hasItsName: Bool {
    guard let identity else { return false }
    return FileIdentity(at: path) == identity
  }

  /// A path that opens this very file again, also when another has its name by now.
  package var pathToReopen: String {
    let link = "/proc/self/fd/\(descriptor)"
    // Without procfs only the name is left.
    return access(link, F_OK) != 0 && hasItsName ? path : link
  }

  /// The file's name by now; nil where it has none.
  package var currentPath: String? {
    let name = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4_096) { buffer in
      guard let start = buffer.baseAddress else { return "" }
      let count = readlink("/proc/self/fd/\(descriptor)", start, buffer.count)
      return String(systemBytes: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) })
    }
    guard let identity, FileIdentity(at: name) == identity else { return nil }
    return name
  }
}
