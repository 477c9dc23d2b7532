// SPDX-License-Identifier: Apache-2.0

import OvercrankRetiming

/// The offset between two signals to about one sample, by a whitened cross-correlation over all
/// offsets.
///
/// Each band of frequencies counts nearly the same, so a hum or a tone cannot hide the rest.
struct CoarseAlignment {
  /// The position of the second signal's first sample in the first signal.
  let offset: Int
  /// Whether one of the two signals is inverted relative to the other.
  let isInverted: Bool
  /// The height of the best correlation peak, in standard deviations of the correlation at the
  /// other offsets.
  let height: Double
  /// The height of the second-best correlation peak relative to the best peak.
  let rival: Double

  /// Searches all offsets at which the signals overlap, or those within a limit.
  ///
  /// Nil for signals that are silent or do not overlap within the limit.
  ///
  /// - Parameters:
  ///   - first: The signal that is searched.
  ///   - second: The signal that is found in it.
  ///   - limit: The greatest distance of the offset from `origin`, in samples; nil for any.
  ///   - origin: The offset of the two recordings' starts, which is not zero if `second` is a part
  ///     of its recording.
  ///   - neighborhood: The greatest distance in samples from the best offset at which an offset
  ///     still belongs to the best peak.
  init?(_ first: [Float], _ second: [Float], limit: Int?, origin: Int, neighborhood: Int) {
    guard first.count > 16, second.count > 16 else { return nil }
    let scores = Self.correlation(first, second)
    let count = scores.count
    // An overlap of less than 1/16 of the shorter signal may match by chance.
    let least = min(first.count, second.count) / 16
    var (from, to) = (least - second.count, first.count - least)
    if let limit { (from, to) = (max(from, origin - limit), min(to, origin + limit)) }
    guard from <= to else { return nil }
    func score(_ offset: Int) -> Float { scores[offset < 0 ? offset + count : offset] }
    var best = from
    for offset in from...to where abs(score(offset)) > abs(score(best)) { best = offset }
    let peak = abs(score(best))
    guard peak > 0, peak.isFinite else { return nil }
    var (squares, others, next): (Double, Int, Float) = (0, 0, 0)
    for offset in from...to where abs(offset - best) > neighborhood {
      let value = abs(score(offset))
      squares += Double(value * value)
      others += 1
      next = max(next, value)
    }
    if others < 64 {
      // A narrow limit leaves too few offsets to estimate the noise, so the noise is estimated from
      // all offsets.
      squares = scores.reduce(0) { $0 + Double($1 * $1) } - Double(peak * peak)
      others = count - 1
    }
    let noise = (squares / Double(max(1, others))).squareRoot()
    offset = best
    isInverted = score(best) < 0
    height = noise > 0 ? Double(peak) / noise : .infinity
    rival = Double(next / peak)
  }

  /// The whitened circular cross-correlation, long enough for all offsets.
  private static func correlation(_ first: [Float], _ second: [Float]) -> [Float] {
    let count = FourierTransform.length(for: first.count + second.count)
    let transform = FourierTransform(count: count)
    // Both signals are real, so one transform holds both spectra.
    var real = tapered(first) + [Float](repeating: 0, count: count - first.count)
    var imaginary = tapered(second) + [Float](repeating: 0, count: count - second.count)
    transform.transform(&real, &imaginary)
    var (crossReal, crossImaginary) = (
      [Float](repeating: 0, count: count), [Float](repeating: 0, count: count)
    )
    var powers = ([Double](repeating: 0, count: count), [Double](repeating: 0, count: count))
    for index in 0..<count {
      let mirror = (count - index) & (count - 1)
      let (a, b) = (
        (real[index] + real[mirror], imaginary[index] - imaginary[mirror]),
        (imaginary[index] + imaginary[mirror], real[mirror] - real[index])
      )
      crossReal[index] = a.0 * b.0 + a.1 * b.1
      crossImaginary[index] = a.1 * b.0 - a.0 * b.1
      powers.0[index] = Double(a.0 * a.0 + a.1 * a.1)
      powers.1[index] = Double(b.0 * b.0 + b.1 * b.1)
    }
    // Divides by the mean power over about 50 Hz. If each frequency were divided by its own power,
    // audio that repeats would match only at the offset at which the ends of both signals meet.
    let width = max(1, count / 320)
    guard let one = mean(powers.0, width), let other = mean(powers.1, width) else {
      return [Float](repeating: 0, count: count)
    }
    for index in 0..<count {
      let scale = Float(1 / (one[index] * other[index]).squareRoot())
      crossReal[index] *= scale
      crossImaginary[index] *= scale
    }
    // Exchanging the real and the imaginary part makes this the inverse transform.
    transform.transform(&crossImaginary, &crossReal)
    return crossReal
  }

  /// The circular moving mean of a power spectrum, plus a thousandth of the mean over all
  /// frequencies.
  ///
  /// Nil for silence.
  private static func mean(_ power: [Double], _ width: Int) -> [Double]? {
    let (count, half) = (power.count, width / 2)
    let total = power.reduce(0, +)
    guard total > 0, total.isFinite else { return nil }
    let least = total / Double(count) / 1_000
    var sum = (-half...half).reduce(0.0) { $0 + power[($1 + count) % count] }
    return (0..<count).map { index in
      defer {
        sum += power[(index + half + 1) % count] - power[(index - half + count) % count]
      }
      return max(sum / Double(2 * half + 1), 0) + least
    }
  }

  /// The signal, faded in and out over a sixteenth of its length, at most 50 ms.
  private static func tapered(_ signal: [Float]) -> [Float] {
    let length = min(signal.count / 16, AudioAlignment.coarseRate / 20)
    var result = signal
    for index in 0..<length {
      let share = (Float(index) + 0.5) / Float(length)
      result[index] *= share
      result[signal.count - 1 - index] *= share
    }
    return result
  }
}
