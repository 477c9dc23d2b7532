// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds the flicker of lamps on the mains in the brightness of frames.
///
/// The lamps flicker at twice the frequency of the mains. A camera whose frame rate is too low for
/// this frequency shows an alias of it. The brightness is measured in horizontal strips, because a
/// rolling shutter exposes them at different times.
enum LightFlicker {
  /// The number of strips of a frame.
  static let stripCount = 8
  /// The smallest flicker that is reported, as a fraction of the mean brightness.
  private static let smallestDepth = 0.005
  /// The least ratio of the flicker's amplitude to the median amplitude of other frequencies.
  private static let contrast = 8.0
  /// The lowest frequency of an alias in hertz.
  ///
  /// A slower change of the brightness is taken for motion.
  private static let lowestAlias = 12.0
  /// At most this many frames are analyzed.
  static let largestCount = 2_000

  /// Flicker: the frequency of the mains in hertz, and the amplitude as a fraction of the mean
  /// brightness.
  struct Line {
    let mains: Int
    let depth: Double
  }

  /// Finds flicker in the brightness of frames.
  ///
  /// - Parameters:
  ///   - strips: The mean luma of each strip, by frame; empty for a frame that is unknown.
  ///   - seconds: The time of each frame in seconds.
  /// - Returns: The strongest flicker. Nil if none was found, or if its alias is so slow that it
  ///   could be motion.
  static func line(in strips: [[Double]], at seconds: [Double]) -> Line? {
    let known = strips.indices.filter { !strips[$0].isEmpty }.prefix(largestCount)
    guard known.count >= 48, let first = known.first, let last = known.last else { return nil }
    let times = known.map { seconds[$0] - seconds[first] }
    let duration = seconds[last] - seconds[first]
    let rate = Double(known.count - 1) / duration
    guard (0.2...60).contains(duration), rate.isFinite else { return nil }
    let series = (0..<stripCount).map { strip in highPassed(known.map { strips[$0][strip] }) }
    let lines = [50, 60].compactMap { mains -> Line? in
      let frequency = Double(2 * mains)
      // Sampled by frames, flicker near a multiple of the frame rate looks like a slow change.
      let alias = abs(frequency - (frequency / rate).rounded() * rate)
      guard alias >= lowestAlias, alias <= 0.47 * rate else { return nil }
      let depths = series.compactMap { series -> Double? in
        guard series.mean > 1 else { return nil }
        let offsets = stride(from: -1.0, through: 1.0, by: min(0.25, 0.25 / duration))
        let peak = offsets.map { amplitude(series.values, times, frequency + $0) }.max() ?? 0
        let others = stride(from: lowestAlias, to: 0.48 * rate, by: rate / 61).filter {
          abs($0 - alias) > max(2, 4 / duration)
        }.map { amplitude(series.values, times, $0) }.sorted()
        guard others.count >= 8 else { return nil }
        let floor = others[others.count * 9 / 10]
        return peak > contrast * 0.5 * floor && peak > contrast * others[others.count / 2]
          ? peak / series.mean : nil
      }
      let depth = depths.median
      return depths.count * 2 > stripCount && depth >= smallestDepth
        ? Line(mains: mains, depth: depth) : nil
    }
    return lines.max { $0.depth < $1.depth }
  }

  /// Returns a series without its slow changes, and the mean of the series.
  private static func highPassed(_ values: [Double]) -> (values: [Double], mean: Double) {
    var sums = [0.0]
    for value in values { sums.append(sums[sums.count - 1] + value) }
    let passed = values.indices.map { index in
      let range = max(0, index - 12)..<min(values.count, index + 13)
      return values[index] - (sums[range.upperBound] - sums[range.lowerBound]) / Double(range.count)
    }
    return (passed, sums[sums.count - 1] / Double(max(1, values.count)))
  }

  /// Returns the amplitude of a frequency in a series, with a Hann window.
  private static func amplitude(
    _ values: [Double], _ times: [Double], _ frequency: Double
  ) -> Double {
    var (real, imaginary, weights) = (0.0, 0.0, 0.0)
    let end = max(times[times.count - 1], .leastNormalMagnitude)
    for (value, time) in zip(values, times) {
      let weight = 0.5 - 0.5 * cos(2 * .pi * time / end)
      let phase = 2 * .pi * frequency * time
      real += weight * value * cos(phase)
      imaginary += weight * value * sin(phase)
      weights += weight
    }
    return weights > 0 ? 2 * (real * real + imaginary * imaginary).squareRoot() / weights : 0
  }
}
