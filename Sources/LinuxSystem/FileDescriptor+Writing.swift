// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

extension FileDescriptor {
  /// Writes all bytes, with as many system calls as that takes.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: The offset in the file. Nil writes at the descriptor's own offset.
  /// - Returns: Nil if all bytes were written; otherwise the error, after which some of the bytes
  ///   may have been written.
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
        // If a file system writes nothing and reports no error, the loop would never end.
        guard count > 0 else { return .ioError }
        written += count
      }
      return nil
    } catch { return error as? Errno ?? .ioError }
  }

  /// Writes all bytes at the descriptor's own offset, as ``writeFully(_:at:)`` does.
  package func writeFully(_ bytes: [UInt8]) -> Errno? {
    bytes.withUnsafeBytes { writeFully($0) }
  }
}
