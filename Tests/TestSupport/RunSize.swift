// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The size of a test run: a sample of the random cases, or all of them.
package enum RunSize {
  /// Whether all cases run.
  ///
  /// `Tests/run.sh --full` sets `OVERCRANK_FULL`.
  package static let isFull = getenv("OVERCRANK_FULL").map { $0.pointee != 0 } ?? false

  /// Returns a number of cases: `usual` in a normal run, `full` in a full run.
  package static func cases(_ usual: Int, full: Int) -> Int { isFull ? full : usual }
}
