// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The conversion between the signal of a video track and linear light.
///
/// Frames must be averaged in linear light, because a camera's exposure also adds up light and not
/// signal values. To blend frames, linearize their signals, average them, and encode the result.
package struct TransferFunction: Hashable, Sendable {
  /// The transfer characteristic, between a signal from 0 to 1 and light from 0 to 1.
  package enum Curve: Hashable, Sendable {
    /// BT.709, BT.601 and BT.2020; also used for untagged video.
    case bt709
    case sRGB
    case power(Double)
    /// SMPTE ST 2084; a light value of 1 is 10 000 cd/m².
    case pq
    /// ARIB STD-B67.
    case hlg
  }

  package let curve: Curve
  /// The weights of red and blue in luma (Kr and Kb).
  ///
  /// The weight of green is `1 - red - blue`.
  package let red: Double
  package let blue: Double

  package init(curve: Curve, red: Double, blue: Double) {
    (self.curve, self.red, self.blue) = (curve, red, blue)
  }

  /// Converts a signal to linear light.
  ///
  /// Signals in video range may be negative. For these the curve is mirrored at zero.
  package func linearize(_ signal: Double) -> Double {
    signal < 0 ? -linearizePositive(-signal) : linearizePositive(signal)
  }

  /// Converts linear light to a signal: the inverse of ``linearize(_:)``.
  package func encode(_ light: Double) -> Double {
    light < 0 ? -encodePositive(-light) : encodePositive(light)
  }

  private func linearizePositive(_ signal: Double) -> Double {
    switch curve {
    case .bt709:
      return signal < 0.081242858298635
        ? signal / 4.5 : pow((signal + 0.0992968268094429) / 1.0992968268094429, 1 / 0.45)
    case .sRGB:
      return signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
    case .power(let exponent): return pow(signal, exponent)
    case .pq:
      let root = pow(signal, 1 / Self.pq.m2)
      let above = max(root - Self.pq.c1, 0)
      let below = Self.pq.c2 - Self.pq.c3 * root
      // The denominator of the PQ formula becomes zero at a signal above 1. So signals of 1 and
      // above are returned unchanged.
      return signal >= 1 ? signal : pow(above / below, 1 / Self.pq.m1)
    case .hlg:
      return signal <= 0.5
        ? signal * signal / 3 : (exp((signal - Self.hlg.c) / Self.hlg.a) + Self.hlg.b) / 12
    }
  }

  private func encodePositive(_ light: Double) -> Double {
    switch curve {
    case .bt709:
      return light < 0.018053968510807
        ? light * 4.5 : 1.0992968268094429 * pow(light, 0.45) - 0.0992968268094429
    case .sRGB:
      return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    case .power(let exponent): return pow(light, 1 / exponent)
    case .pq:
      guard light < 1 else { return light }
      let root = pow(light, Self.pq.m1)
      return pow(
        (Self.pq.c1 + Self.pq.c2 * root) / (1 + Self.pq.c3 * root), Self.pq.m2)
    case .hlg:
      return light <= 1.0 / 12
        ? (3 * light).squareRoot()
        : Self.hlg.a * log(12 * light - Self.hlg.b) + Self.hlg.c
    }
  }

  private static let pq = (
    m1: 2610.0 / 16_384, m2: 2523.0 / 4096 * 128, c1: 3424.0 / 4096, c2: 2413.0 / 4096 * 32,
    c3: 2392.0 / 4096 * 32
  )
  private static let hlg = (a: 0.17883277, b: 0.28466892, c: 0.55991073)
}
