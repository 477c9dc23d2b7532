// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat
import TestSupport
import Testing

/// NAL units of random byte streams, compared with a simple reference parser.
struct AnnexBTests {
  @Test func `Finds the NAL units between start codes of a byte stream`() {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<2_000 {
      // Few byte values are used, so that start codes and runs of zeros are common.
      let stream = (0..<Int.random(in: 0...60, using: &random)).map { _ in
        UInt8([0, 0, 0, 1, 1, 2, 200][Int.random(in: 0..<7, using: &random)])
      }
      let found = stream.withUnsafeBytes { bytes in
        AnnexB.units(of: bytes).map { [UInt8](bytes[$0]) }
      }
      #expect(found == Self.referenceUnits(of: stream), "\(stream)")
    }
  }

  /// A simple reference: cuts at each 00 00 01, then drops trailing zeros.
  private static func referenceUnits(of stream: [UInt8]) -> [[UInt8]] {
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
