// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Measures the time offset of two recordings by a light that is switched on and off.
///
/// The true offset is known.
struct FlashAlignmentTests {
  /// The brightness that a camera measures in each frame: the share of the exposure in which the
  /// light is on.
  private static func brightness(
    rate: Double, start: Double, exposure: Double, count: Int,
    light: [Range<Double>], _ random: inout SeededGenerator
  ) -> FlashAlignment.Brightness {
    var result = FlashAlignment.Brightness()
    for index in 0..<count {
      let time = Double(index) / rate
      let opened = start + time..<start + time + exposure / rate
      let lit = light.reduce(0.0) { sum, range in
        let overlap = range.clamped(to: opened)
        return sum + overlap.upperBound - overlap.lowerBound
      }
      result.times.append(time)
      result.values.append(60 + 80 * lit * rate / exposure + random.normal() * 0.1)
    }
    return result
  }

  @Test(arguments: [0.3, 0.05])
  func `A flash aligns recordings within the stated uncertainty`(
    shortest: Double
  ) throws {
    var (errors, widths, covered, worst): ([Double], [Double], Int, Double) = ([], [], 0, 0)
    for seed in 0..<100 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let on = Double.random(in: 0.5..<0.6, using: &random)
      let light = [on..<on + .random(in: 0.05..<0.1, using: &random)]
      let start = Double.random(in: 0.1..<0.2, using: &random)
      let recordings = [(240.0, 0.0), (120.0, start)].map { rate, start in
        let exposure = Double.random(in: shortest...1, using: &random)
        return FlashAlignment.light(
          Self.brightness(
            rate: rate, start: start, exposure: exposure, count: Int(rate), light: light, &random))
      }
      let found = try FlashAlignment.offset(
        recordings[0], recordings[1], limit: nil, names: ("a.mov", "b.mov"))
      let error = found.offset.doubleValue - start
      errors.append(error)
      widths.append(found.uncertainty.doubleValue)
      covered += abs(error) <= found.uncertainty.doubleValue ? 1 : 0
      worst = max(worst, abs(error) * 120)
      #expect(found.method == .flash && found.matchCount == 2)
    }
    let deviation = (errors.reduce(0) { $0 + $1 * $1 } / 100).squareRoot()
    let width = widths.reduce(0, +) / 100
    print(
      "flash, exposures from \(shortest): worst \(worst) frames, RMS \(deviation * 120), interval \(width * 120),",
      "\(covered) of 100")
    // With exposures below a third of the frame interval, most light changes fall between two
    // exposures.
    #expect(worst <= (shortest < 0.3 ? 0.8 : 0.5))
    #expect(covered >= 95)
    #expect(width <= 3 * deviation)
  }

  @Test func `Refuses recordings without a flash or with a blinking light`() throws {
    var random = SeededGenerator(seed: 1)
    let dark = FlashAlignment.light(
      Self.brightness(rate: 60, start: 0, exposure: 1, count: 60, light: [], &random))
    #expect(dark.edges.isEmpty)
    #expect {
      try FlashAlignment.offset(dark, dark, limit: nil, names: ("a", "b"))
    } throws: {
      ($0 as? MediaError)?.code == .nothingInCommon
    }
    let blinks = (0..<20).map { (number: Int) -> Range<Double> in
      let start = 0.1 + Double(number) * 0.2
      return start..<start + 0.1
    }
    let edges = FlashAlignment.light(
      Self.brightness(rate: 60, start: 0, exposure: 1, count: 240, light: blinks, &random))
    #expect {
      try FlashAlignment.offset(edges, edges, limit: nil, names: ("a", "b"))
    } throws: {
      ($0 as? MediaError)?.code == .ambiguousMatch
    }
    let near = try FlashAlignment.offset(edges, edges, limit: 0.05, names: ("a", "b"))
    #expect(near.offset == .zero)
  }
}
