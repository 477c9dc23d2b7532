// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A discrete Fourier transform of complex numbers, in place, by the radix-2 algorithm.
package struct FourierTransform: Sendable {
  /// The number of points, a power of two.
  package let count: Int
  /// The cosines and sines of the first half of a circle, which is divided into ``count`` steps.
  private let cosines: [Float]
  private let sines: [Float]

  /// Prepares transforms of one length.
  ///
  /// - Precondition: `count` is a power of two of at least 2.
  package init(count: Int) {
    precondition(count >= 2 && count & (count - 1) == 0, "the length is a power of two")
    self.count = count
    let angles = (0..<count / 2).map { -2 * Double.pi * Double($0) / Double(count) }
    cosines = angles.map { Float(cos($0)) }
    sines = angles.map { Float(sin($0)) }
  }

  /// The smallest length of a transform for at least this many points.
  package static func length(for count: Int) -> Int {
    var length = 2
    while length < count { length *= 2 }
    return length
  }

  /// Transforms a signal into its spectrum.
  ///
  /// Both arrays have ``count`` elements. If the two arrays are exchanged, this is the inverse
  /// transform, but without the division by ``count``.
  package func transform(_ real: inout [Float], _ imaginary: inout [Float]) {
    precondition(real.count == count && imaginary.count == count, "the length of the transform")
    real.withUnsafeMutableBufferPointer { real in
      imaginary.withUnsafeMutableBufferPointer { imaginary in
        cosines.withUnsafeBufferPointer { cosines in
          sines.withUnsafeBufferPointer { sines in
            Self.reorder(real, imaginary)
            var half = 1
            while half < count {
              let step = count / (2 * half)
              var start = 0
              while start < count {
                for offset in 0..<half {
                  let (low, high) = (start + offset, start + offset + half)
                  let (cosine, sine) = (cosines[offset * step], sines[offset * step])
                  let x = real[high] * cosine - imaginary[high] * sine
                  let y = real[high] * sine + imaginary[high] * cosine
                  real[high] = real[low] - x
                  imaginary[high] = imaginary[low] - y
                  real[low] += x
                  imaginary[low] += y
                }
                start += 2 * half
              }
              half *= 2
            }
          }
        }
      }
    }
  }

  /// Exchanges each point with the point whose index has the same bits in reverse order.
  private static func reorder(
    _ real: UnsafeMutableBufferPointer<Float>, _ imaginary: UnsafeMutableBufferPointer<Float>
  ) {
    var mirror = 0
    for index in 1..<real.count {
      var bit = real.count >> 1
      while mirror & bit != 0 {
        mirror ^= bit
        bit >>= 1
      }
      mirror |= bit
      if index < mirror {
        real.swapAt(index, mirror)
        imaginary.swapAt(index, mirror)
      }
    }
  }
}
