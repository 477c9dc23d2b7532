// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

extension Asset {
  /// Cancels all current and future reading of movie files in this process.
  ///
  /// The reads fail with ``MediaError/Code/cancelled``. Use this for a program that is about to
  /// exit. May be called from any thread. libavformat stops before its next read
  /// (`AVIOInterruptCB`).
  public static func cancelReading() { ReadWatch.cancelAll() }
}
