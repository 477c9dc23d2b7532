// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport

extension TimeMapping {
  /// A mapping of `count` source samples from `start` to the output time `target`, at a speed.
  static func of(
    _ start: Int64, _ count: Int64, at speed: Speed, from target: MediaTime = .zero,
    sampleRate: Int32 = 48_000
  ) throws -> TimeMapping {
    let source = try TimeRange.of(start, start + count, per: sampleRate)
    let length = try MediaTime(source.duration / speed.fraction)
    return try TimeMapping(source: source, target: TimeRange(start: target, duration: length))
  }
}

/// Audio of a given length, with one formula per channel.
///
/// It is silent before its start and after its end.
struct Audio {
  var length: Int64
  var channels: [(Double) -> Double]

  /// A sine in every channel.
  static func sine(
    _ frequency: Double, length: Int64, sampleRate: Double = 48_000, channelCount: Int = 1
  ) -> Audio {
    Audio(
      length: length,
      channels: Array(
        repeating: { 0.5 * sin(2 * .pi * frequency * $0 / sampleRate) }, count: channelCount))
  }

  /// Noise of 24 bits that depends only on the position.
  ///
  /// Each channel has different noise.
  static func noise(length: Int64, channelCount: Int = 1) -> Audio {
    Audio(
      length: length,
      channels: (0..<channelCount).map { channel in
        { position in
          var random = SeededGenerator(seed: UInt64(bitPattern: Int64(position)) ^ UInt64(channel))
          return Double(Int64(random.next() >> 40) - (1 << 23)) / Double(1 << 24)
        }
      })
  }

  func samples(_ start: Int64, _ count: Int) -> [[Float]] {
    channels.map { value in
      (start..<start + Int64(count)).map { 0 <= $0 && $0 < length ? Float(value(Double($0))) : 0 }
    }
  }
}

/// The samples that a rendering wrote, and its report.
struct Rendering {
  var samples: [[Float]]
  var report: AudioRetimingReport
}

extension AudioRetimer {
  /// Renders into memory.
  func render(
    _ mappings: [TimeMapping], of audio: Audio, duration: MediaTime? = nil
  ) throws -> Rendering {
    var samples = [[Float]](repeating: [], count: channelCount)
    let report = try render(
      mappings: mappings, duration: duration, read: audio.samples,
      write: { block in
        for channel in samples.indices { samples[channel] += block[channel] }
      })
    return Rendering(samples: samples, report: report)
  }
}

/// A sine that is fitted to samples by least squares.
struct FittedSine {
  /// The amplitude, the phase at sample zero, and the ratio of the sine to the residual in dB.
  let amplitude: Double
  let phase: Double
  let signalToNoise: Double

  /// Fits a sine of known frequency, in radians per sample, to a range of samples.
  init(_ samples: [Float], _ range: Range<Int>, frequency: Double) {
    // These are the sums in the normal equations of the fit a·cos + b·sin.
    var (cc, ss, cs, xc, xs) = (0.0, 0.0, 0.0, 0.0, 0.0)
    for index in range {
      let (c, s) = (cos(frequency * Double(index)), sin(frequency * Double(index)))
      let x = Double(samples[index])
      cc += c * c
      ss += s * s
      cs += c * s
      xc += x * c
      xs += x * s
    }
    let determinant = cc * ss - cs * cs
    let (a, b) = ((xc * ss - xs * cs) / determinant, (xs * cc - xc * cs) / determinant)
    var (signal, noise) = (0.0, 0.0)
    for index in range {
      let fitted = a * cos(frequency * Double(index)) + b * sin(frequency * Double(index))
      signal += fitted * fitted
      noise += (Double(samples[index]) - fitted) * (Double(samples[index]) - fitted)
    }
    amplitude = (a * a + b * b).squareRoot()
    phase = atan2(a, b)  // x = amplitude · sin(frequency · index + phase)
    signalToNoise = 10 * log10(signal / max(noise, 1e-300))
  }
}

/// The frequency of a steady sine over a range, in radians per sample.
///
/// It is computed from the phase gained between the first and the second half, starting from a
/// close guess.
func measuredFrequency(_ samples: [Float], _ range: Range<Int>, near guess: Double) -> Double {
  let half = range.count / 2
  let first = FittedSine(samples, range.lowerBound..<range.lowerBound + half, frequency: guess)
  let second = FittedSine(
    samples, range.lowerBound + half..<range.lowerBound + 2 * half, frequency: guess)
  return guess + remainder(second.phase - first.phase, 2 * .pi) / Double(half)
}
