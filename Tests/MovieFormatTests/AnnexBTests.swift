// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat
import TestSupport
import Testing

/// The NAL units of a byte stream, against the obvious way to find them.
struct AnnexBTests {
  @Test func `The units of a byte stream are those between start codes`() {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<2_000 {
      // Few values, so that start codes and runs of zeros are common.
      let stream = (0..<Int.random(in: 0...60, using: &random)).map { _ in
        UInt8([0, 0, 0, 1, 1, 2, 200][Int.random(in: 0..<7, using: &random)])
      }
      let found = stream.withUnsafeBytes { bytes in
        AnnexB.units(of: bytes).map { [UInt8](bytes[$0]) }
      }
      #expect(found == Self.plainUnits(of: stream), "\(stream)")
    }
  }

  /// The obvious way: cut at each 00 00 01, then drop zeros at the ends.
  private static func plainUnits(of stream: [UInt8]) -> [[UInt8]] {
    var units: [[UInt8]] = []
    var unit: [UInt8]?
    var index = 0
    while index < stream.count {
      if stream[index...].starts(with: [0, 0, 1]) {
        if let unit { units.append(unit) }
        unit = []
        index += 3
      } else {
        unit?.append(stream[index])
        index += 1
      }
    }
    if let unit { units.append(unit) }
    return units.compactMap { unit in
      var unit = unit
      while unit.last == 0 { unit.removeLast() }
      return unit.isEmpty ? nil : unit
    }
  }
}
