// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Does arithmetic of exact times, and says what was being computed if it does not fit.
func exactly<Value>(
  _ what: @autoclosure () -> String, _ arithmetic: () throws(TimingError) -> Value
) throws(RetimingError) -> Value {
  do { return try arithmetic() } catch {
    throw RetimingError(.notExact, "\(what()) cannot be computed exactly: \(error.description)")
  }
}

extension Rational {
  /// The nearest whole number, or an error when it does not fit 64 bits.
  func wholeNumber(
    _ rounding: TimeRounding, of what: @autoclosure () -> String
  ) throws(RetimingError) -> Int64 {
    guard let whole = Int64(exactly: rounded(rounding)) else {
      throw RetimingError(.notExact, "\(what()) does not fit 64 bits")
    }
    return whole
  }
}
