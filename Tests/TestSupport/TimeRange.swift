// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

extension TimeRange {
  /// A time range between two whole numbers of units of 1/`timescale` s.
  package static func of(_ start: Int64, _ end: Int64, per timescale: Int32 = 1) throws -> TimeRange
  {
    try TimeRange(
      start: MediaTime(start, over: timescale),
      end: MediaTime(end, over: timescale))
  }
}

extension Speed {
  /// A speed as a fraction of two whole numbers.
  package static func of<Number: BinaryInteger>(_ above: Number, _ below: Number = 1) throws
    -> Speed
  {
    try Speed(Rational(Int128(above), over: Int128(below)))
  }
}
