// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

extension FileDescriptor {
  /// Writes all bytes, with as many system calls as necessary.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: The offset in the file. Nil writes at the descriptor's current offset.
  ///   - givesUp: Called when a signal interrupts the write, with the number of bytes written so
  ///     far. It returns true to end with `.interrupted`, or false to continue.
  /// - Returns: Nil if all bytes were written; otherwise the error, after which some of the bytes
  ///   may have been written.
  package func writeFully(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64? = nil,
    givesUp: (_ written: Int) -> Bool = { _ in false }
  ) -> Errno? {
    var written = 0
    do {
      while written < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count: Int
        do {
          count =
            if let offset {
              try write(
                toAbsoluteOffset: offset + Int64(written), rest, retryOnInterrupt: false)
            } else {
              try write(rest, retryOnInterrupt: false)
            }
        } catch Errno.interrupted {
          if givesUp(written) { return .interrupted }
          continue
        }
        // If a file system writes nothing and reports no error, the loop would otherwise never end.
        guard count > 0 else { return .ioError }
        written += count
      }
      return nil
    } catch { return error as? Errno ?? .ioError }
  }

  /// Writes all bytes at the descriptor's current offset, as ``writeFully(_:at:givesUp:)`` does.
  package func writeFully(_ bytes: [UInt8]) -> Errno? {
    bytes.withUnsafeBytes { writeFully($0) }
  }
}
