// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads a sound between its samples: a sinc under a Kaiser window, made once for a place between
/// two of them.
struct FractionalDelay {
  /// How many samples either side of a place are needed.
  static let reach = 8

  /// How far behind the sample before it the place is, from 0 to 1.
  let fraction: Double
  /// What the samples count for, the farthest before the place first; none on a sample itself.
  private let kernel: [Float]

  /// On the samples themselves.
  static let none = FractionalDelay(0)

  init(_ fraction: Double) {
    // Nearer than anyone hears: the sample itself.
    let isBetween = fraction > 1e-5 && fraction < 1 - 1e-5
    self.fraction = isBetween ? fraction : fraction.rounded()
    guard isBetween else {
      kernel = []
      return
    }
    // The sine is the same for every tap, but for its sign.
    let sine = sin(.pi * fraction) / .pi
    let weights = (1 - Self.reach...Self.reach).map { position -> Double in
      let distance = Double(position) - fraction
      return (position & 1 == 0 ? -sine : sine) / distance * Self.window(distance)
    }
    let sum = weights.reduce(0, +)
    kernel = weights.map { Float($0 / sum) }
  }

  /// Kaiser's window of 8 by the square of the distance from its middle, as a part of its reach.
  private static let windows: [Double] = (0...1_024).map {
    Kaiser.value(8 * (1 - Double($0) / 1_024).squareRoot())
  }

  private static func window(_ distance: Double) -> Double {
    let position = min(1, distance * distance / Double(reach * reach)) * 1_024
    let index = min(1_023, Int(position))
    return windows[index] + (windows[index + 1] - windows[index]) * (position - Double(index))
  }

  /// The samples of a plane from a place on: behind `start` by the fraction, one for each sample.
  ///
  /// The plane must reach as far beyond them as is needed.
  func samples(of plane: [Float], from start: Int, count: Int) -> [Float] {
    guard !kernel.isEmpty else {
      let first = start + Int(fraction)
      return Array(plane[first..<first + count])
    }
    // In eights, beyond the end where need be: what is too much is cut off.
    let first = start + 1 - Self.reach
    precondition(first >= 0 && first + count + 2 * Self.reach - 1 <= plane.count)
    return [Float](unsafeUninitializedCapacity: count) { made, length in
      plane.withUnsafeBytes { bytes in
        var index = 0
        while index + 8 <= count {
          var sum = SIMD8<Float>.zero
          for (position, weight) in kernel.enumerated() {
            let offset = (first + index + position) * 4
            sum += weight * bytes.loadUnaligned(fromByteOffset: offset, as: SIMD8<Float>.self)
          }
          for lane in 0..<8 { made.initializeElement(at: index + lane, to: sum[lane]) }
          index += 8
        }
        while index < count {
          var sum: Float = 0
          for (position, weight) in kernel.enumerated() {
            let offset = (first + index + position) * 4
            sum += weight * bytes.loadUnaligned(fromByteOffset: offset, as: Float.self)
          }
          made.initializeElement(at: index, to: sum)
          index += 1
        }
      }
      length = count
    }
  }
}
