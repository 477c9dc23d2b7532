// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import DequeModule
import Glibc
package import SystemPackage

/// A pipe that refers to the writer's memory and does not copy it: vmsplice(2).
///
/// The memory must not change before the reader has read it. So the owner of written memory is kept
/// until as many further pages were written as the pipe can hold. The reader must copy the bytes
/// with read(2). If the reader instead splices the bytes into another pipe, that pipe refers to the
/// memory for longer.
package struct SplicedPipe<Owner>: ~Copyable {
  private let descriptor: FileDescriptor
  private let pageSize = Int(getpagesize())
  private var kept: Deque<(owner: Owner, end: Int)> = []
  /// The smallest number of pipe buffers that the writes so far can have filled.
  ///
  /// Each write fills at least one buffer, and at least one for each whole page of memory.
  private var bufferCount = 0

  /// Creates a pipe for a descriptor, or returns nil if the descriptor is not a pipe.
  package init?(_ descriptor: FileDescriptor) {
    guard Self.capacity(of: descriptor) != nil else { return nil }
    self.descriptor = descriptor
  }

  /// Puts a part of an owner's memory into the pipe, and blocks until the pipe has space.
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
      // If the kernel rejects the splice, the remaining bytes are written as a copy.
      guard count > 0 else {
        let spliced = bytes.count - rest.count
        return descriptor.writeFully(rest) { givesUp(spliced + $0) }
      }
      bufferCount += max(1, count / pageSize)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    return nil
  }

  /// Keeps an owner whose memory was written, and releases the owners to whose memory the pipe no
  /// longer refers.
  package mutating func keep(_ owner: Owner) {
    kept.append((owner, bufferCount))
    // Each pipe buffer contains at most one page, and buffers leave the pipe in the order in which
    // they were filled. So the pipe refers only to the memory of the last `held` buffers.
    let held = (Self.capacity(of: descriptor) ?? .max) / pageSize
    while let first = kept.first, bufferCount - first.end >= held { kept.removeFirst() }
  }

  /// The owners to whose memory the pipe may still refer.
  package var owners: [Owner] { kept.map(\.owner) }

  /// The capacity of a pipe in bytes; nil for another descriptor.
  private static func capacity(of descriptor: FileDescriptor) -> Int? {
    // 1032 is the value of F_GETPIPE_SZ, a macro that Swift does not import.
    let count = fcntl(descriptor.rawValue, 1_032)
    return count > 0 ? Int(count) : nil
  }
}
