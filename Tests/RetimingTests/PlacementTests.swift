// SPDX-License-Identifier: Apache-2.0

import Glibc
import MediaTiming
import Testing

@testable import Retiming

/// Where what is no click comes out.
struct PlacementTests {
  /// What carries a changing loudness.
  enum Carrier: CaseIterable {
    case tone, noise

    /// A value at a sample, of at most 0.5.
    func value(_ position: Double) -> Double {
      switch self {
      case .tone:
        [330.0, 660, 990, 2200].enumerated().reduce(0) { sum, partial in
          sum + 0.12 * sin(2 * .pi * partial.element / 48_000 * position + Double(partial.offset))
        }
      case .noise: Sound.noise(length: .max).channels[0](position)
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
      of: Sound(length: 200_000, channels: [value])
    ).samples[0]
  }

  @Test(
    "Loudness that swings slowly is neither early nor late",
    arguments: [.spectral, .timeDomain] as [AudioTimePitchAlgorithm], [2, 4, 8] as [Int64])
  func swings(_ algorithm: AudioTimePitchAlgorithm, stretch: Int64) throws {
    for carrier in Carrier.allCases {
      // Three times a second, from zero at sample 48 000.
      let swing = 2 * .pi * 3 / 48_000.0
      let samples = try rendered(algorithm, stretch, 48_000..<144_000) {
        (1 - 0.8 * cos(swing * ($0 - 48_000))) / 2 * carrier.value($0)
      }
      // The phase of the loudness, over five whole swings.
      var (cosine, sine) = (0.0, 0.0)
      for index in Int(8000 * stretch)..<Int(88_000 * stretch) {
        let phase = swing * Double(index) / Double(stretch)
        cosine -= Double(samples[index].magnitude) * cos(phase)
        sine -= Double(samples[index].magnitude) * sin(phase)
      }
      let late = atan2(sine, cosine) / swing * Double(stretch) / 48
      Measured.note("\(algorithm) swing of \(carrier) at 1/\(stretch)", "\(late) ms late")
      // No two stretches of noise have the same loudness.
      #expect(late.magnitude < (carrier == .tone ? 0.8 : 0.55 * Double(stretch)), "\(carrier)")
    }
  }
}
