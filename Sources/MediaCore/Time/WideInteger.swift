// SPDX-License-Identifier: Apache-2.0

/// An integer of unlimited size, for comparing the values of polynomials exactly.
///
/// Only the operations of a comparison are implemented: sum, product and sign.
struct WideInteger: Hashable {
  /// Base 2^64 digits, lowest first, without leading zeros; empty for zero.
  private var digits: [UInt64]
  private var isNegative: Bool

  static let zero = WideInteger(0)

  init(_ number: Int128) {
    let magnitude = number.magnitude
    digits = [
      UInt64(truncatingIfNeeded: magnitude), UInt64(truncatingIfNeeded: magnitude >> 64),
    ]
    isNegative = number < 0
    trim()
  }

  private init(digits: [UInt64], isNegative: Bool) {
    (self.digits, self.isNegative) = (digits, isNegative)
    trim()
  }

  private mutating func trim() {
    while digits.last == 0 { digits.removeLast() }
    if digits.isEmpty { isNegative = false }
  }

  /// The sign as -1, 0 or 1.
  var sign: Int { digits.isEmpty ? 0 : isNegative ? -1 : 1 }

  static prefix func - (number: WideInteger) -> WideInteger {
    WideInteger(digits: number.digits, isNegative: !number.isNegative)
  }

  static func - (left: WideInteger, right: WideInteger) -> WideInteger { left + -right }

  static func + (left: WideInteger, right: WideInteger) -> WideInteger {
    if left.isNegative == right.isNegative {
      return WideInteger(
        digits: sum(left.digits, right.digits), isNegative: left.isNegative)
    }
    return isLess(left.digits, right.digits)
      ? WideInteger(digits: difference(right.digits, left.digits), isNegative: right.isNegative)
      : WideInteger(digits: difference(left.digits, right.digits), isNegative: left.isNegative)
  }

  static func * (left: WideInteger, right: WideInteger) -> WideInteger {
    var product = [UInt64](repeating: 0, count: left.digits.count + right.digits.count)
    for (position, digit) in left.digits.enumerated() {
      var carry: UInt64 = 0
      for (otherIndex, other) in right.digits.enumerated() {
        let wide = digit.multipliedFullWidth(by: other)
        // A product of two digits plus two further digits is at most (2^64 - 1)^2 + 2·(2^64 - 1) =
        // 2^128 - 1, so the sum fits 128 bits.
        let (low, first) = wide.low.addingReportingOverflow(product[position + otherIndex])
        let (total, second) = low.addingReportingOverflow(carry)
        product[position + otherIndex] = total
        carry = wide.high + (first ? 1 : 0) + (second ? 1 : 0)
      }
      product[position + right.digits.count] = carry
    }
    return WideInteger(digits: product, isNegative: left.isNegative != right.isNegative)
  }

  private static func isLess(_ left: [UInt64], _ right: [UInt64]) -> Bool {
    guard left.count == right.count else { return left.count < right.count }
    for position in left.indices.reversed() where left[position] != right[position] {
      return left[position] < right[position]
    }
    return false
  }

  private static func sum(_ left: [UInt64], _ right: [UInt64]) -> [UInt64] {
    let (longer, shorter) = left.count < right.count ? (right, left) : (left, right)
    var sum = longer
    var carries = false
    for position in longer.indices {
      guard carries || position < shorter.count else { break }
      let (part, first) = longer[position].addingReportingOverflow(
        position < shorter.count ? shorter[position] : 0)
      let (total, second) = part.addingReportingOverflow(carries ? 1 : 0)
      sum[position] = total
      carries = first || second
    }
    if carries { sum.append(1) }
    return sum
  }

  /// Returns the digits of the difference of two numbers.
  ///
  /// The first number must not be less than the second.
  private static func difference(_ left: [UInt64], _ right: [UInt64]) -> [UInt64] {
    var difference = left
    var borrows = false
    for position in left.indices {
      guard borrows || position < right.count else { break }
      let (part, first) = left[position].subtractingReportingOverflow(
        position < right.count ? right[position] : 0)
      let (rest, second) = part.subtractingReportingOverflow(borrows ? 1 : 0)
      difference[position] = rest
      borrows = first || second
    }
    return difference
  }
}
