// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
import Synchronization

/// Ends calls into libav that nobody waits for any more, or that read a file in circles.
///
/// libav asks it before each block that it reads.
package final class ReadWatch: Sendable {
  /// Whether all reading of this process is to end.
  private static let isCancelled = Atomic<Bool>(false)

  /// How long a call may read without getting on, in nanoseconds of its thread's processor time: a
  /// program that stands still, or waits for a slow disk, does not use any.
  package static let longestStall: Int64 = 10_000_000_000

  private let farthest = Atomic<Int64>(-1)
  private let since = Atomic<Int64>(0)
  private let hasStalled = Atomic<Bool>(false)
  private let hasCancelled = Atomic<Bool>(false)

  package init() {}

  /// Has all reading of this process end, now and from now on.
  package static func cancelAll() { isCancelled.store(true, ordering: .relaxed) }

  /// Whether it has ended a call that read in circles.
  package var isStalled: Bool { hasStalled.load(ordering: .relaxed) }

  /// Whether it has ended a call because all reading is to end; libav may report that as anything.
  package var isCancelled: Bool { hasCancelled.load(ordering: .relaxed) }

  /// Begins with a call: until now there was nothing to get on with.
  package func begin(now: Int64 = ReadWatch.processorNanoseconds()) {
    since.store(now, ordering: .relaxed)
  }

  /// Tells whether a call is to end.
  ///
  /// - Parameters:
  ///   - position: Up to where the file was read, in bytes; only where it never was before counts as
  ///     getting on.
  ///   - now: The thread's processor time, in nanoseconds.
  /// - Returns: Whether it is.
  package func shouldEnd(
    position: Int64, now: Int64 = ReadWatch.processorNanoseconds()
  ) -> Bool {
    if Self.isCancelled.load(ordering: .relaxed) {
      hasCancelled.store(true, ordering: .relaxed)
      return true
    }
    if position > farthest.load(ordering: .relaxed) {
      farthest.store(position, ordering: .relaxed)
      since.store(now, ordering: .relaxed)
    } else if now - since.load(ordering: .relaxed) >= Self.longestStall {
      hasStalled.store(true, ordering: .relaxed)
    }
    return isStalled
  }

  package static func processorNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Has a context ask; the context must not outlive this.
  func watch(_ context: UnsafeMutablePointer<AVFormatContext>) {
    begin()
    self.context.store(UInt(bitPattern: context), ordering: .relaxed)
    context.pointee.interrupt_callback = AVIOInterruptCB(
      callback: { opaque in
        guard let opaque else { return 0 }
        let watch = Unmanaged<ReadWatch>.fromOpaque(opaque).takeUnretainedValue()
        return watch.shouldEnd(position: watch.position) ? 1 : 0
      }, opaque: Unmanaged.passUnretained(self).toOpaque())
  }

  /// The context that asks, as an address.
  private let context = Atomic<UInt>(0)

  /// Up to where the file is read.
  private var position: Int64 {
    let context = UnsafeMutablePointer<AVFormatContext>(
      bitPattern: context.load(ordering: .relaxed))
    return context?.pointee.pb?.pointee.pos ?? 0
  }
}
