// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A least-squares estimate of a small delay between two signals.
///
/// The wanted signal is fitted by a weighted sum of the other signal and that signal's slope. The
/// ratio of the two weights gives the delay. The result is exact for a tone, and approximate for
/// other signals if the delay is small.
struct SubsampleDelayEstimator {
  /// Dot products of the wanted signal, the other signal and the other signal's slope.
  let wantedOther: Double
  let wantedSlope: Double
  let other: Double
  let otherSlope: Double
  let slope: Double

  /// The delay of the wanted signal relative to the other signal, in samples; nil if the fit is not
  /// reliable.
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
