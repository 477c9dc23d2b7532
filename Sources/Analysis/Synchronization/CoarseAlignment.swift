// SPDX-License-Identifier: Apache-2.0

import OvercrankRetiming

/// The offsets between two signals to about one sample, by a whitened cross-correlation over all offsets.
///
/// Each band of frequencies counts nearly the same, so a hum or a tone cannot hide the rest. The greatest
/// sum alone proves nothing: audio that repeats has the more of it, the longer the signals overlap. So the
/// correlation coefficient of the overlap counts, too, and other offsets with about the same one.
struct CoarseAlignment {
  /// An offset at which the signals correlate.
  struct Peak {
    /// The position of the second signal's first sample in the first signal.
    var offset: Int
    /// Whether one of the two signals is inverted relative to the other.
    let isInverted: Bool
    /// The correlation, relative to the greatest one.
    let share: Double
    /// The magnitude of the correlation coefficient of the overlap, from 0 to 1.
    let coefficient: Double
  }

  /// The evidence of the signals for an offset.
  enum Evidence {
    /// One of them is silent, or they are too short.
    case none
    /// They have nothing in common.
    case contradiction
    /// They agree at these offsets, the greatest correlation first, but at none of them certainly.
    case several([Peak])
    /// They agree at one offset.
    case one(Peak, rival: Double)
  }

  let evidence: Evidence

  /// The least height of the greatest correlation, in standard deviations of the others.
  ///
  /// The highest of a million offsets of noise is 5 standard deviations high.
  private static let minimumHeight = 9.0
  /// The least number of standard deviations of unrelated audio by which the samples of the overlap must
  /// agree, and a lower one with a coefficient that unrelated claps do not reach.
  ///
  /// Claps of two recordings without a common event line up somewhere, but differ in their waveforms.
  private static let minimumAgreement = (alone: 6.0, withCoefficient: 3.2)
  private static let minimumCoefficient = 0.6
  /// As ``minimumCoefficient``, if the caller limits the offset.
  private static let minimumLimitedCoefficient = 0.5
  /// The least coefficient and correlation of a rival, relative to those of the greatest correlation.
  ///
  /// In audio that repeats at least once, the neighbors of an offset have half of its correlation, or
  /// less if an event is near an end. Among six irregular claps that are all alike, a pair has a sixth.
  private static let rivalCoefficient = 0.85
  private static let rivalShare = 0.25
  /// The least product of both that makes a rival of an offset with a lower coefficient.
  ///
  /// At the right offset, an event at the end of one recording lowers the coefficient.
  private static let rivalProduct = 0.6
  /// As above, for the offsets that audio without a certain offset permits.
  private static let possibleCoefficient = 0.7
  private static let possibleShare = 0.1

  /// Searches all offsets at which the signals overlap, or those within a limit.
  ///
  /// - Parameters:
  ///   - first: The signal that is searched.
  ///   - second: The signal that is found in it.
  ///   - limit: The greatest distance of the offset from `origin`, in samples; nil for any.
  ///   - origin: The offset of the two recordings' starts, which is not zero if `second` is a part
  ///     of its recording.
  ///   - neighborhood: Offsets this near to each other belong to one peak.
  init(_ first: [Float], _ second: [Float], limit: Int?, origin: Int, neighborhood: Int) {
    guard first.count > 16, second.count > 16, let whitened = WhitenedPair(first, second) else {
      evidence = .none
      return
    }
    // A shorter overlap may match by chance.
    let least = min(first.count, second.count) / 16
    var (from, to) = (least - second.count, first.count - least)
    if let limit { (from, to) = (max(from, origin - limit), min(to, origin + limit)) }
    guard from <= to else {
      evidence = .contradiction
      return
    }
    var best = from
    for offset in from...to
    where abs(whitened.correlation(at: offset)) > abs(whitened.correlation(at: best)) {
      best = offset
    }
    let peak = abs(whitened.correlation(at: best))
    guard peak > 0, peak.isFinite else {
      evidence = .none
      return
    }
    let noise = whitened.noise(from: from, to: to, beside: best, neighborhood)
    let coefficient = whitened.coefficient(at: best)
    let isHigh = Double(peak) >= Self.minimumHeight * noise
    guard isHigh else {
      evidence = .contradiction
      return
    }
    // The offsets that explain the recordings about as well, one for each peak.
    var peaks: [Peak] = []
    let lowest = max(Double(peak) * Self.possibleShare, Self.minimumHeight * noise * 2 / 3)
    for offset in from...to {
      let value = whitened.correlation(at: offset)
      let height = Double(abs(value))
      guard height >= lowest else { continue }
      let found = whitened.coefficient(at: offset)
      guard found >= coefficient * Self.possibleCoefficient else { continue }
      let candidate = Peak(
        offset: offset, isInverted: value < 0, share: height / Double(peak), coefficient: found)
      if let last = peaks.last, offset - last.offset <= neighborhood {
        if height > last.share * Double(peak) { peaks[peaks.count - 1] = candidate }
      } else {
        peaks.append(candidate)
      }
    }
    let rivals = peaks.filter {
      let share = $0.coefficient / coefficient
      return abs($0.offset - best) > neighborhood
        && ($0.share >= Self.rivalShare && share >= Self.rivalCoefficient
          || $0.share * share >= Self.rivalProduct)
    }
    let agreement = whitened.agreement(at: best)
    let isCertain =
      agreement >= Self.minimumAgreement.alone
      || (limit == nil
        ? coefficient >= Self.minimumCoefficient
          && agreement >= Self.minimumAgreement.withCoefficient
        : coefficient >= Self.minimumLimitedCoefficient)
    guard rivals.isEmpty, isCertain else {
      evidence = .several(peaks.sorted { $0.share > $1.share })
      return
    }
    let found = Peak(
      offset: best, isInverted: whitened.correlation(at: best) < 0, share: 1,
      coefficient: coefficient)
    let second = peaks.filter { abs($0.offset - best) > neighborhood }.map {
      $0.share * min(1, $0.coefficient / coefficient)
    }
    evidence = .one(found, rival: second.max() ?? noise / Double(peak))
  }
}

/// Two signals with about the same power in each band of frequencies, and their cross-correlation.
private struct WhitenedPair {
  private let first: [Float]
  private let second: [Float]
  private let correlations: [Float]
  /// The sums of the squares before each sample.
  private let energies: (first: [Double], second: [Double])

  /// Whitens two signals; nil for silence.
  init?(_ first: [Float], _ second: [Float]) {
    let count = FourierTransform.length(for: first.count + second.count)
    let transform = FourierTransform(count: count)
    // Both signals are real, so one transform holds both spectra.
    var real = Self.tapered(first) + [Float](repeating: 0, count: count - first.count)
    var imaginary = Self.tapered(second) + [Float](repeating: 0, count: count - second.count)
    transform.transform(&real, &imaginary)
    func spectra(_ index: Int) -> (a: (Float, Float), b: (Float, Float)) {
      let mirror = (count - index) & (count - 1)
      return (
        (real[index] + real[mirror], imaginary[index] - imaginary[mirror]),
        (imaginary[index] + imaginary[mirror], real[mirror] - real[index])
      )
    }
    var powers = ([Double](repeating: 0, count: count), [Double](repeating: 0, count: count))
    for index in 0..<count {
      let (a, b) = spectra(index)
      powers.0[index] = Double(a.0 * a.0 + a.1 * a.1)
      powers.1[index] = Double(b.0 * b.0 + b.1 * b.1)
    }
    // Divides by the mean power over about 50 Hz. If each frequency were divided by its own power,
    // audio that repeats would match only at the offset at which the ends of both signals meet.
    let width = max(1, count / 320)
    guard let one = Self.mean(powers.0, width), let other = Self.mean(powers.1, width) else {
      return nil
    }
    var cross = (
      real: [Float](repeating: 0, count: count), imaginary: [Float](repeating: 0, count: count)
    )
    var both = cross
    for index in 0..<count {
      var (a, b) = spectra(index)
      let (scaleA, scaleB) = (
        Float(1 / one[index].squareRoot()), Float(1 / other[index].squareRoot())
      )
      a = (a.0 * scaleA, a.1 * scaleA)
      b = (b.0 * scaleB, b.1 * scaleB)
      cross.real[index] = a.0 * b.0 + a.1 * b.1
      cross.imaginary[index] = a.1 * b.0 - a.0 * b.1
      // The first signal is the real part of the inverse transform, and the second the imaginary one.
      (both.real[index], both.imaginary[index]) = (a.0 - b.1, a.1 + b.0)
    }
    // The inverse transform: the arrays are exchanged. Without its factor, all values are `count`
    // times as great.
    transform.transform(&cross.imaginary, &cross.real)
    transform.transform(&both.imaginary, &both.real)
    correlations = cross.real.map { $0 / Float(count) }
    self.first = both.real.prefix(first.count).map { $0 / Float(count) }
    self.second = both.imaginary.prefix(second.count).map { $0 / Float(count) }
    energies = (Self.sums(self.first), Self.sums(self.second))
  }

  private static func sums(_ samples: [Float]) -> [Double] {
    var sum = 0.0
    return [0]
      + samples.map { sample in
        sum += Double(sample * sample)
        return sum
      }
  }

  /// The correlation if the second signal begins at an offset in the first.
  func correlation(at offset: Int) -> Float {
    correlations[offset < 0 ? offset + correlations.count : offset]
  }

  /// The part of the first signal that overlaps with the second.
  private func overlap(_ offset: Int) -> Range<Int> {
    let start = max(0, offset)
    return start..<max(start, min(first.count, second.count + offset))
  }

  /// The magnitude of the correlation coefficient of the overlap.
  func coefficient(at offset: Int) -> Double {
    let range = overlap(offset)
    let one = energies.first[range.upperBound] - energies.first[range.lowerBound]
    let other =
      energies.second[range.upperBound - offset] - energies.second[range.lowerBound - offset]
    guard one > 0, other > 0 else { return 0 }
    return min(1, Double(abs(correlation(at: offset))) / (one * other).squareRoot())
  }

  /// The correlation in standard deviations of that of samples with these magnitudes and any signs.
  func agreement(at offset: Int) -> Double {
    let squares = overlap(offset).reduce(0.0) { sum, index in
      let product = Double(first[index] * second[index - offset])
      return sum + product * product
    }
    return squares > 0 ? Double(abs(correlation(at: offset))) / squares.squareRoot() : 0
  }

  /// The root mean square of the correlations, without a peak.
  func noise(from: Int, to: Int, beside best: Int, _ neighborhood: Int) -> Double {
    var (squares, count) = (0.0, 0)
    for offset in from...to where abs(offset - best) > neighborhood {
      let value = Double(correlation(at: offset))
      squares += value * value
      count += 1
    }
    if count < 64 {
      // A narrow limit leaves too few offsets to estimate the noise, so it is estimated from all
      // offsets.
      let peak = Double(correlation(at: best))
      squares = correlations.reduce(0) { $0 + Double($1 * $1) } - peak * peak
      count = correlations.count - 1
    }
    return (squares / Double(max(1, count))).squareRoot()
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
