// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

extension Asset {
  /// Cancels all current and future reading of movie files in this process.
  ///
  /// The reads fail with ``MediaError/Code/cancelled``. Use this in a program that is about to
  /// exit. May be called from any thread. A disk read that is already in progress is not
  /// interrupted, but libavformat starts no further one (`AVIOInterruptCB`).
  public static func cancelReading() { ReadWatch.cancelAll() }
}
