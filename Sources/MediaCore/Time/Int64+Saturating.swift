// SPDX-License-Identifier: Apache-2.0

extension Int64 {
  /// Converts a number, rounded toward zero and clamped to the range of `Int64`.
  ///
  /// NaN gives 0.
  ///
  /// Use this for numbers from drivers and files: `Int64(_:)` traps if a number is out of range.
  package init(saturating value: Double) {
    if value.isNaN {
      self = 0
    } else if value >= 0x1p63 {
      self = .max
    } else if value < -0x1p63 {
      self = .min
    } else {
      self = Int64(value)
    }
  }

  /// Returns the product, clamped to the range of `Int64`.
  package func saturatingMultiplied(by factor: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    guard overflow else { return product }
    return (self < 0) == (factor < 0) ? .max : .min
  }
}
