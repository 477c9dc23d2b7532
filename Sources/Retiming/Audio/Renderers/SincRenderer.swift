// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore

/// A renderer that changes the pitch with the speed, using a windowed sinc at each output sample.
///
/// The renderer follows ramps, and supports any fractional position and speed. The filter equals
/// that of the constant-speed resampler, so both sound alike: 128 taps with a Kaiser window of beta
/// 14. Above speed 1 the bandwidth falls, and the number of taps grows in proportion.
final class SincRenderer: SegmentRenderer {
  private let map: SpeedMap
  private var window: SourceWindow
  /// The source sample to which positions in the map are relative.
  private let origin: Int64
  /// The next output sample, relative to the piece's first sample.
  private var position: Int64
  private var weights: [Float] = []

  /// Creates a renderer for a piece, including its lead and tail.
  init(_ piece: AudioPiece, channelCount: Int) throws(MediaError) {
    let start = try piece.position(at: -piece.lead)
    let nearest = try start.wholeNumber(.towardNegativeInfinity, of: "the sample \(start)")
    // The filter also reads samples before the piece. It is longest at speed 32, where each side
    // has 33 times `SincKernel.reach` taps (32 divided by the cutoff of 0.97).
    let reach = Int64(Double(SincKernel.reach) * 34)
    let (first, overflow) = nearest.subtractingReportingOverflow(reach)
    guard !overflow else { throw MediaError(.notExact, "the sample \(start) is too far") }
    origin = first
    map = try SpeedMap(piece, origin: first)
    window = SourceWindow(from: first, channelCount: channelCount)
    position = -piece.lead
  }

  func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    var made = Planes(
      repeating: [Float](repeating: 0, count: count), count: window.planes.count)
    for index in 0..<count {
      let output = Double(position)
      let source = map.source(at: output)
      let band = min(1, SincKernel.band / map.speed(atOutput: output))
      let reach = Int((Double(SincKernel.reach) / band).rounded(.up))
      let whole = source.rounded(.down)
      let first = Int(whole) - reach + 1
      try window.read(upTo: origin + Int64(first + 2 * reach), read)
      SincKernel.weigh(&weights, fraction: source - whole, reach: reach, band: band)
      let offset = Int(origin + Int64(first) - window.range.lowerBound)
      for channel in made.indices {
        made[channel][index] = SincKernel.sum(window.planes[channel], from: offset, weights)
      }
      position += 1
      if index & 1_023 == 0 { window.forget(before: origin + Int64(first)) }
    }
    return made
  }
}

/// A Kaiser-windowed sinc kernel, tabulated by fractional position.
enum SincKernel {
  /// The number of filter taps on each side of the center at full bandwidth.
  static let reach = 64
  /// The cutoff, relative to the lower of the Nyquist frequencies of source and output.
  static let band = 0.97

  /// The number of fractional positions in the table.
  ///
  /// Linear interpolation between them has an error below -125 dB.
  private static let phases = 1_024
  /// The kernel table: one row per phase, with taps in sample order.
  private static let table: [Float] = {
    var table: [Float] = []
    table.reserveCapacity((phases + 1) * 2 * reach)
    for phase in 0...phases {
      let fraction = Double(phase) / Double(phases)
      let row = (1 - reach...reach).map { offset -> Double in
        let distance = Double(offset) - fraction
        guard distance != 0 else { return 1 }
        let share = distance / Double(reach)
        return sin(.pi * distance) / (.pi * distance)
          * Kaiser.value(14 * (max(0, 1 - share * share)).squareRoot()) / Kaiser.value(14)
      }
      let sum = row.reduce(0, +)
      table += row.map { Float($0 / sum) }
    }
    return table
  }()

  /// Computes the `2·reach` taps for a position, which lies `fraction` after the middle sample.
  static func weigh(_ weights: inout [Float], fraction: Double, reach: Int, band: Double) {
    let count = 2 * reach
    if weights.count != count { weights = [Float](repeating: 0, count: count) }
    table.withUnsafeBufferPointer { table in
      guard band < 1 else {
        let offset = fraction * Double(phases)
        let row = min(Int(offset), phases - 1)
        let part = Float(offset - Double(row))
        for index in 0..<count {
          let value = table[row * count + index]
          weights[index] = value + (table[(row + 1) * count + index] - value) * part
        }
        return
      }
      var sum: Float = 0
      for index in 0..<count {
        let distance = (Double(index + 1 - reach) - fraction).magnitude * band
        let value = distance < Double(Self.reach) ? value(at: distance, table) : 0
        weights[index] = value
        sum += value
      }
      for index in 0..<count { weights[index] /= sum }
    }
  }

  /// Returns the kernel's value at a distance from the kernel's center; the distance must be below
  /// `reach`.
  private static func value(
    at distance: Double, _ table: UnsafeBufferPointer<Float>
  ) -> Float {
    // A distance is split into a sample index, by its integer part, and a phase.
    let whole = Int(distance)
    let offset = (distance - Double(whole)) * Double(phases)
    let row = min(Int(offset), phases - 1)
    let index = row * 2 * reach + reach - 1 - whole
    let value = table[index]
    return value + (table[index + 2 * reach] - value) * Float(offset - Double(row))
  }

  /// Returns the dot product of the taps and the samples that begin at a position.
  static func sum(_ plane: [Float], from start: Int, _ weights: [Float]) -> Float {
    plane.withUnsafeBufferPointer { plane in
      weights.withUnsafeBufferPointer {
        CrossCorrelation.product(plane.extracting(start..<start + $0.count), $0)
      }
    }
  }
}

/// The Kaiser window function.
enum Kaiser {
  /// The modified Bessel function of the first kind and order zero.
  static func value(_ x: Double) -> Double {
    var (sum, term) = (1.0, 1.0)
    var step = 1.0
    while term > sum * 1e-17 {
      term *= x * x / (4 * step * step)
      sum += term
      step += 1
    }
    return sum
  }
}
