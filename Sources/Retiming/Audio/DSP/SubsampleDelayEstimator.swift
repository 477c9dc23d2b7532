// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A least-squares estimate of a small delay between two signals.
///
/// The wanted signal is fitted by a weighted sum of the other signal and its slope. The ratio of
/// the two weights gives the delay. The result is exact for a tone, and approximate for other
/// signals if the delay is small.
struct SubsampleDelayEstimator {
  /// Dot products of the wanted signal, the other signal and its slope.
  private(set) var wantedOther: Double
  private var wantedSlope: Double
  private(set) var other: Double
  private var otherSlope: Double
  private var slope: Double

  /// Computes the dot products.
  ///
  /// `around` is the other signal with one extra sample at each end, which the slope needs.
  init(_ wanted: [Float], _ around: [Float]) {
    precondition(around.count == wanted.count + 2)
    typealias Eight = SIMD8<Float>
    let whole = wanted.count & ~7
    var (wo, ws, oo, os, ss) = (Eight.zero, Eight.zero, Eight.zero, Eight.zero, Eight.zero)
    wanted.withUnsafeBytes { wanted in
      around.withUnsafeBytes { around in
        for index in stride(from: 0, to: whole * 4, by: 32) {
          let value = wanted.loadUnaligned(fromByteOffset: index, as: Eight.self)
          let before = around.loadUnaligned(fromByteOffset: index, as: Eight.self)
          let here = around.loadUnaligned(fromByteOffset: index + 4, as: Eight.self)
          let after = around.loadUnaligned(fromByteOffset: index + 8, as: Eight.self)
          let slope = (after - before) * 0.5
          wo += value * here
          ws += value * slope
          oo += here * here
          os += here * slope
          ss += slope * slope
        }
      }
    }
    (wantedOther, wantedSlope) = (Double(wo.sum()), Double(ws.sum()))
    (other, otherSlope, slope) = (Double(oo.sum()), Double(os.sum()), Double(ss.sum()))
    for index in whole..<wanted.count {
      let (value, here) = (Double(wanted[index]), Double(around[index + 1]))
      let rise = Double(around[index + 2] - around[index]) / 2
      wantedOther += value * here
      wantedSlope += value * rise
      other += here * here
      otherSlope += here * rise
      slope += rise * rise
    }
  }

  /// The delay of the wanted signal in samples; nil if the fit is not reliable.
  var distance: Double? {
    let determinant = other * slope - otherSlope * otherSlope
    let share = wantedOther * slope - wantedSlope * otherSlope
    guard determinant > 1e-9 * other * slope, share > 0 else { return nil }
    // A tone delayed by the phase φ is cos φ · tone + sin φ · quadrature. The slope of a tone with
    // angular frequency ω is sin ω · quadrature. So ω follows from the power of the slope, φ from
    // the two weights, and the delay is φ / ω.
    let sine = min(1, (slope / other).squareRoot())
    let angle = asin(sine)
    guard angle > 1e-6 else { return nil }
    let tangent = (wantedSlope * other - wantedOther * otherSlope) / share * sine
    return atan(tangent) / angle
  }
}
