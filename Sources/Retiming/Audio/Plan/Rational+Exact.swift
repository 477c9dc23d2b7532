// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Does arithmetic of exact times, and says what was being computed if it does not fit.
func exactly<Value>(
  _ what: @autoclosure () -> String, _ arithmetic: () throws(MediaError) -> Value
) throws(MediaError) -> Value {
  do { return try arithmetic() } catch {
    throw MediaError(.notExact, "\(what()) cannot be computed exactly: \(error.description)")
  }
}

extension Rational {
  /// The nearest whole number, or an error when it does not fit 64 bits.
  func wholeNumber(
    _ rounding: TimeRounding, of what: @autoclosure () -> String
  ) throws(MediaError) -> Int64 {
    guard let whole = Int64(exactly: rounded(rounding)) else {
      throw MediaError(.notExact, "\(what()) does not fit 64 bits")
    }
    return whole
  }
}
