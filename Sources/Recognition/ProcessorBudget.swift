// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Limits the share of a processor that a worker uses.
///
/// After each task, the worker sleeps until the processor time that it used is no more than the
/// allowed fraction of the time since the task began.
struct ProcessorBudget {
  /// The allowed fraction of a processor, above 0; at 1 the worker never sleeps.
  let share: Double
  private var nextStart: Int64?

  init(share: Double) { self.share = share }

  /// Returns the time in microseconds that the worker must still sleep.
  func rest(at microseconds: Int64) -> Int64 {
    share >= 1 ? 0 : max(0, (nextStart ?? microseconds) - microseconds)
  }

  /// Records finished work.
  ///
  /// - Parameters:
  ///   - start: The time at which the work began.
  ///   - used: The processor time that the work used, in microseconds.
  mutating func spend(from start: Int64, used: Int64) {
    nextStart = start + Int64((Double(used) / max(share, 0.001)).rounded())
  }

  /// The processor time of the calling thread, in microseconds.
  static func threadMicroseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }
}
