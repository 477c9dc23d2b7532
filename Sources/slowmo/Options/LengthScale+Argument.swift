// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

extension LengthScale {
  /// Parses a scale such as `96=1m` or `96±1=1±0.002m`.
  init(argument text: String) throws {
    let sides = text.filter { $0 != " " }.split(separator: "=", omittingEmptySubsequences: false)
    let units: [(String, Double)] = [("mm", 0.001), ("cm", 0.01), ("m", 1)]
    guard sides.count == 2, let unit = units.first(where: { sides[1].hasSuffix($0.0) }),
      // Both ends of a length are marked to about one pixel, so the uncertainty of the length is √2
      // pixels.
      let pixels = measuredValue(sides[0], uncertainty: 2.0.squareRoot()),
      let length = measuredValue(sides[1].dropLast(unit.0.count), uncertainty: 0),
      let scale = LengthScale(
        pixels: pixels,
        meters: MeasuredValue(length.value * unit.1, uncertainty: length.uncertainty * unit.1))
    else {
      throw ValidationError("\(text) is not a scale; write it as '96=1m' or '96±1=1±0.002m'")
    }
    self = scale
  }
}

/// Parses a number, optionally with its uncertainty, such as `96±1` or `96+-1`.
private func measuredValue(_ text: Substring, uncertainty: Double) -> MeasuredValue? {
  let plain = text.replacing("+-", with: "±")
  let parts = plain.split(separator: "±", omittingEmptySubsequences: false).map { Double($0) }
  guard let value = parts.first ?? nil, value.isFinite, parts.count <= 2 else { return nil }
  guard parts.count == 2 else { return MeasuredValue(value, uncertainty: uncertainty) }
  guard let own = parts[1], own.isFinite, own >= 0 else { return nil }
  return MeasuredValue(value, uncertainty: own)
}
