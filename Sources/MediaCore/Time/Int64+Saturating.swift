// SPDX-License-Identifier: Apache-2.0

extension Int64 {
  /// The whole number before the point, or the nearest there is; 0 for what is no number.
  ///
  /// Times of drivers and files may be anything, and none of them may trap.
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

  /// The product, or the nearest number there is.
  package func saturatingMultiplied(by factor: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    guard overflow else { return product }
    return (self < 0) == (factor < 0) ? .max : .min
  }
}
