// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The width in columns at which text for people is wrapped.
enum TerminalWidth {
  private static let minimum = 20
  private static let maximum = 1_000
  private static let standard = 80

  /// The value of `COLUMNS`, or the width of the terminal on standard output or standard error, or
  /// 80.
  static var columns: Int {
    let found =
      getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap { $0 > 0 ? $0 : nil }
      ?? [STDOUT_FILENO, STDERR_FILENO].lazy.compactMap { TerminalScreen.size(of: $0)?.columns }
      .first
      ?? standard
    return min(max(found, minimum), maximum)
  }
}
