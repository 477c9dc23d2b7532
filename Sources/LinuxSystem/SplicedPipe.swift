// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import DequeModule
import Glibc
package import SystemPackage

/// A pipe whose buffers are the memory of its writer, without a copy.
///
/// The memory of an owner must not change before the reader has read it. So each owner is kept until
/// as many pages have followed as the pipe can hold. The reader must copy the
/// bytes with read(2): if it moves them into another pipe, that pipe holds them for longer.
package struct SplicedPipe<Owner>: ~Copyable {
  private let descriptor: FileDescriptor
  private let pageSize = Int(getpagesize())
  private var kept: Deque<(owner: Owner, end: Int)> = []
  /// The least number of the pipe's buffers that were filled: one for each page, and for each part.
  private var bufferCount = 0

  /// Uses a descriptor; nil if it is no pipe.
  package init?(_ descriptor: FileDescriptor) {
    guard Self.capacity(of: descriptor) != nil else { return nil }
    self.descriptor = descriptor
  }

  /// Puts a part of an owner's memory into the pipe, and blocks until it has space.
  ///
  /// - Parameters:
  ///   - bytes: The memory.
  ///   - givesUp: Called as by ``SystemPackage/FileDescriptor/writeFully(_:at:givesUp:)``.
  /// - Returns: Nil if all bytes were written; otherwise the error, after which some of the bytes may
  ///   have been written.
  package mutating func write(
    _ bytes: UnsafeRawBufferPointer, givesUp: (_ written: Int) -> Bool = { _ in false }
  ) -> Errno? {
    var rest = bytes
    while let start = rest.baseAddress, !rest.isEmpty {
      let count = Int(CLinuxSystem_splice(descriptor.rawValue, start, Int64(rest.count)))
      if count == -Int(EINTR) {
        if givesUp(bytes.count - rest.count) { return .interrupted }
        continue
      }
      if count == -Int(EPIPE) { return .brokenPipe }
      // If the kernel refuses to splice, the rest is copied.
      guard count > 0 else {
        let spliced = bytes.count - rest.count
        return descriptor.writeFully(rest) { givesUp(spliced + $0) }
      }
      bufferCount += max(1, count / pageSize)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    return nil
  }

  /// Keeps an owner whose memory was written, and releases those that the pipe holds no more.
  package mutating func keep(_ owner: Owner) {
    kept.append((owner, bufferCount))
    // Each buffer has up to one page, and buffers leave the pipe in their order.
    let held = (Self.capacity(of: descriptor) ?? .max) / pageSize
    while let first = kept.first, bufferCount - first.end >= held { kept.removeFirst() }
  }

  /// The owners whose memory the pipe may hold still.
  package var owners: [Owner] { kept.map(\.owner) }

  /// The capacity of a pipe in bytes; nil for another descriptor.
  private static func capacity(of descriptor: FileDescriptor) -> Int? {
    // F_GETPIPE_SZ, whose macro Swift does not import.
    let count = fcntl(descriptor.rawValue, 1_032)
    return count > 0 ? Int(count) : nil
  }
}
