// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Resampled sines, compared with the expected sines.
struct VarispeedTests {
  @Test(
    "Varispeed keeps the phase and level of a sine",
    arguments: [
      (1, 2, 997.0), (2, 1, 997), (1, 8, 997), (4, 5, 9001), (1, 32, 15_013), (32, 1, 97),
      (8, 1, 1009), (10_471_285, 10_000_000, 5003), (1929, 15_625, 12_007), (1, 1, 440),
      (16_001, 16_755, 18_041),
    ] as [(Int64, Int64, Double)])
  func sine(above: Int64, below: Int64, frequency: Double) throws {
    let speed = try Speed.of(above, below)
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let audio = Audio.sine(frequency, length: 400_000)
    // Renders 6000 output samples, from a whole source sample in the middle.
    let start = MediaTime(100_000, over: 48_000)
    let length = MediaTime(6000, over: 48_000)
    let end = try MediaTime(start.seconds + length * speed.fraction)
    let mapping = try TimeMapping(
      source: TimeRange(start: start, end: end), target: TimeRange(duration: length))
    let samples = try retimer.render([mapping], of: audio).samples[0]
    #expect(samples.count == 6000)

    let step = 2 * .pi * frequency / 48_000
    let fitted = FittedSine(samples, 0..<6000, frequency: step * speed.fraction.doubleValue)
    let expected = remainder(step * 100_000, 2 * .pi)
    let delay =
      -remainder(fitted.phase - expected, 2 * .pi) / (step * speed.fraction.doubleValue)
    let needed = speed.fraction.numerator > 262_143 ? 115.0 : 120
    Measured.note("varispeed \(speed)", "delay \(delay) samples, SNR \(fitted.signalToNoise) dB")
    #expect(delay.magnitude <= 1e-6)
    #expect(fitted.signalToNoise >= needed)
    #expect((fitted.amplitude - 0.5).magnitude < 0.0005)
  }

  @Test func `Varispeed audio can start at a fraction of a sample`() throws {
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let audio = Audio.sine(997, length: 400_000)
    for (above, below) in [(1, 8), (2, 1), (3, 2), (5, 7), (997, 1000)] as [(Int64, Int64)] {
      let speed = try Speed.of(above, below)
      for part in [1, 3, 5, 9] as [Int64] {
        // The start is a multiple of a tenth of a sample, at a timescale of 480 kHz.
        let start = 1_000_000 + part
        let source = try TimeRange.of(start, start + 48_000, per: 480_000)
        let length = try MediaTime(source.duration / speed.fraction)
        let mapping = try TimeMapping(source: source, target: TimeRange(duration: length))
        let samples = try retimer.render([mapping], of: audio).samples[0]
        let step = 2 * .pi * 997.0 / 48_000
        let slowStep = step * speed.fraction.doubleValue
        let fitted = FittedSine(samples, 0..<min(3000, samples.count), frequency: slowStep)
        let delay =
          -remainder(fitted.phase - step * Double(start) / 10, 2 * .pi) / slowStep
        #expect(delay.magnitude <= 1e-6, "\(speed) from \(start)/480000")
      }
    }
  }

  @Test func `Varispeed audio has no jump at a change of speed`() throws {
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let audio = Audio.sine(200, length: 100_000)
    var end = MediaTime.zero
    var position: Int64 = 10_000
    var mappings: [TimeMapping] = []
    for (above, below) in [(1, 1), (1, 8), (2, 1), (1, 2), (1, 1)] as [(Int64, Int64)] {
      mappings.append(try .of(position, 2000, at: .of(above, below), from: end))
      position += 2000
      end = mappings[mappings.count - 1].target.end
    }
    let samples = try retimer.render(mappings, of: audio).samples[0]
    // The exact value of each output sample is the value of the source at the position that it
    // plays.
    var worst = 0.0
    for mapping in mappings {
      let speed = try mapping.speed().fraction.doubleValue
      let first = Int(mapping.target.start.seconds.doubleValue * 48_000 + 0.5)
      let last = Int(mapping.target.end.seconds.doubleValue * 48_000 + 0.5)
      let start = mapping.source.start.seconds.doubleValue * 48_000
      for index in first..<last {
        let exact = 0.5 * sin(2 * .pi * 200 / 48_000 * (start + Double(index - first) * speed))
        worst = max(worst, (Double(samples[index]) - exact).magnitude)
      }
    }
    Measured.note("varispeed joins", "worst error \(worst)")
    #expect(worst < 1e-5)
  }

  @Test(
    "Varispeed removes only frequencies that would alias",
    arguments: [(0.9, 0.9...1.1), (1.1, 0...1e-4)])
  func band(part: Double, gains: ClosedRange<Double>) throws {
    // At double speed, the upper half of the frequency band is removed.
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let audio = Audio.sine(12_000 * part, length: 100_000)
    let samples = try retimer.render([.of(1000, 20_000, at: .of(2))], of: audio).samples[0]
    let gain = (samples.reduce(0) { $0 + Double($1 * $1) } / Double(samples.count) / 0.125)
      .squareRoot()
    #expect(gains.contains(gain))
  }
}
