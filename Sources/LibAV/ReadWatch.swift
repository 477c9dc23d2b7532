// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
import Synchronization

/// Interrupts FFmpeg calls that are cancelled, or that would read a file endlessly.
///
/// FFmpeg calls ``shouldEnd(position:now:)`` before each block that it reads.
package final class ReadWatch: Sendable {
  /// Whether all reading in this process was cancelled.
  private static let isCancelled = Atomic<Bool>(false)

  /// The thread's CPU time in nanoseconds after which a read without progress is interrupted.
  ///
  /// CPU time is measured, because a program that is suspended or waits for a slow disk uses none.
  package static let longestStall: Int64 = 10_000_000_000

  private let farthest = Atomic<Int64>(-1)
  private let since = Atomic<Int64>(0)
  private let hasStalled = Atomic<Bool>(false)

  package init() {}

  /// Whether all reading in this process was cancelled.
  ///
  /// An interrupted FFmpeg call may return any error code, so a cancellation cannot be recognized
  /// by the code.
  package static var cancelsAll: Bool { isCancelled.load(ordering: .relaxed) }

  /// Cancels all reading in this process, now and in the future.
  package static func cancelAll() { isCancelled.store(true, ordering: .relaxed) }

  /// Whether an FFmpeg call that read no further in the file was interrupted.
  package var isStalled: Bool { hasStalled.load(ordering: .relaxed) }

  /// Starts the time limit for an FFmpeg call.
  package func begin(now: Int64 = ReadWatch.processorNanoseconds()) {
    since.store(now, ordering: .relaxed)
  }

  /// Decides whether to interrupt the running call.
  ///
  /// - Parameters:
  ///   - position: The read position in the file, in bytes. Progress means that this position is
  ///     greater than all earlier ones.
  ///   - now: The thread's CPU time, in nanoseconds.
  /// - Returns: True to interrupt the call, false to let it continue.
  package func shouldEnd(
    position: Int64, now: Int64 = ReadWatch.processorNanoseconds()
  ) -> Bool {
    if Self.cancelsAll { return true }
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

  /// Installs the interrupt callback in a context.
  ///
  /// The context must not exist longer than this object.
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

  /// The address of the libavformat context whose reads are watched.
  private let context = Atomic<UInt>(0)

  /// The read position in the file, in bytes.
  private var position: Int64 {
    let context = UnsafeMutablePointer<AVFormatContext>(
      bitPattern: context.load(ordering: .relaxed))
    return context?.pointee.pb?.pointee.pos ?? 0
  }
}
