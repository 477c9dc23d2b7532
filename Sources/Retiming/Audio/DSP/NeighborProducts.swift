// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Dot products of a template with a signal at neighboring offsets, and of the signal with itself.
///
/// Interpolation is a weighted sum of samples. So products with an interpolated signal are weighted
/// sums of the stored products, and the signal itself need not be interpolated.
struct NeighborProducts {
  /// The greatest offset in samples, in each direction.
  ///
  /// It covers the interpolation filter, shifted by up to one sample, and one more sample for the
  /// slope.
  static let reach = FractionalDelay.reach + 1

  private static let count = 2 * reach + 1

  /// The length of a row: one value per offset, then padding.
  private static let width = 24

  /// A row of numbers, such as products, stored in SIMD vectors.
  private struct Row {
    var parts: (SIMD8<Double>, SIMD8<Double>, SIMD8<Double>) = (.zero, .zero, .zero)

    init() {}

    init(_ values: UnsafeRawBufferPointer, from start: Int = 0) {
      func part(_ index: Int) -> SIMD8<Double> {
        values.loadUnaligned(fromByteOffset: (start + index) * 8, as: SIMD8<Double>.self)
      }
      parts = (part(0), part(8), part(16))
    }

    /// Adds the values of another row, multiplied by a factor, to this row.
    @inline(__always)
    mutating func add(_ other: Row, times factor: Double) {
      parts.0 += other.parts.0 * factor
      parts.1 += other.parts.1 * factor
      parts.2 += other.parts.2 * factor
    }

    func product(_ other: Row) -> Double {
      (parts.0 * other.parts.0 + parts.1 * other.parts.1 + parts.2 * other.parts.2).sum()
    }

    func write(to values: UnsafeMutableRawBufferPointer, at start: Int) {
      values.storeBytes(of: parts.0, toByteOffset: start * 8, as: SIMD8<Double>.self)
      values.storeBytes(of: parts.1, toByteOffset: (start + 8) * 8, as: SIMD8<Double>.self)
      values.storeBytes(of: parts.2, toByteOffset: (start + 16) * 8, as: SIMD8<Double>.self)
    }
  }

  /// The products of the template with the signal at each offset.
  private let cross: Row
  /// The products of the signal with itself at each pair of offsets, one row per first offset.
  private let own: [Double]

  /// Computes the products for offsets up to `reach` around a start position in a signal.
  ///
  /// - Precondition: The signal has at least `reach` more samples on each side of the template's
  ///   position.
  init(_ wanted: [Float], around start: Int, in samples: [Float]) {
    let (first, length, count, width) = (start - Self.reach, wanted.count, Self.count, Self.width)
    precondition(first >= 0 && first + length + count - 1 <= samples.count)
    func row(_ values: [Double]) -> [Double] {
      values + [Double](repeating: 0, count: width - values.count)
    }
    let (cross, firstRow) = samples.withUnsafeBufferPointer { samples in
      let here = samples.extracting(first..<first + length)
      return wanted.withUnsafeBufferPointer { wanted in
        (
          CrossCorrelation.products(wanted, samples, from: first, count: count),
          CrossCorrelation.products(here, samples, from: first, count: count)
        )
      }
    }
    self.cross = row(cross).withUnsafeBytes { Row($0) }
    // If both offsets move by one sample, the sum loses the product of the first two samples and
    // gains a product at the end.
    let before = row(samples[first..<first + count].map { Double($0) })
    let after = row(samples[first + length..<first + length + count - 1].map { Double($0) })
    let (gone, come) = (
      before.withUnsafeBytes { Row($0) }, after.withUnsafeBytes { Row($0) }
    )
    // Each row is computed from the row above, and written one column further to the right. The
    // last value written therefore lands in the first column of the next row. It is then
    // overwritten with a value of the first row, because the matrix is symmetric.
    var own = row(firstRow) + repeatElement(0, count: (count - 1) * width + 1)
    own.withUnsafeMutableBytes { own in
      for index in 1..<count {
        var values = Row(UnsafeRawBufferPointer(own), from: (index - 1) * width)
        values.add(gone, times: -before[index - 1])
        values.add(come, times: after[index - 1])
        values.write(to: own, at: index * width + 1)
        own.storeBytes(of: firstRow[index], toByteOffset: index * width * 8, as: Double.self)
      }
    }
    self.own = own
  }

  /// Returns the products of the template with the signal at an offset between -1 and 1.
  func estimator(at offset: Double) -> SubsampleDelayEstimator {
    let whole = offset.rounded(.down)
    let delay = FractionalDelay(offset - whole)
    var filter = [Double](repeating: 0, count: Self.width)
    // The index of the sample before the interpolated position.
    let middle = Self.reach + Int(whole)
    if delay.kernel.isEmpty {
      filter[middle + Int(delay.fraction)] = 1
    } else {
      for (index, weight) in delay.kernel.enumerated() {
        filter[middle + 1 - FractionalDelay.reach + index] = Double(weight)
      }
    }
    // The slope is half the difference between the next and the previous sample.
    var slope = [Double](repeating: 0, count: Self.width)
    for index in 1..<Self.count - 1 where filter[index] != 0 {
      slope[index - 1] -= filter[index] / 2
      slope[index + 1] += filter[index] / 2
    }
    var (ownFilter, ownSlope) = (Row(), Row())
    own.withUnsafeBytes { own in
      for index in 0..<Self.count {
        let row = Row(own, from: index * Self.width)
        ownFilter.add(row, times: filter[index])
        ownSlope.add(row, times: slope[index])
      }
    }
    let filterRow = filter.withUnsafeBytes { Row($0) }
    let slopeRow = slope.withUnsafeBytes { Row($0) }
    return SubsampleDelayEstimator(
      wantedOther: cross.product(filterRow), wantedSlope: cross.product(slopeRow),
      other: ownFilter.product(filterRow), otherSlope: ownFilter.product(slopeRow),
      slope: ownSlope.product(slopeRow))
  }
}

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
