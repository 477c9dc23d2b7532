// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where a sound starts.
struct Onset: Hashable, Sendable {
  /// The sample, counted from the first one that was given.
  let position: Int64
  /// From 0, which might be a syllable, to 1, which is a clap: how far it rises above what was
  /// before, and how near it comes to the loudest of the last seconds.
  let strength: Double
  /// How much louder the sound becomes within 60 ms than the onset itself is, in decibels; less
  /// than zero where it dies away.
  let growth: Double

  /// Whether it is only the start of a slow rise.
  var isSoft: Bool { growth > 6 }

  /// How much of a lock it needs, from 0 to 1.
  ///
  /// A lock moves what is around it: at a stretch of 4, sound 30 ms after a clap by up to 90 ms.
  /// Nobody hears that in silence, but in sound that goes on, and most of all in a slow rise.
  var lockShare: Double {
    growth < 3
      ? 1 - 0.5 * min(1, max(0, (growth + 20) / 14)) : 0.5 * max(0, 1 - (growth - 3) / 6)
  }
}

/// Finds where sounds start: claps, consonants, drums.
///
/// It watches the power of the first difference, which weighs high frequencies more, summed over
/// all channels. An onset is where a millisecond of it exceeds every millisecond of the last 25 by
/// 10 dB: pulses of a voice above 40 Hz, which come again and again, are none. It is placed at the
/// loudest moment of the 4 ms that follow, to a quarter of a millisecond. Whether it is a click or
/// the start of a slow rise is told by the power above 100 Hz in the 60 ms that follow.
struct OnsetDetector {
  /// How many samples make a quarter of a millisecond.
  private let blockLength: Int
  /// The power of the millisecond from each block on that may still matter, and the number of the
  /// first of these blocks.
  private var milliseconds: [Float] = []
  private var firstBlock: Int64 = 0
  /// The power above 100 Hz of the same blocks.
  private var levels: [Float] = []
  /// The power of the last four blocks, the newest last.
  private var powers = SIMD4<Float>.zero
  private var blockCount = 0
  /// The loudest millisecond, which fades by half in two seconds.
  private var recent: Float = 0
  private static let decay: Float = 0.999_913
  /// The part of a block that has come.
  private var partial: Float = 0
  private var partialCount = 0
  private var partialLevel: Float = 0
  private var last: [Float]
  /// What lies below 100 Hz, and how fast that follows the samples.
  private var low: [Float]
  private let lowGain: Float
  private var quietUntil: Int64 = .min
  /// The block that is judged next.
  private var next: Int64

  private static let before = 100
  private static let after = 20
  /// How many blocks are averaged to compare an onset with what follows, and how many follow.
  private static let levelLength = 40
  private static let growthLength = 240
  private static let rise: Float = 10
  /// A hundred-thousandth of full scale: what is fainter is no event.
  private static let floor: Float = 1e-10

  /// Makes a detector to which samples from number zero on are given.
  init(sampleRate: Int, channelCount: Int) {
    blockLength = max(1, sampleRate / 4000)
    last = [Float](repeating: 0, count: channelCount)
    low = last
    lowGain = Float(min(1, 2 * .pi * 100 / Double(sampleRate)))
    next = 0
  }

  /// How many samples after an onset it is found, at most.
  static func delay(sampleRate: Int) -> Int {
    (after + growthLength) * max(1, sampleRate / 4000)
  }

  /// Before which sample no further onset will be found.
  var scanned: Int64 { next * Int64(blockLength) }

  /// Takes the samples that follow.
  ///
  /// - Returns: The onsets that were found, ascending.
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
      let before = loudest(max(0, index - Self.before)..<max(0, index - 3))
      guard now > Self.rise * before else { continue }
      let after = index...index + Self.after - 4
      let peak = after.max { milliseconds[$0] < milliseconds[$1] } ?? index
      // The middle of that millisecond.
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

  /// How much louder than the onset the loudest moment of what follows is, in decibels.
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

  private func loudest(_ range: Range<Int>) -> Float {
    milliseconds.withUnsafeBufferPointer { all in
      var loudest: Float = 0
      for index in range { loudest = max(loudest, all[index]) }
      return loudest
    }
  }
}
