// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The start of an audio event.
struct Onset: Hashable, Sendable {
  /// The index of the sample at the onset, counted from the detector's first sample.
  let position: Int64
  /// The strength of the onset, from 0 (a weak accent) to 1 (a clap).
  ///
  /// The strength is the product of two ratings: the rise above the preceding level, and the level
  /// compared with the peak of the last seconds.
  let strength: Double
  /// The level increase within 60 ms after the onset, in decibels; negative if the audio decays.
  let growth: Double

  /// True for the start of a slow rise, false for a sudden onset such as a click.
  var isSoft: Bool { growth > 6 }

  /// The weight of the onset when 1:1 sections are assigned, from 0 (shortest section) to 1
  /// (longest).
  ///
  /// A 1:1 section displaces the audio around the onset: at a stretch of 4, audio 30 ms after a
  /// clap moves by up to 90 ms. Silence hides the displacement, but a continuing tone or a slow
  /// rise does not, so onsets in such audio get a lower weight.
  var lockShare: Double {
    growth < 3
      ? 1 - 0.5 * min(1, max(0, (growth + 20) / 14)) : 0.5 * max(0, 1 - (growth - 3) / 6)
  }
}

/// A detector of onsets such as claps, consonants and drums.
///
/// The detector uses the power of the first difference, summed over all channels, which emphasizes
/// high frequencies. An onset is a 1 ms window that exceeds all windows of the last 25 ms by 10 dB.
/// The pulses of a voice above 40 Hz repeat within 25 ms, so they do not count as onsets. The
/// position of an onset is the center of the loudest window in the following 4 ms, with a
/// resolution of 0.25 ms. The power above 100 Hz in the following 60 ms distinguishes a click,
/// which decays, from a slow rise.
struct OnsetDetector {
  /// Samples per block of 0.25 ms.
  private let blockLength: Int
  /// The power of the 1 ms window that starts at each block.
  ///
  /// Old blocks are dropped; `firstBlock` is the index of the first kept one.
  private var milliseconds: [Float] = []
  private var firstBlock: Int64 = 0
  /// The power above 100 Hz of each block.
  private var levels: [Float] = []
  /// The power of the last four blocks, newest last.
  private var powers = SIMD4<Float>.zero
  private var blockCount = 0
  /// The peak power of 1 ms windows, with a half-life of 2 s.
  private var recent: Float = 0
  private static let decay: Float = 0.999_913
  /// The accumulated power, sample count and power above 100 Hz of the incomplete block.
  private var partial: Float = 0
  private var partialCount = 0
  private var partialLevel: Float = 0
  private var last: [Float]
  /// The state and gain of a 100 Hz low-pass filter per channel.
  private var low: [Float]
  private let lowGain: Float
  private var quietUntil: Int64 = .min
  /// The index of the next block to examine.
  private var next: Int64

  private static let before = 100
  private static let after = 20
  /// The number of blocks over which a level is averaged, and the number of blocks after an onset
  /// that `growth` examines.
  private static let levelLength = 40
  private static let growthLength = 240
  private static let rise: Float = 10
  /// The noise floor as a power: an amplitude of 1e-5 of full scale.
  private static let floor: Float = 1e-10

  /// Creates a detector; the first appended sample has index zero.
  init(sampleRate: Int, channelCount: Int) {
    blockLength = max(1, sampleRate / 4000)
    last = [Float](repeating: 0, count: channelCount)
    low = last
    lowGain = Float(min(1, 2 * .pi * 100 / Double(sampleRate)))
    next = 0
  }

  /// Returns the delay in samples after which an onset is detected.
  static func delay(sampleRate: Int) -> Int {
    (after + growthLength) * max(1, sampleRate / 4000)
  }

  /// The sample before which detection is complete: onsets that are found later lie at or after
  /// this sample.
  var scanned: Int64 { next * Int64(blockLength) }

  /// Appends samples.
  ///
  /// - Returns: The onsets found, in ascending order.
  mutating func append(_ planes: Planes) -> [Onset] {
    var position = 0
    let count = planes.sampleCount
    while position < count {
      let taken = min(count - position, blockLength - partialCount)
      for channel in planes.indices {
        planes[channel].withUnsafeBufferPointer { plane in
          var (power, previous) = (Float(0), last[channel])
          var (level, slow) = (Float(0), low[channel])
          for index in position..<position + taken {
            let step = plane[index] - previous
            previous = plane[index]
            power += step * step
            let rest = plane[index] - slow
            slow += lowGain * rest
            level += rest * rest
          }
          (last[channel], low[channel]) = (previous, slow)
          partial += power
          partialLevel += level
        }
      }
      position += taken
      partialCount += taken
      if partialCount == blockLength {
        powers = SIMD4(powers[1], powers[2], powers[3], partial / Float(blockLength))
        blockCount += 1
        if blockCount >= 4 { milliseconds.append(powers.sum()) }
        levels.append(partialLevel / Float(blockLength))
        (partial, partialLevel, partialCount) = (0, 0, 0)
      }
    }
    return judge()
  }

  private mutating func judge() -> [Onset] {
    var found: [Onset] = []
    let ahead = Int64(Self.after + Self.growthLength)
    while next + ahead < firstBlock + Int64(milliseconds.count) {
      defer { next += 1 }
      let index = Int(next - firstBlock)
      let now = milliseconds[index]
      recent = max(recent * Self.decay, now)
      guard next >= quietUntil, now > Self.floor else { continue }
      let range = max(0, index - Self.before)..<max(0, index - 3)
      guard exceeds(range, now) else { continue }
      let before = loudest(range)
      let after = index...index + Self.after - 4
      let peak = after.max { milliseconds[$0] < milliseconds[$1] } ?? index
      // A 1 ms window has four blocks, so its center lies two blocks after its start.
      found.append(
        Onset(
          position: (firstBlock + Int64(peak) + 2) * Int64(blockLength),
          strength: strength(milliseconds[peak], above: before), growth: growth(at: peak)))
      quietUntil = firstBlock + Int64(peak + Self.before)
    }
    let spent = Int(next - firstBlock) - Self.before
    if spent > 4096 {
      milliseconds.removeFirst(spent)
      levels.removeFirst(spent)
      firstBlock += Int64(spent)
    }
    return found
  }

  private func strength(_ power: Float, above before: Float) -> Double {
    let rise = 10 * log10(Double(power / max(before, power * 1e-9)))
    let level = 10 * log10(Double(power / max(recent, power)))
    func part(_ value: Double, from low: Double, to high: Double) -> Double {
      min(1, max(0, (value - low) / (high - low)))
    }
    return part(rise, from: 10, to: 30)
      * part(level, from: -18, to: -2)
  }

  /// Returns the level increase after an onset, in decibels.
  private func growth(at peak: Int) -> Double {
    func level(_ start: Int) -> Float {
      levels[max(0, start)..<start + Self.levelLength].reduce(0, +)
    }
    let onset = level(peak - 4)
    let starts = stride(
      from: peak + 16, through: peak + Self.growthLength - Self.levelLength,
      by: Self.levelLength / 2)
    let loudest = starts.reduce(Float(0)) { max($0, level($1)) }
    guard onset > 0 else { return 0 }
    return 10 * log10(max(Double(loudest / onset), 1e-9))
  }

  /// Returns true if a power is more than 10 dB (``rise``) above each power in a range of blocks,
  /// false if not.
  ///
  /// The range is searched from its end, because the latest powers are the most likely to be too
  /// high.
  private func exceeds(_ range: Range<Int>, _ power: Float) -> Bool {
    milliseconds.withUnsafeBufferPointer { all in
      range.reversed().allSatisfy { power > Self.rise * all[$0] }
    }
  }

  private func loudest(_ range: Range<Int>) -> Float {
    milliseconds.withUnsafeBufferPointer { all in
      var loudest: Float = 0
      for index in range { loudest = max(loudest, all[index]) }
      return loudest
    }
  }
}
