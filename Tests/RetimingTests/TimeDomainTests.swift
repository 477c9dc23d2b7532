// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

struct TimeDomainTests {
  private func retimer(_ channelCount: Int = 1) throws -> AudioRetimer {
    try AudioRetimer(algorithm: .timeDomain, sampleRate: 48_000, channelCount: channelCount)
  }

  @Test(
    "A sine keeps its pitch in time-domain stretching",
    arguments: [
      (1, 32, 1000.0), (1, 8, 100), (1, 2, 8000), (4, 5, 1000), (2, 1, 100), (8, 1, 1000),
      (32, 1, 1000),
    ] as [(Int64, Int64, Double)])
  func pitch(above: Int64, below: Int64, frequency: Double) throws {
    let sine = try RetimedSine(.timeDomain, frequency, at: .of(above, below))
    #expect((sine.pitch - 1).magnitude < 0.0005)
    #expect((0.49...0.51).contains(sine.fitted.amplitude))
    #expect(sine.fitted.signalToNoise > 35)
  }

  @Test(
    "Time-domain stretching keeps sines 70 dB above distortion",
    arguments: [.timeDomain, .lowQuality] as [AudioTimePitchAlgorithm], [(1, 2), (2, 1)])
  func betweenSamples(_ algorithm: AudioTimePitchAlgorithm, _ speed: (Int64, Int64)) throws {
    for frequency in [100.0, 1000, 8000] {
      let sine = try RetimedSine(
        algorithm, frequency, at: .of(speed.0, speed.1), sampleRate: 44_100)
      #expect(sine.fitted.signalToNoise > 70, "\(frequency) Hz")
    }
  }

  @Test(
    "Time-domain stretching keeps a tone intact in noise bursts",
    arguments: [(4, 5), (1, 2), (2, 1)] as [(Int64, Int64)])
  func accents(above: Int64, below: Int64) throws {
    // A noise burst of 4 ms, 12 dB below the tone, occurs four times a second.
    let noise = Audio.noise(length: 200_000).channels[0]
    let step = 2 * .pi * 330.0 / 48_000
    let audio = Audio(
      length: 200_000,
      channels: [
        { position in
          let accent = Int64(position) % 12_000 < 192 ? 0.2 * noise(position) : 0
          return 0.4 * sin(step * position) + accent
        }
      ])
    let speed = try Speed.of(above, below)
    let samples = try retimer().render([.of(24_000, 96_000, at: speed)], of: audio).samples[0]
    let fitted = FittedSine(samples, 4_000..<samples.count - 4_000, frequency: step)
    Measured.note("time-domain accents \(speed)", "\(fitted.signalToNoise) dB")
    #expect(fitted.signalToNoise > 20)
  }

  @Test(
    "Time-domain stretching keeps each clap once and on time",
    arguments: [(1, 8), (1, 4), (1, 2), (4, 5), (3, 2), (2, 1)] as [(Int64, Int64)])
  func claps(above: Int64, below: Int64) throws {
    // The bursts last 2 ms, and are 0.2 to 0.3 s apart.
    let starts: [Int64] = [30_011, 40_012, 54_013, 64_500]
    let noise = Audio.noise(length: 200_000)
    let audio = Audio(
      length: 200_000,
      channels: [
        { position in
          starts.contains { $0..<$0 + 96 ~= Int64(position) } ? noise.channels[0](position) : 0
        }
      ])
    let speed = try Speed.of(above, below)
    let samples = try retimer().render([.of(24_000, 50_000, at: speed)], of: audio).samples[0]
    // Finds loud samples after a millisecond of silence, which are burst starts, and counts all
    // loud samples.
    var found: [Int] = []
    var loud = 0
    var quiet = 48
    for (index, sample) in samples.enumerated() {
      quiet = sample.magnitude > 0.01 ? 0 : quiet + 1
      if quiet == 0 { loud += 1 }
      if quiet == 0, found.last.map({ index - $0 > 480 }) ?? true { found.append(index) }
    }
    try #require(found.count == starts.count, "\(found)")
    for (start, offset) in zip(starts, found) {
      let error = Double(offset) - Double(start - 24_000) / speed.fraction.doubleValue
      Measured.note("time-domain clap \(speed)", "\(error / 48) ms")
      // An onset is found to within a millisecond of source time, which is longer in stretched
      // audio.
      #expect(error.magnitude < 48 * 2 * max(1, 1 / speed.fraction.doubleValue))
    }
    // The bursts together are as long as in the source, so no burst was stretched.
    #expect((340...400).contains(loud))
  }

  @Test func `Time-domain stretching keeps channels in phase`() throws {
    let noise = Audio.noise(length: 100_000).channels[0]
    let audio = Audio(
      length: 100_000, channels: [noise, { -0.5 * noise($0) }, { 0.25 * noise($0) }])
    for (above, below) in [(1, 3), (7, 4)] as [(Int64, Int64)] {
      let samples = try retimer(3).render(
        [.of(20_000, 20_000, at: .of(above, below))], of: audio
      ).samples
      for (index, sample) in samples[0].enumerated() {
        let (second, third) = (samples[1][index], samples[2][index])
        guard (second + 0.5 * sample).magnitude < 1e-6, (third - 0.25 * sample).magnitude < 1e-6
        else {
          Issue.record("the channels part at \(index)")
          break
        }
      }
    }
  }

  @Test func `Time-domain stretching does not click at a change of speed`() throws {
    let joined = try JoinedSpeeds(.timeDomain, each: 4002)
    let rough = joined.roughness(1..<joined.samples.count - 1)
    Measured.note("time-domain joins", "roughness \(rough)")
    #expect(rough < 1.3)
    #expect(joined.isCopiedAtSpeedOne)
  }

  @Test func `Time-domain stretching keeps onsets on time in a speed ramp`() throws {
    // The speed falls from 9/8 to 1/8 and rises again, in steps of 10 ms. A burst occurs every 60
    // ms.
    let noise = Audio.noise(length: 200_000).channels[0]
    let audio = Audio(
      length: 200_000,
      channels: [{ Int64($0) % 2880 < 96 ? noise($0) : 0.05 * sin(2 * .pi * 300 / 48_000 * $0) }])
    var end = MediaTime.zero
    var mappings: [TimeMapping] = []
    for step in 0..<60 as Range<Int64> {
      let speeds: [Int64] = [5, 6, 8, 9, 10, 12, 15, 18, 20, 24, 30, 36, 45]
      let above = speeds[Int(abs(30 - step)) * 12 / 30]
      mappings.append(try .of(10_000 + 480 * step, 480, at: .of(above, 40), from: end))
      end = mappings[mappings.count - 1].target.end
    }
    let samples = try retimer().render(mappings, of: audio).samples[0]
    var errors: [Double] = []
    for mapping in mappings {
      let first = mapping.source.start.seconds.doubleValue * 48_000
      let burst = (first / 2880).rounded(.up) * 2880
      guard burst < first + 480, burst > 10_500, burst < 38_000 else { continue }
      let offset =
        (mapping.target.start.seconds.doubleValue * 48_000)
        + (burst - first) / (try mapping.speed().fraction.doubleValue)
      // The first loud sample near the expected position.
      let near = (Int(offset) - 500..<Int(offset) + 500).first { samples[$0].magnitude > 0.2 }
      // The error is in source time, since an onset is found to within a millisecond of it.
      let speed = try mapping.speed().fraction.doubleValue
      errors.append(near.map { (Double($0) - offset).magnitude * speed } ?? .infinity)
    }
    Measured.note("time-domain ramp", "\(errors.map { $0 / 48 }) ms")
    #expect(errors.count >= 8)
    #expect(errors.allSatisfy { $0 < 48 * 1.5 })
  }
}
