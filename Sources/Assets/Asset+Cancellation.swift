// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

extension Asset {
  /// Has all reading of movie files in this process fail with ``MediaError/Code/cancelled``, now and
  /// from now on; for a program that is to end, from any thread.
  ///
  /// libavformat is asked to stop before the next block that it reads (`AVIOInterruptCB`).
  public static func cancelReading() { ReadWatch.cancelAll() }
}
