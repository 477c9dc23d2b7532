// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Measures the time offset of two recordings by their audio.
///
/// The true offset is known.
struct AudioAlignmentTests {
  private static let rate = 48_000

  /// Two recordings of the same random audio.
  ///
  /// The second begins later, by a fractional number of samples.
  private struct Recordings {
    var first: [Float]
    var second: [Float]
    let offset: Double

    /// Makes recordings of `length` samples.
    ///
    /// `noise` is the amplitude of each microphone's noise, relative to the audio.
    init(seed: UInt64, length: Int = 60_000, noise: Double) {
      var random = SeededGenerator(seed: seed)
      let count = 1 << 17
      let transform = FourierTransform(count: count)
      var (real, imaginary) = (
        [Float](repeating: 0, count: count), [Float](repeating: 0, count: count)
      )
      // A speech-like spectrum, up to 6 kHz.
      for index in 1..<count / 8 {
        let level = 1 / (1 + Double(index) / Double(count / 48))
        (real[index], imaginary[index]) = (
          Float(random.normal() * level), Float(random.normal() * level)
        )
      }
      let start = Int.random(in: 500..<20_000, using: &random)
      let fraction = Double.random(in: 0..<1, using: &random)
      offset = (Double(start) + fraction) / Double(rate)
      var shifted = (real: real, imaginary: imaginary)
      for index in 1..<count / 8 {
        let angle = 2 * Double.pi * Double(index) / Double(count) * fraction
        let (x, y) = (Double(real[index]), Double(imaginary[index]))
        shifted.real[index] = Float(x * cos(angle) - y * sin(angle))
        shifted.imaginary[index] = Float(x * sin(angle) + y * cos(angle))
      }
      // With real and imaginary parts swapped, the forward transform is the inverse transform.
      transform.transform(&imaginary, &real)
      transform.transform(&shifted.imaginary, &shifted.real)
      let power = real.reduce(0.0) { $0 + Double($1 * $1) } / Double(count)
      let scale = Float(0.1 / power.squareRoot())
      first = (0..<length).map { real[$0] * scale + Float(random.normal() * noise * 0.1) }
      second = (0..<length).map {
        shifted.real[start + $0] * scale + Float(random.normal() * noise * 0.1)
      }
    }
  }

  private static func measured(
    _ first: [Float], _ second: [Float], limit: Double? = nil
  ) throws -> RecordingOffset {
    let signals = try [first, second].map { try MonoAudio($0, sampleRate: rate).signal() }
    return try AudioAlignment(signals[0], signals[1], sampleRate: rate)
      .offset(limit: limit, names: ("a.mov", "b.mov"))
  }

  @Test func `The stated audio offset uncertainty covers the true offset`()
    throws
  {
    var (errors, widths, covered): ([Double], [Double], Int) = ([], [], 0)
    for seed in 0..<100 as Range<UInt64> {
      // The noise is 30 dB below the audio.
      let pair = Recordings(seed: seed, noise: 0.0316)
      let found = try Self.measured(pair.first, pair.second)
      #expect(found.method == .audio && found.confidence > 0.5)
      let error = found.offset.doubleValue - pair.offset
      errors.append(error)
      widths.append(found.uncertainty.doubleValue)
      covered += abs(error) <= found.uncertainty.doubleValue ? 1 : 0
    }
    let worst = errors.map { abs($0) }.max() ?? 1
    let deviation = (errors.reduce(0) { $0 + $1 * $1 } / 100).squareRoot()
    let width = widths.reduce(0, +) / 100
    print(
      "sync: worst \(worst * 1e9) ns, RMS \(deviation * 1e9) ns, interval \(width * 1e9) ns,",
      "\(covered) of 100")
    #expect(worst <= 1e-4)
    #expect(covered >= 95)
    #expect(width <= 3 * deviation)
  }

  @Test func `Aligns noisy audio of inverted polarity and lower level`()
    throws
  {
    for seed in 0..<10 as Range<UInt64> {
      let pair = Recordings(seed: seed, noise: 1)
      let found = try Self.measured(pair.first, pair.second.map { -0.2 * $0 })
      #expect(abs(found.offset.doubleValue - pair.offset) <= found.uncertainty.doubleValue * 1.5)
      #expect(abs(found.offset.doubleValue - pair.offset) <= 1e-4)
    }
  }

  @Test func `The offset is negative if the second recording began earlier`() throws {
    let pair = Recordings(seed: 3, noise: 0.03)
    let found = try Self.measured(pair.second, pair.first)
    #expect(abs(found.offset.doubleValue + pair.offset) < 1e-6)
  }

  @Test func `Measures clock drift and the offset at a stated time`() throws {
    let pair = Recordings(seed: 5, noise: 0.01)
    // The second clock is 80 ppm slow, so its samples are further apart.
    let drift = 80e-6
    let stretched = (0..<pair.first.count - 100).map { index -> Float in
      let position = Double(index) * (1 + drift)
      let whole = Int(position)
      guard whole > 20, whole < pair.first.count - 20 else { return pair.first[whole] }
      return FractionalDelay(position - Double(whole))
        .samples(of: Array(pair.first[whole - 12..<whole + 13]), from: 12, count: 1)[0]
    }
    let found = try Self.measured(pair.first, stretched)
    #expect(abs((found.drift ?? 0) - drift * 1e6) < 1, "\(found)")
    #expect(abs(found.offset.doubleValue - found.time.doubleValue * drift) < 1e-6, "\(found)")
  }

  @Test func `Refuses recordings that have no audio in common`() throws {
    for seed in 0..<10 as Range<UInt64> {
      let one = Recordings(seed: seed, noise: 0.1)
      let other = Recordings(seed: seed + 100, noise: 0.1)
      #expect(performing: { try Self.measured(one.first, other.second) }, throws: Self.isRefusal)
    }
    let silence = [Float](repeating: 0, count: 48_000)
    #expect(performing: { try Self.measured(silence, silence) }, throws: Self.isRefusal)
    #expect(performing: { try Self.measured([], []) }, throws: Self.isRefusal)
    let tone = (0..<48_000).map { Float(sin(Double($0) * 0.05)) }
    let otherTone = (0..<48_000).map { Float(sin(Double($0) * 0.07)) }
    #expect(performing: { try Self.measured(tone, otherTone) }, throws: Self.isRefusal)
  }

  @Test func `Refuses to align repeating audio without an offset limit`() throws {
    var random = SeededGenerator(seed: 9)
    let bar = (0..<9_600).map { _ in Float(random.normal() * 0.1) }
    let song = Array(repeating: bar, count: 20).flatMap(\.self)
    let one = song[..<120_000].map { $0 + Float(random.normal() * 0.01) }
    let other = song[700..<120_700].map { $0 + Float(random.normal() * 0.01) }
    #expect {
      try Self.measured(one, other)
    } throws: {
      ($0 as? MediaError)?.code == .ambiguousMatch
    }
    let found = try Self.measured(one, other, limit: 0.05)
    #expect(abs(found.offset.doubleValue - 700.0 / 48_000) < 1e-6, "\(found)")
  }

  @Test func `A single clap suffices to align two recordings`() throws {
    var random = SeededGenerator(seed: 4)
    let clap = (0..<1_500).map { Float(random.normal() * 0.5 * exp(-Double($0) / 300)) }
    func recording(_ start: Int) -> [Float] {
      var samples = (0..<96_000).map { _ in Float(random.normal() * 0.0005) }
      for index in clap.indices { samples[start + index] += clap[index] }
      return samples
    }
    let found = try Self.measured(recording(50_000), recording(20_000))
    let error = found.offset.doubleValue - 30_000.0 / 48_000
    #expect(abs(error) <= found.uncertainty.doubleValue && abs(error) < 1e-5, "\(found)")
    #expect(found.uncertainty.doubleValue < 1e-4)
  }

  private static func isRefusal(_ error: any Error) -> Bool {
    // Tones match each other at several offsets, so either error is a correct refusal.
    [.nothingInCommon, .ambiguousMatch].contains((error as? MediaError)?.code)
  }
}
