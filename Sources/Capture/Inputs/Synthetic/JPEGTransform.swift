// SPDX-License-Identifier: Apache-2.0

/// The discrete cosine transform of 8 by 8 samples, and the quantization of its coefficients.
///
/// The method of Arai, Agui and Nakajima needs five multiplications for eight samples. Its result
/// lacks a constant factor per coefficient, which is merged into the quantization.
struct JPEGTransform: Sendable {
  /// The factor for each DCT coefficient, which includes the division by the quantizer step, in
  /// zigzag order.
  private let factors: [Float]
  /// For each position in zigzag order, the index of the coefficient in row order.
  private let order: [Int]
  private let flatFactor: Float

  /// Creates a transform from a quantization table in zigzag order.
  init(quantizer: [UInt8]) {
    let scales: [Float] = [
      1, 1.387039845, 1.306562965, 1.175875602, 1, 0.785694958, 0.5411961, 0.275899379,
    ]
    // Zigzag order goes along the diagonals from the upper left corner, alternately upward and
    // downward.
    let positions = (0..<64).sorted { first, second in
      func key(_ position: Int) -> Int {
        let (x, y) = (position % 8, position / 8)
        return (x + y) * 8 + ((x + y) % 2 == 0 ? x : y)
      }
      return key(first) < key(second)
    }
    order = positions
    factors = zip(quantizer, positions).map { step, position in
      1 / (Float(step) * scales[position % 8] * scales[position / 8] * 8)
    }
    flatFactor = 8 / Float(quantizer[0])
  }

  /// The DC coefficient of a block whose samples are all equal.
  ///
  /// Its other coefficients are zero.
  func coefficient(ofFlat sample: UInt8) -> Int32 {
    Int32(((Float(sample) - 128) * flatFactor).rounded())
  }

  /// Transforms samples in place.
  ///
  /// - Parameters:
  ///   - samples: The block, row by row, with values centered on 0.
  ///   - coefficients: Receives the quantized coefficients in zigzag order, at least up to the last
  ///     nonzero one.
  /// - Returns: The index of the last nonzero coefficient.
  func transform(_ samples: inout [Float], into coefficients: inout [Int32]) -> Int {
    samples.withUnsafeMutableBufferPointer { samples in
      coefficients.withUnsafeMutableBufferPointer { coefficients in
        for row in 0..<8 { Self.transform(samples, from: row * 8, step: 1) }
        for column in 0..<8 { Self.transform(samples, from: column, step: 8) }
        var last = 0
        for index in 0..<64 {
          let value = samples[order[index]] * factors[index]
          // The addition of 1.5 · 2^23 rounds the value: the low bits of the mantissa then hold the
          // nearest integer.
          let rounded = Int32(bitPattern: (value + 12_582_912).bitPattern) - 0x4B40_0000
          coefficients[index] = rounded
          if rounded != 0 { last = index }
        }
        return last
      }
    }
  }

  private static func transform(
    _ samples: UnsafeMutableBufferPointer<Float>, from start: Int, step: Int
  ) {
    func sample(_ index: Int) -> Float { samples[start + index * step] }
    let (sum0, difference0) = (sample(0) + sample(7), sample(0) - sample(7))
    let (sum1, difference1) = (sample(1) + sample(6), sample(1) - sample(6))
    let (sum2, difference2) = (sample(2) + sample(5), sample(2) - sample(5))
    let (sum3, difference3) = (sample(3) + sample(4), sample(3) - sample(4))
    // Computes the DCT coefficients with even indices.
    let (outer, outerDifference) = (sum0 + sum3, sum0 - sum3)
    let (inner, innerDifference) = (sum1 + sum2, sum1 - sum2)
    let turned = (innerDifference + outerDifference) * 0.707106781
    samples[start] = outer + inner
    samples[start + 4 * step] = outer - inner
    samples[start + 2 * step] = outerDifference + turned
    samples[start + 6 * step] = outerDifference - turned
    // Computes the DCT coefficients with odd indices.
    let (first, middle, last) = (
      difference3 + difference2, difference2 + difference1, difference1 + difference0
    )
    let common = (first - last) * 0.382683433
    let low = 0.5411961 * first + common
    let high = 1.306562965 * last + common
    let half = middle * 0.707106781
    let (above, below) = (difference0 + half, difference0 - half)
    samples[start + 5 * step] = below + low
    samples[start + 3 * step] = below - low
    samples[start + step] = above + high
    samples[start + 7 * step] = above - high
  }
}
