// SPDX-License-Identifier: Apache-2.0

/// Runs an exact computation and returns its result.
///
/// If the computation throws because a number does not fit, the error thrown is `.notExact` with
/// `what` in its message.
package func exactly<Value>(
  _ what: @autoclosure () -> String, _ arithmetic: () throws(MediaError) -> Value
) throws(MediaError) -> Value {
  do { return try arithmetic() } catch {
    guard error.code.isArithmetic else { throw error }
    throw .notExact(what(), error.message)
  }
}

extension Rational {
  /// Returns the number; `what` names the number in the error message.
  ///
  /// - Throws: `MediaError` with `.notExact` for an invalid number.
  package func exact(_ what: @autoclosure () -> String) throws(MediaError) -> Rational {
    guard isValid else {
      throw .notExact(what(), "it exceeds the range of exact times")
    }
    return self
  }

  /// Returns the number rounded to an integer.
  ///
  /// `what` names the number in the error message.
  ///
  /// - Throws: `MediaError` with `.notExact` when the result does not fit 64 bits.
  package func wholeNumber(
    _ rounding: TimeRounding, of what: @autoclosure () -> String
  ) throws(MediaError) -> Int64 {
    guard isValid, let whole = try Int64(exactly: rounded(rounding)) else {
      throw .notExact(what(), "it exceeds 64 bits")
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
