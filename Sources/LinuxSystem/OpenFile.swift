// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An open file, shared by several parts of the program.
///
/// Renaming or deleting the file does not affect it. The descriptor is closed with the last
/// reference.
///
/// swift-system's `FileDescriptor` lacks most of the calls that are needed (locks, syncs,
/// reservations, exchanges of names), so the descriptor is stored as a plain number.
package final class OpenFile: Sendable {
  /// The path for messages.
  ///
  /// The file may have been renamed since.
  package let path: String
  package let descriptor: Int32

  /// Takes ownership of an open descriptor.
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

  /// A path that reopens this file, even if its name now belongs to another file.
  package var pathToReopen: String {
    let link = "/proc/self/fd/\(descriptor)"
    // Without procfs, the name is the only way to reopen the file.
    return access(link, F_OK) != 0 && hasItsName ? path : link
  }

  /// The path that the open file has now, read from /proc/self/fd.
  ///
  /// Nil if the file was deleted.
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
