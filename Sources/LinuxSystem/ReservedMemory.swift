// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// Memory whose pages are allocated at the first write.
///
/// A page that was never written uses no memory. The owner frees the memory with munmap(2).
package enum ReservedMemory {
  /// Reserves memory.
  ///
  /// - Parameters:
  ///   - byteCount: The number of bytes, above zero.
  ///   - purpose: The use of the memory, for the error.
  /// - Returns: The start of the memory.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  package static func reserve(
    _ byteCount: Int, for purpose: String
  ) throws(MediaError) -> UnsafeMutableRawPointer {
    let memory = mmap(
      nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard let memory, memory != MAP_FAILED else {
      throw MediaError(
        .outOfMemory, "could not reserve \(byteCount / 1_048_576) MiB for \(purpose)",
        recovery: "close other programs or choose a smaller mode")
    }
    return memory
  }
}
