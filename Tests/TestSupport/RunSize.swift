// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The size of a test run: a sample of the random cases, or all of them.
package enum RunSize {
  /// Whether all cases run.
  ///
  /// `Tests/run.sh --full` sets `OVERCRANK_FULL`.
  package static let isFull = getenv("OVERCRANK_FULL").map { $0.pointee != 0 } ?? false

  /// Returns the number of cases: `usual` in every run, `full` in the long one.
  package static func cases(_ usual: Int, full: Int) -> Int { isFull ? full : usual }
}
