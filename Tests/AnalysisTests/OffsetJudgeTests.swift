// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Offsets of random pairs with repeating events, flashes and no common event.
struct OffsetJudgeTests {
  private static let audioRate = 16_000

  /// The audible and visible events of a scene, in its own time.
  private struct Scene {
    enum Audio: CaseIterable {
      case none, speech, click, clicks, claps, clap, loop
    }
    enum Light: CaseIterable {
      case none, single, repeating, irregular
    }

    var samples: [Float]?
    var lit: [Range<Double>] = []
    /// The period of the audio and of the light in seconds, if they repeat.
    var periods: [Double] = []

    init(
      _ audio: Audio, _ light: Light, seconds: Double, _ random: inout SeededGenerator
    ) {
      let count = Int(seconds * Double(audioRate))
      func clap(_ length: Int, _ decay: Double) -> [Float] {
        (0..<length).map { Float(random.normal() * 0.5 * exp(-Double($0) / decay)) }
      }
      func mixed(_ claps: [(at: Int, wave: [Float])]) -> [Float] {
        var samples = [Float](repeating: 0, count: count)
        for clap in claps {
          for (index, value) in clap.wave.enumerated() where clap.at + index < count {
            samples[clap.at + index] += value
          }
        }
        return samples
      }
      switch audio {
      case .none: break
      case .speech:
        var level = 0.0
        samples = (0..<count).map { _ in
          level += (random.normal() * 0.1 - level) / 800
          return Float(random.normal() * min(0.3, abs(level) * 30))
        }
      case .click, .clap:
        let wave = audio == .click ? clap(32, 12) : clap(1_200, 120)
        samples = mixed([(Int(seconds * 0.5 * Double(audioRate)), wave)])
      case .clicks:
        let period = Double.random(in: 0.3...1.5, using: &random)
        let wave = Bool.random(using: &random) ? clap(32, 12) : clap(800, 100)
        periods.append(period)
        samples = mixed(
          (0..<Int(seconds / period)).map {
            (Int((Double($0) + 0.3) * period * Double(audioRate)), wave)
          })
      case .claps:
        samples = mixed(
          (0..<Int.random(in: 8...20, using: &random)).map { _ in
            (Int.random(in: 0..<count, using: &random), clap(1_200, 120))
          })
      case .loop:
        let period = Double.random(in: 0.3...1.2, using: &random)
        let bar = (0..<Int(period * Double(audioRate))).map { _ in Float(random.normal() * 0.1) }
        periods.append(Double(bar.count) / Double(audioRate))
        samples = (0..<count).map { bar[$0 % bar.count] }
      }
      func flash(_ start: Double) -> Range<Double> {
        start..<start + .random(in: 0.04...0.3, using: &random)
      }
      switch light {
      case .none: break
      case .single: lit = [flash(seconds * .random(in: 0.4...0.6, using: &random))]
      case .repeating:
        let period = Double.random(in: 0.4...1.2, using: &random)
        periods.append(period)
        let length = Double.random(in: 0.04...0.2, using: &random)
        lit = (0..<Int(seconds / period)).map {
          (Double($0) + 0.2) * period..<(Double($0) + 0.2) * period + length
        }
      case .irregular:
        var time = 0.2
        while time < seconds - 0.5 {
          lit.append(flash(time))
          time += .random(in: 0.5...1.4, using: &random)
        }
      }
    }
  }

  /// A camera's recording of a scene.
  private struct Recording {
    var signal: AudioAlignment.Signal?
    var light: FlashAlignment.Light

    init(
      _ scene: Scene, from start: Double, lasting seconds: Double, noise: Double, rate: Double,
      exposure: Double, _ random: inout SeededGenerator
    ) throws {
      if let samples = scene.samples {
        let first = Int((start * Double(audioRate)).rounded())
        let gain = Double.random(in: 0.2...1, using: &random)
        let part = samples[first..<min(samples.count, first + Int(seconds * Double(audioRate)))]
          .map { Float(Double($0) * gain + random.normal() * noise) }
        signal = try MonoAudio(part, sampleRate: audioRate).signal()
      }
      var brightness = FlashAlignment.Brightness()
      for index in 0..<Int(seconds * rate) {
        let time = Double(index) / rate
        let opened = start + time..<start + time + exposure / rate
        let lit = scene.lit.reduce(0.0) { sum, range in
          let overlap = range.clamped(to: opened)
          return sum + overlap.upperBound - overlap.lowerBound
        }
        brightness.times.append(time)
        brightness.values.append(60 + 80 * lit * rate / exposure + random.normal() * 0.2)
      }
      light = FlashAlignment.light(brightness)
    }
  }

  private static let names = ("a.mov", "b.mov")

  private struct Tally {
    var answered = 0
    var covered = 0
    var refused = 0
    var expected = 0
    var found = 0
  }

  @Test func `Offsets are right or refused whatever repeats`() throws {
    typealias Kind = (audio: Scene.Audio, light: Scene.Light, hasCommon: Bool, isExpected: Bool)
    let kinds: [Kind] = [
      (.speech, .repeating, true, true), (.clicks, .repeating, true, false),
      (.clicks, .irregular, true, true), (.loop, .irregular, true, true),
      (.loop, .repeating, true, false), (.none, .irregular, true, true),
      (.none, .repeating, true, false), (.none, .single, true, true),
      (.claps, .single, true, true), (.clap, .none, true, true),
      (.clicks, .none, true, false), (.speech, .single, false, false),
      (.claps, .irregular, false, false), (.clap, .single, false, false),
      (.click, .single, false, false), (.none, .irregular, false, false),
    ]
    var tally = Tally()
    for seed in 0..<UInt64(RunSize.cases(25, full: 500)) {
      var random = SeededGenerator(seed: seed + 1)
      let kind = kinds[Int(seed) % kinds.count]
      let seconds = Double.random(in: 6...9, using: &random)
      let scene = Scene(kind.audio, kind.light, seconds: seconds, &random)
      let other =
        kind.hasCommon ? scene : Scene(kind.audio, kind.light, seconds: seconds, &random)
      // Both contain the middle of the scene, where single events are.
      let starts = (0..<2).map { _ in Double.random(in: 0...seconds * 0.35, using: &random) }
      let ends = (0..<2).map { _ in Double.random(in: seconds * 0.7...seconds, using: &random) }
      let noise = pow(10, Double.random(in: -4 ... -2.5, using: &random))
      let whole = starts.map { ($0 * Double(Self.audioRate)).rounded() / Double(Self.audioRate) }
      let recordings = try [(scene, 0, 240.0), (other, 1, 120.0)].map { scene, index, rate in
        try Recording(
          scene, from: whole[index], lasting: ends[index] - whole[index], noise: noise, rate: rate,
          exposure: .random(in: 0.3...1, using: &random), &random)
      }
      let truth = whole[1] - whole[0]
      var audio: AudioAlignment?
      if let first = recordings[0].signal, let second = recordings[1].signal {
        audio = AudioAlignment(first, second, sampleRate: Self.audioRate)
      }
      tally.expected += kind.isExpected ? 1 : 0
      do {
        let found = try RecordingSynchronizer.defendedOffset(
          audio: audio, light: { (recordings[0].light, recordings[1].light) }, limit: nil,
          names: Self.names)
        #expect(kind.hasCommon, "seed \(seed), \(kind): \(found)")
        let error = found.offset.doubleValue - truth
        let half = found.uncertainty.doubleValue
        tally.answered += 1
        tally.covered += abs(error) <= half ? 1 : 0
        tally.found += kind.isExpected ? 1 : 0
        #expect(abs(error) <= 5 * half, "seed \(seed), \(kind): off by \(error) s, ± \(half)")
        for period in scene.periods { #expect(abs(error) < period / 2, "seed \(seed), \(kind)") }
      } catch {
        #expect([.nothingInCommon, .ambiguousMatch].contains(error.code), "\(error)")
        tally.refused += 1
      }
    }
    print(
      "sync: \(tally.answered) answers, \(tally.covered) of them with the truth in the interval;",
      "\(tally.refused) refused; \(tally.found) of \(tally.expected) expected answers")
    #expect(tally.covered * 100 >= tally.answered * 95)
    #expect(tally.found * 10 >= tally.expected * 8)
  }
}
