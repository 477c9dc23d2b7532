// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Limits the share of a processor that a worker uses.
///
/// After work, the worker rests until the time that it used is no more than the share of all time
/// since the work began.
struct ProcessorBudget {
  /// The share, above 0; no rest is needed at 1.
  let share: Double
  private var nextStart: Int64?

  init(share: Double) { self.share = share }

  /// The time in microseconds that the worker must rest.
  func rest(at microseconds: Int64) -> Int64 {
    share >= 1 ? 0 : max(0, (nextStart ?? microseconds) - microseconds)
  }

  /// Enters work.
  ///
  /// - Parameters:
  ///   - start: The time at which the work began.
  ///   - used: The processor time that it took, in microseconds.
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
