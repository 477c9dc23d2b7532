// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

extension FileDescriptor {
  /// Writes all of the bytes, however often the system must be called.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: Where in the file they go; at the descriptor's own offset where nil.
  /// - Returns: Why the system refused, after some of the bytes may have been written; nil where all
  ///   were.
  package func writeFully(_ bytes: UnsafeRawBufferPointer, at offset: Int64? = nil) -> Errno? {
    var written = 0
    do {
      while written < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count =
          if let offset {
            try write(toAbsoluteOffset: offset + Int64(written), rest)
          } else {
            try write(rest)
          }
        // A file system that takes nothing without an error would be asked forever.
        guard count > 0 else { return .ioError }
        written += count
      }
      return nil
    } catch { return error as? Errno ?? .ioError }
  }

  /// Writes all of the bytes at the descriptor's own offset, as ``writeFully(_:at:)`` does.
  package func writeFully(_ bytes: [UInt8]) -> Errno? {
    bytes.withUnsafeBytes { writeFully($0) }
  }
}
