// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRetiming

/// Output times of audio without clicks: loudness changes and soft attacks.
struct PlacementTests {
  /// The kind of signal whose loudness changes.
  enum Carrier: CaseIterable {
    case tone, noise

    /// The value at a sample position, at most 0.5.
    func value(_ position: Double) -> Double {
      switch self {
      case .tone:
        [330.0, 660, 990, 2200].enumerated().reduce(0) { sum, partial in
          sum + 0.12 * sin(2 * .pi * partial.element / 48_000 * position + Double(partial.offset))
        }
      case .noise: Audio.noise(length: .max).channels[0](position)
      }
    }
  }

  private func rendered(
    _ algorithm: AudioTimePitchAlgorithm, _ stretch: Int64, _ range: Range<Int64>,
    _ value: @escaping (Double) -> Double
  ) throws -> [Float] {
    let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
    return try retimer.render(
      [.of(range.lowerBound, Int64(range.count), at: .of(1, stretch))],
      of: Audio(length: 200_000, channels: [value])
    ).samples[0]
  }

  @Test(
    "Stretched audio keeps slow loudness changes on time",
    arguments: [.spectral, .timeDomain] as [AudioTimePitchAlgorithm], [2, 4, 8] as [Int64])
  func swings(_ algorithm: AudioTimePitchAlgorithm, stretch: Int64) throws {
    for carrier in Carrier.allCases {
      // The loudness rises and falls three times a second, and is zero at sample 48 000.
      let swing = 2 * .pi * 3 / 48_000.0
      let samples = try rendered(algorithm, stretch, 48_000..<144_000) {
        (1 - 0.8 * cos(swing * ($0 - 48_000))) / 2 * carrier.value($0)
      }
      // The phase of the loudness changes, measured over five whole periods.
      var (cosine, sine) = (0.0, 0.0)
      for index in Int(8000 * stretch)..<Int(88_000 * stretch) {
        let phase = swing * Double(index) / Double(stretch)
        cosine -= Double(samples[index].magnitude) * cos(phase)
        sine -= Double(samples[index].magnitude) * sin(phase)
      }
      let late = atan2(sine, cosine) / swing * Double(stretch) / 48
      Measured.note("\(algorithm) swing of \(carrier) at 1/\(stretch)", "\(late) ms late")
      // Noise has random loudness changes, so its tolerance is larger.
      #expect(late.magnitude < (carrier == .tone ? 0.8 : 0.55 * Double(stretch)), "\(carrier)")
    }
  }

  @Test(
    "Stretched audio keeps a soft attack on time",
    arguments: [.spectral, .timeDomain] as [AudioTimePitchAlgorithm])
  func softAttacks(_ algorithm: AudioTimePitchAlgorithm) throws {
    // The loudness starts at a twentieth and rises to full in 80 ms. Half of the full loudness is
    // reached in the middle of the rise.
    let samples = try rendered(algorithm, 4, 24_000..<72_000) {
      let part = min(1, ($0 - 46_080) / 3840)
      return part < 0 ? 0 : max(0.05, part) * Carrier.tone.value($0)
    }
    // The middle of the rise is found in the mean over 40 ms.
    var (means, sum) = ([Float](), Float(0))
    for index in 1920..<samples.count {
      sum += samples[index].magnitude - samples[index - 1920].magnitude
      means.append(sum)
    }
    let top = means[120_000]
    let middle = try #require(means.firstIndex { $0 > top / 2 })
    let late = Double(middle + 960 - 96_000) / 48
    Measured.note("\(algorithm) attack", "\(late) ms late")
    #expect(late.magnitude < 15)
  }

  @Test(
    "Onset detection separates clicks from soft attacks",
    arguments: [
      // The duration of the rise from silence, and of full loudness, in milliseconds. Then the
      // expected result.
      (0, 4, 0.95...1.0, false), (0, 400, 0.4...0.7, false), (50, 400, 0.0...0.1, true),
    ] as [(Double, Double, ClosedRange<Double>, Bool)])
  func growth(rise: Double, top: Double, share: ClosedRange<Double>, isSoft: Bool) throws {
    let noise = Audio.noise(length: 96_000).channels[0]
    let plane = (0..<96_000).map { index in
      let since = (Double(index) - 48_000) / 48
      let loudness = since < 0 || since > rise + top ? 0 : min(1, since / max(rise, 1e-9))
      return Float((0.001 + 0.9 * loudness) * noise(Double(index)))
    }
    var detector = OnsetDetector(sampleRate: 48_000, channelCount: 1)
    let onset = try #require(detector.append([plane]).first { $0.position > 24_000 })
    #expect((47_900...49_000).contains(onset.position))
    #expect(share.contains(onset.lockShare), "\(onset.growth) dB")
    #expect(onset.isSoft == isSoft, "\(onset.growth) dB")
  }
}
