// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

struct LowQualityTests {
  private func retimer(
    _ others: UnsupportedSpeedPolicy = .refused, channelCount: Int = 1
  ) throws -> AudioRetimer {
    try AudioRetimer(
      algorithm: .lowQuality, sampleRate: 48_000, channelCount: channelCount, otherSpeeds: others)
  }

  @Test(
    "The lowQuality algorithm keeps the pitch at supported speeds",
    arguments: [(1, 2), (2, 3), (666_667, 1_000_000), (4, 5), (1, 1), (5, 4), (3, 2), (2, 1)]
      as [(Int64, Int64)])
  func speeds(above: Int64, below: Int64) throws {
    let speed = try Speed.of(above, below)
    let rendering = try retimer().render(
      [.of(2000, 12_000, at: speed)], of: .sine(1000, length: 20_000))
    let samples = rendering.samples[0]
    #expect(rendering.report.snapped.isEmpty)
    // The sample count is rounded to the nearest. 12 000 samples at 0.666667 times the speed become
    // 17 999.99 samples.
    #expect(samples.count == Int((12_000 * Double(below) / Double(above)).rounded()))
    let step = 2 * .pi * 1000.0 / 48_000
    let middle = 1500..<samples.count - 1500
    let fitted = FittedSine(
      samples, middle, frequency: measuredFrequency(samples, middle, near: step))
    Measured.note("low-quality \(speed)", "SINAD \(fitted.signalToNoise) dB")
    #expect(fitted.signalToNoise > 60)
    #expect((fitted.amplitude - 0.5).magnitude < 0.01)
  }

  @Test("The lowQuality algorithm does not double claps at 2/3 speed", arguments: [44_100, 48_000])
  func claps(rate: Int) throws {
    // The bursts last 4 ms and are not aligned with the grains of the algorithm.
    let length = rate / 250
    let starts = (1...20).map { $0 * rate * 3 / 10 + $0 * $0 * 97 % (rate / 50) }
    let noise = Audio.noise(length: Int64(rate) * 7).channels[0]
    let audio = Audio(
      length: Int64(rate) * 7,
      channels: [
        { position in
          starts.contains { ($0..<$0 + length).contains(Int(position)) } ? noise(position) : 0
        }
      ])
    let retimer = try AudioRetimer(algorithm: .lowQuality, sampleRate: rate, channelCount: 1)
    let samples = try retimer.render(
      [.of(0, Int64(rate) * 7, at: .of(2, 3), sampleRate: Int32(rate))], of: audio
    ).samples[0]
    let lengths = starts.map { start in
      let offset = start * 3 / 2
      return samples[offset - rate / 20..<offset + rate / 20].count { $0 != 0 }
    }
    .sorted()
    Measured.note("low-quality claps", "\(lengths) of \(length) samples")
    #expect(lengths[lengths.count / 2] <= length * 3 / 2)
    #expect(lengths[0] > 0)
  }

  @Test func `Refuses an unsupported speed and suggests the nearest one`() throws {
    for (above, below, nearest) in [
      (3, 5, "2/3"), (1, 8, "1/2"), (9, 10, "1/1"), (31, 1, "2/1"), (1_000_003, 1_000_000, "1/1"),
    ] as [(Int64, Int64, String)] {
      let mapping = try TimeMapping.of(0, 9_000_000, at: .of(above, below))
      let error = #expect(throws: MediaError.self) {
        try retimer().render(
          mappings: [mapping],
          read: { _, _ in
            Issue.record("nothing should be read")
            return []
          }, write: { _ in })
      }
      #expect(error?.code == .speedOutOfRange)
      #expect(error?.recovery?.steps.contains(.change(.otherAudioSpeeds)) == true)
      #expect(error?.message.hasSuffix("\(nearest) is the nearest") == true)
    }
  }

  @Test func `Audio snapped to another speed starts at the requested time`() throws {
    let audio = Audio.noise(length: 100_000)
    // Audio snapped to a higher speed ends early, and audio snapped to a lower speed is cut. A
    // speed that is not changed is not reported.
    let slow = try TimeMapping.of(10_000, 12_000, at: .of(3, 5))
    let fast = try TimeMapping.of(30_000, 12_000, at: .of(3), from: slow.target.end)
    let exact = try TimeMapping.of(50_000, 12_000, at: .of(4, 5), from: fast.target.end)
    let almost = try TimeMapping.of(70_000, 9000, at: .of(9, 10), from: exact.target.end)
    let rendering = try retimer(.snapped).render([slow, fast, exact, almost], of: audio)
    #expect(
      rendering.report.snapped.map(\.target) == [slow.target, fast.target, almost.target])
    #expect(
      try rendering.report.snapped.map(\.played) == [.of(2, 3), .of(2), .of(1)])
    #expect(try rendering.report.snapped.map(\.requested) == [.of(3, 5), .of(3), .of(9, 10)])
    let samples = rendering.samples[0]
    #expect(samples.count == 20_000 + 4000 + 15_000 + 10_000)
    func isHeard(_ range: Range<Int>) -> Bool {
      samples[range].contains { $0.magnitude > 0.1 }
    }
    // At 2/3 speed, 12 000 source samples make 18 000 output samples.
    #expect(isHeard(17_000..<17_700))
    #expect(samples[18_000..<20_000].allSatisfy { $0 == 0 })
    #expect(isHeard(20_300..<20_600) && isHeard(23_500..<24_000))
    #expect(isHeard(24_300..<24_600) && isHeard(38_500..<39_000))
    #expect(isHeard(47_000..<47_700))
    #expect(samples[48_000...].allSatisfy { $0 == 0 })
    // Audio that ends early fades out and does not stop abruptly.
    #expect(samples[47_980..<48_000].allSatisfy { $0.magnitude < 0.02 })
    #expect(rendering.report.lengthErrorSamples == 0)
  }
}
