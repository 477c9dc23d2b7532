// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport

/// Measured figures, printed if `MEASURE=1` is set.
enum Measured {
  static func note(_ what: String, _ figures: String) {
    if getenv("MEASURE") != nil { print("measured: \(what): \(figures)") }
  }
}

/// The result of playing a steady sine at another speed.
struct RetimedSine {
  /// The ratio of the output frequency to the original frequency.
  let pitch: Double
  /// A sine fitted to the middle half of the output.
  let fitted: FittedSine

  init(
    _ algorithm: AudioTimePitchAlgorithm, _ frequency: Double, at speed: Speed,
    sampleRate: Int = 48_000, from start: Int64 = 20_000
  ) throws {
    let retimer = try AudioRetimer(
      algorithm: algorithm, sampleRate: sampleRate, channelCount: 1)
    // Uses half a second of output or a tenth of a second of source, whichever is longer.
    let stretch = 1 / speed.fraction.doubleValue
    let count = Int64(max(3000, min(24_000 / stretch, 80_000)))
    let samples = try retimer.render(
      [.of(start, count, at: speed, sampleRate: Int32(sampleRate))],
      of: .sine(frequency, length: 200_000, sampleRate: Double(sampleRate))
    ).samples[0]
    let step = 2 * .pi * frequency / Double(sampleRate)
    let middle = samples.count / 4..<samples.count * 3 / 4
    let measured = measuredFrequency(samples, middle, near: step)
    pitch = measured / step
    fitted = FittedSine(samples, middle, frequency: measured)
    Measured.note(
      "\(algorithm) \(speed) \(frequency) Hz at \(sampleRate)",
      "\(pitch * frequency) Hz, SINAD \(fitted.signalToNoise) dB, \(fitted.amplitude)")
  }
}

/// A 440 Hz sine that continues through five speeds: 1, 1/8, 2, 1/2 and 1.
struct JoinedSpeeds {
  let audio = Audio.sine(440, length: 100_000)
  private(set) var mappings: [TimeMapping] = []
  let samples: [Float]

  /// The index of the first source sample.
  private static let start: Int64 = 10_000
  /// The number of source samples at each speed.
  private let count: Int64

  init(_ algorithm: AudioTimePitchAlgorithm, each count: Int64) throws {
    let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
    var end = MediaTime.zero
    var position = Self.start
    for (above, below) in [(1, 1), (1, 8), (2, 1), (1, 2), (1, 1)] as [(Int64, Int64)] {
      mappings.append(try .of(position, count, at: .of(above, below), from: end))
      position += count
      end = mappings[mappings.count - 1].target.end
    }
    self.count = count
    samples = try retimer.render(mappings, of: audio).samples[0]
  }

  /// The largest second difference of samples in a range, divided by that of the sine.
  ///
  /// A jump is far above 1.
  func roughness(_ range: Range<Int>) -> Double {
    let step = 2 * .pi * 440.0 / 48_000
    return range.map { index in
      let (before, after) = (Double(samples[index - 1]), Double(samples[index + 1]))
      return (before + after - 2 * Double(samples[index])).magnitude / (0.5 * step * step)
    }.max() ?? 0
  }

  /// Whether the ranges at speed 1 are bit for bit equal to the source.
  var isCopiedAtSpeedOne: Bool {
    let (length, last) = (Int(count), Self.start + 4 * count)
    return samples[..<length].elementsEqual(audio.samples(Self.start, length)[0])
      && samples[(samples.count - length)...].elementsEqual(audio.samples(last, length)[0])
  }
}
