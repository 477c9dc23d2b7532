// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A fractional delay filter: a Kaiser-windowed sinc for one position between two samples.
package struct FractionalDelay {
  /// The number of samples needed on each side of a position.
  static let reach = 8

  /// The distance of the position from the sample before it, in samples, from 0 to 1.
  let fraction: Double
  /// The filter taps in order of the samples; empty for an integer position.
  let kernel: [Float]

  /// The filter without a fractional part.
  static let none = FractionalDelay(0)

  package init(_ fraction: Double) {
    // A position within 1e-5 of a sample uses that sample, because the difference is inaudible.
    let isBetween = fraction > 1e-5 && fraction < 1 - 1e-5
    self.fraction = isBetween ? fraction : fraction.rounded()
    guard isBetween else {
      kernel = []
      return
    }
    // In sin(πx)/(πx), x changes by 1 from tap to tap. The sine then only changes its sign, so it
    // is computed once.
    let sine = sin(.pi * fraction) / .pi
    let weights = (1 - Self.reach...Self.reach).map { position -> Double in
      let distance = Double(position) - fraction
      return (position & 1 == 0 ? -sine : sine) / distance * Self.window(distance)
    }
    let sum = weights.reduce(0, +)
    kernel = weights.map { Float($0 / sum) }
  }

  /// The Kaiser window with beta 8.
  ///
  /// The index is the squared distance from the center, scaled so that the edge of the window is
  /// 1024.
  private static let windows: [Double] = (0...1_024).map {
    Kaiser.value(8 * (1 - Double($0) / 1_024).squareRoot())
  }

  private static func window(_ distance: Double) -> Double {
    let position = min(1, distance * distance / Double(reach * reach)) * 1_024
    let index = min(1_023, Int(position))
    return windows[index] + (windows[index + 1] - windows[index]) * (position - Double(index))
  }

  /// Returns interpolated samples at `start + fraction`, `start + 1 + fraction` and so on.
  ///
  /// The plane must extend ``reach`` samples beyond both ends.
  package func samples(of plane: [Float], from start: Int, count: Int) -> [Float] {
    guard !kernel.isEmpty else {
      let first = start + Int(fraction)
      return Array(plane[first..<first + count])
    }
    // Sixteen results are computed at a time with SIMD, and the remaining ones one by one.
    let first = start + 1 - Self.reach
    precondition(first >= 0 && first + count + 2 * Self.reach - 1 <= plane.count)
    return [Float](unsafeUninitializedCapacity: count) { made, length in
      let results = UnsafeMutableRawBufferPointer(made)
      plane.withUnsafeBytes { bytes in
        kernel.withUnsafeBufferPointer { kernel in
          var index = 0
          while index + 16 <= count {
            var sum = SIMD16<Float>.zero
            for position in 0..<2 * Self.reach {
              sum +=
                kernel[position]
                * bytes.loadUnaligned(
                  fromByteOffset: (first + index + position) * 4, as: SIMD16<Float>.self)
            }
            results.storeBytes(of: sum, toByteOffset: index * 4, as: SIMD16<Float>.self)
            index += 16
          }
          while index < count {
            var sum: Float = 0
            for position in 0..<2 * Self.reach {
              sum +=
                kernel[position]
                * bytes.loadUnaligned(
                  fromByteOffset: (first + index + position) * 4, as: Float.self)
            }
            results.storeBytes(of: sum, toByteOffset: index * 4, as: Float.self)
            index += 1
          }
        }
      }
      length = count
    }
  }
}
