// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRecording

/// A simulated audio card with a fast or slow clock and late timestamps.
///
/// Its times have the form in which the capture thread reports them. Its samples are a function of
/// true time.
private struct SimulatedCard {
  let rate: Int
  let driftPPM: Int64
  /// The maximum delay of a timestamp, in nanoseconds.
  let jitter: Int64
  /// The time of the card's sample 0, in nanoseconds of the capture clock.
  let epoch: Int64
  let wave: (_ seconds: Double) -> Double
  private(set) var sample: Int64 = 0
  private var clock: SampleClock
  private var random: SeededGenerator
  private var interruption: AudioInterruption?

  init(
    rate: Int, driftPPM: Int64 = 0, jitter: Int64 = 0, epoch: Int64 = 0, seed: UInt64 = 1,
    wave: @escaping (_ seconds: Double) -> Double
  ) {
    (self.rate, self.driftPPM, self.jitter, self.epoch) = (rate, driftPPM, jitter, epoch)
    self.wave = wave
    clock = SampleClock(nominalRate: Int64(rate))
    random = SeededGenerator(seed: seed)
  }

  /// The time of a sample in nanoseconds, rounded down.
  func nanoseconds(_ sample: Int64) -> Int64 {
    let scale = Int128(rate) * Int128(1_000_000 + driftPPM)
    return epoch + Int64(Int128(sample) * 1_000_000_000_000_000 / scale)
  }

  /// Reads the next samples.
  mutating func piece(_ count: Int) -> AudioTap.Piece {
    let late = jitter > 0 ? Int64.random(in: 0...jitter, using: &random) : 0
    let end = sample + Int64(count)
    clock.observe(sample: end, nanoseconds: nanoseconds(end) + late)
    let time = clock.nanoseconds(ofSample: sample, rounding: .halfAwayFromZero) ?? 0
    let actual = Double(rate) * (1 + Double(driftPPM) / 1e6)
    let start = Double(epoch) / 1e9
    let samples = (sample..<end).map { Float(wave(start + Double($0) / actual)) }
    sample = end
    defer { interruption = nil }
    return AudioTap.Piece(nanoseconds: time, interruption: interruption, channels: [samples])
  }

  /// Loses samples, so that the next sample has a later position.
  mutating func lose(_ count: Int64) {
    sample += count
    clock.restart()
    interruption = .missing(.overrun)
  }
}

/// A sine as a function of time, and how much samples differ from it.
private struct Sine {
  let hertz: Double
  let amplitude = 0.5

  func value(_ seconds: Double) -> Double { amplitude * sin(2 * .pi * hertz * seconds) }

  /// How late the samples are compared with the sine, in seconds.
  ///
  /// The result is below half a period.
  func lateness(of samples: ArraySlice<Float>, rate: Int) -> Double {
    var (inPhase, across) = (0.0, 0.0)
    for index in samples.indices {
      let phase = 2 * Double.pi * hertz * Double(index) / Double(rate)
      inPhase += Double(samples[index]) * sin(phase)
      across += Double(samples[index]) * cos(phase)
    }
    return -atan2(across, inPhase) / (2 * .pi * hertz)
  }

  /// The largest deviation of the samples from a sine of this frequency.
  ///
  /// A click deviates by at least the change of the sine from one sample to the next.
  func roughness(of samples: ArraySlice<Float>, rate: Int) -> Double {
    let rotation = 2 * cos(2 * .pi * hertz / Double(rate))
    var worst = 0.0
    for index in samples.indices.dropFirst().dropLast() {
      let bend =
        Double(samples[index + 1]) - rotation * Double(samples[index]) + Double(samples[index - 1])
      worst = max(worst, abs(bend))
    }
    return worst
  }
}

struct AudioAlignerTests {
  /// An hour at 2 kHz.
  ///
  /// Only times matter, so the sample rate has no influence.
  @Test(arguments: [(100, false), (-100, false), (100, true)] as [(Int64, Bool)])
  func `Audio from a drifting clock is at most 2 ms off for an hour`(
    drift: Int64, hasOverruns: Bool
  ) throws {
    let (rate, seconds) = (2_000, 3_600)
    let sine = Sine(hertz: 40)
    var card = SimulatedCard(
      rate: rate, driftPPM: drift, jitter: 1_000_000, epoch: -200_000_000, wave: sine.value)
    var aligner = try AudioAligner(rate: rate, channelCount: 1, originNanoseconds: 0)
    var output: [Float] = []
    var losses = 0
    while output.count < seconds * rate {
      output += try aligner.align(card.piece(40))[0]
      if hasOverruns, card.sample / 40 % 10_000 == 9_999 {
        card.lose(777)
        losses += 1
      }
    }
    var (worst, roughest, fastest, last) = (0.0, 0.0, 0.0, Double?.none)
    for second in 0..<seconds - 1 {
      let window = second * rate..<(second + 1) * rate
      let time = Double(second)
      if aligner.gaps.contains(where: {
        let begin = $0.time.doubleValue
        return begin < time + 1.1 && begin + Double($0.sampleCount) / Double(rate) > time - 0.1
      }) {
        last = nil
        continue
      }
      let late = sine.lateness(of: output[window], rate: rate)
      worst = max(worst, abs(late))
      if let last { fastest = max(fastest, abs(late - last)) }
      last = late
      roughest = max(roughest, sine.roughness(of: output[window], rate: rate))
    }
    let (found, reported) = (aligner.driftPPM ?? 0, aligner.worstError)
    let (gaps, offset) = (aligner.gaps, aligner.startOffset)
    print(
      "audio: an hour at \(drift) ppm, \(losses) overruns: at most \(worst * 1e6) us off, measured "
        + "\(found) ppm, pace off by at most \(fastest * 1e6) ppm, roughness \(roughest) of "
        + "\(sine.amplitude), reported \(reported * 1e6) us")
    // Jitter of 1 ms delays timestamps by half a millisecond on average, which cannot be measured.
    #expect(worst < 0.002)
    #expect(abs(found - Double(drift)) < 1)
    // A 40 Hz sine changes by 0.06 from sample to sample, so a click would be far above this limit.
    #expect(roughest < 0.0005)
    // Half a cent of pitch is far below an audible difference.
    #expect(fastest < 0.0006)
    #expect(gaps.count == losses && gaps.allSatisfy { $0.cause == .overrun })
    #expect(offset == 0)
  }

  @Test(arguments: [-300, 0, 150] as [Int64])
  func `Aligning audio by resampling keeps the timing of a tone`(drift: Int64) throws {
    let rate = 48_000
    let sine = Sine(hertz: 397)
    var card = SimulatedCard(rate: rate, driftPPM: drift, jitter: 300_000, wave: sine.value)
    var aligner = try AudioAligner(rate: rate, channelCount: 1, originNanoseconds: 0)
    var output: [Float] = []
    while output.count < 20 * rate { output += try aligner.align(card.piece(480))[0] }
    let roughness = sine.roughness(of: output[480..<19 * rate], rate: rate)
    let late = (0..<19).map { sine.lateness(of: output[$0 * rate..<($0 + 1) * rate], rate: rate) }
    print("audio: \(sine.hertz) Hz, \(drift) ppm: roughness \(roughness), late \(late) s")
    // The sine changes by 0.026 per sample, and this limit is 60 dB below.
    #expect(roughness < 0.00002)
    // At first the true sample rate of the card is unknown.
    #expect(late.allSatisfy { abs($0) < 0.000_9 })
    #expect(late.dropFirst(10).allSatisfy { abs($0) < 0.000_3 })
  }

  @Test func `Audio is trimmed to the start of the take`()
    throws
  {
    let rate = 48_000
    let sine = Sine(hertz: 997)
    for (epoch, skipped) in [(-1_234_567_891, 0), (0, 0), (250_000_000, 12_000)] as [(Int64, Int)] {
      var card = SimulatedCard(rate: rate, epoch: epoch, wave: sine.value)
      var aligner = try AudioAligner(rate: rate, channelCount: 1, originNanoseconds: 0)
      var output: [Float] = []
      while output.count < rate { output += try aligner.align(card.piece(480))[0] }
      let (offset, gaps) = (aligner.startOffset, aligner.gaps)
      #expect(offset == Int64(skipped) * 1_000_000_000 / 48_000 && gaps.isEmpty)
      // The filter mixes silence and audio for some samples around the start.
      let quiet = output.prefix(max(0, skipped - 64))
      #expect(quiet.allSatisfy { abs($0) < 0.000_1 })
      for index in skipped + 64..<rate {
        let expected = sine.value(Double(index) / Double(rate))
        #expect(abs(Double(output[index]) - expected) < 0.035, "\(index)")
        guard abs(Double(output[index]) - expected) < 0.035 else { break }
      }
      // The start is exact to half a sample, and the resampling then corrects the remaining offset.
      let late = sine.lateness(of: output[rate / 2..<rate], rate: rate)
      #expect(abs(late) < 0.000_010_5, "\(late)")
    }
  }

  @Test func `Silence is stored for lost audio and each gap is reported`()
    throws
  {
    let rate = 8_000
    let sine = Sine(hertz: 200)
    var card = SimulatedCard(rate: rate, driftPPM: 50, wave: sine.value)
    var aligner = try AudioAligner(rate: rate, channelCount: 1, originNanoseconds: 0)
    var output: [Float] = []
    func grow(to seconds: Double) throws {
      while Double(output.count) < seconds * Double(rate) {
        output += try aligner.align(card.piece(80))[0]
      }
    }
    try grow(to: 10)
    let first = card.sample
    card.lose(4_000)
    try grow(to: 20)
    // No samples arrive for three seconds, and then the card reports an overrun.
    let second = card.sample
    card.lose(24_000)
    output += try aligner.fill(before: 22 * 8_000, .late)[0]
    try grow(to: 30)
    // The clock of the card jumps by 100 ms without a reported interruption.
    let third = card.sample
    card.lose(800)
    var piece = card.piece(80)
    piece.interruption = nil
    output += try aligner.align(piece)[0]
    try grow(to: 35)
    output += try aligner.fill(before: 36 * 8_000, .ended, isLast: true)[0]
    let gaps = aligner.gaps
    #expect(gaps.map(\.cause) == [.overrun, .overrun, .clockJump, .ended])
    for (gap, (start, count)) in zip(
      gaps, [(first, 4_000), (second, 24_000), (third, 800)] as [(Int64, Int64)])
    {
      #expect(abs(gap.time.wholeNanoseconds - card.nanoseconds(start)) < 1_000_000)
      #expect(abs(gap.sampleCount - count) <= 8)
      let begin = Int(gap.time.wholeNanoseconds * 8 / 1_000_000)
      let silence = output[begin + 70..<begin + Int(gap.sampleCount) - 70]
      #expect(silence.allSatisfy { abs($0) < 0.000_1 })
    }
    #expect(output.count >= 36 * 8_000)
    for second in [1, 8, 12, 18, 25, 28, 31, 33] {
      let late = sine.lateness(of: output[second * rate..<(second + 1) * rate], rate: rate)
      #expect(abs(late) < 0.000_2, "\(late) s at \(second) s")
    }
  }

  @Test func `Random audio timestamps do not change the audio sample count`() throws {
    var random = SeededGenerator(seed: 4)
    let strange: [Int64] = [.min, .min + 1, -1, 0, 1, 1 << 40, 1 << 62, .max]
    for _ in 0..<20 {
      var aligner = try AudioAligner(rate: 8_000, channelCount: 2, originNanoseconds: 0)
      var count = 0
      for round in 0..<100 as Range<Int64> {
        var time = round * 10_000_000
        if Int.random(in: 0..<4, using: &random) == 0 {
          time = strange.randomElement(using: &random) ?? 0
        }
        let piece = AudioTap.Piece(
          nanoseconds: time,
          interruption: Bool.random(using: &random) ? .restart : nil,
          channels: Array(repeating: Array(repeating: 0.1, count: 80), count: 2))
        count += try aligner.align(piece)[0].count
      }
      count += try aligner.fill(before: 40_000, .late, isLast: true)[0].count
      let total = Int(aligner.outputCount)
      #expect(count == total && count >= 40_000)
    }
  }
}
