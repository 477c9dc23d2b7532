// SPDX-License-Identifier: Apache-2.0

/// Does arithmetic of exact times, and names what was being computed if it does not fit.
package func exactly<Value>(
  _ what: @autoclosure () -> String, _ arithmetic: () throws(MediaError) -> Value
) throws(MediaError) -> Value {
  do { return try arithmetic() } catch {
    guard error.code.isArithmetic else { throw error }
    throw .notExact(what(), error.message)
  }
}

extension Rational {
  /// The number itself where it is one; `what` says whose value does not fit.
  ///
  /// - Throws: `MediaError` with `.notExact` for an invalid number.
  package func exact(_ what: @autoclosure () -> String) throws(MediaError) -> Rational {
    guard isValid else {
      throw .notExact(what(), "it does not fit the numbers that hold exact times")
    }
    return self
  }

  /// The whole number that the named rounding gives.
  ///
  /// - Throws: `MediaError` with `.notExact` when it does not fit 64 bits.
  package func wholeNumber(
    _ rounding: TimeRounding, of what: @autoclosure () -> String
  ) throws(MediaError) -> Int64 {
    guard isValid, let whole = try Int64(exactly: rounded(rounding)) else {
      throw .notExact(what(), "it does not fit 64 bits")
    }
    return whole
  }
}

extension MediaError {
  fileprivate static func notExact(_ what: String, _ reason: String) -> MediaError {
    MediaError(
      .notExact, "\(what) cannot be computed exactly: \(reason)",
      recovery: "choose rounder times or speeds")
  }
}
