// SPDX-License-Identifier: Apache-2.0

/// The difference in luma between two frames, by blocks of 16 by 16 pixels.
///
/// Each block counts with its mean absolute difference, in levels from 0 to 255.
struct FrameDifference {
  /// The difference of the block that changed most.
  var largest: Double
  /// The median of the block differences.
  var median: Double
  /// The difference that a tenth of the blocks do not exceed: the noise where nothing moves.
  var lowest: Double
  /// The coding types of the two frames, as one number: each is intra, predicted or bidirectional.
  ///
  /// Encoders code noise in some types of frames and leave it out in others.
  var types: Int32

  /// The largest block difference from the frame before this one to the frame after it; nil unless
  /// this frame resembles the one before, and its neighbors do not resemble the frames before them.
  ///
  /// The value is small if an object bounces back, because the object then returns to its earlier
  /// position.
  var around: Double?

  /// Whether the difference may come from lossy coding alone.
  var isAlike = false

  /// The value of ``types`` for two intra frames.
  static let intra: Int32 = 1 << 8 | 1

  /// Compares two planes of equal size.
  init(_ plane: LumaPlane, after previous: LumaPlane) {
    var histogram = BlockHistogram()
    plane.forEachBlock { histogram.add(plane.difference(to: previous, at: $0)) }
    largest = histogram.largest
    median = histogram.value(at: 0.5)
    lowest = histogram.value(at: 0.1)
    types = plane.type << 8 | previous.type
  }

  /// Makes a difference from given values.
  init(largest: Double, median: Double, lowest: Double, types: Int32) {
    (self.largest, self.median, self.lowest, self.types) = (largest, median, lowest, types)
  }
}

/// The number of blocks by their difference, in steps of a sixteenth of a level.
private struct BlockHistogram {
  private static let stepsPerLevel = 16.0
  private var counts = [Int32](repeating: 0, count: 255 * 16 + 1)
  private var total: Int32 = 0
  private(set) var largest = 0.0

  mutating func add(_ difference: Double) {
    // Differences are rounded up, so only blocks without any difference count as zero.
    counts[min(counts.count - 1, Int((difference * Self.stepsPerLevel).rounded(.up)))] += 1
    total += 1
    largest = max(largest, difference)
  }

  /// The difference that a given fraction of the blocks does not exceed.
  func value(at part: Double) -> Double {
    var rest = Int32(Double(total) * part)
    for (step, count) in counts.enumerated() {
      rest -= count
      if rest < 0 { return Double(step) / Self.stepsPerLevel }
    }
    return largest
  }
}
