// SPDX-License-Identifier: Apache-2.0

import Glibc
import MediaTiming
import Retiming
import Testing

struct TimeDomainTests {
  private func retimer(_ channelCount: Int = 1) throws -> AudioRetimer {
    try AudioRetimer(algorithm: .timeDomain, sampleRate: 48_000, channelCount: channelCount)
  }

  @Test(
    "A sine keeps its pitch and stays clean",
    arguments: [
      (1, 32, 1000.0), (1, 8, 100), (1, 2, 8000), (4, 5, 1000), (2, 1, 100), (8, 1, 1000),
      (32, 1, 1000),
    ] as [(Int64, Int64, Double)])
  func pitch(above: Int64, below: Int64, frequency: Double) throws {
    let speed = try Speed.of(above, below)
    let count: Int64 = above > 1 ? 80_000 : below > 8 ? 3000 : 12_000
    let samples = try retimer().render(
      [.of(20_000, count, at: speed)], of: .sine(frequency, length: 200_000)
    ).samples[0]
    let step = 2 * .pi * frequency / 48_000
    let middle = samples.count / 4..<samples.count * 3 / 4
    let measured = measuredFrequency(samples, middle, near: step)
    let fitted = FittedSine(samples, middle, frequency: measured)
    Measured.note(
      "time-domain \(speed) \(frequency) Hz",
      "\(measured / step * frequency) Hz, SINAD \(fitted.signalToNoise) dB, \(fitted.amplitude)")
    #expect((measured / step - 1).magnitude < 0.0005)
    #expect((0.49...0.51).contains(fitted.amplitude))
    #expect(fitted.signalToNoise > 35)
  }

  @Test(
    "Claps are each heard once, whole, and where they belong",
    arguments: [(1, 8), (1, 4), (1, 2), (4, 5), (3, 2), (2, 1)] as [(Int64, Int64)])
  func claps(above: Int64, below: Int64) throws {
    // Bursts of 2 ms, 0.2 to 0.3 s apart.
    let starts: [Int64] = [30_011, 40_012, 54_013, 64_500]
    let noise = Sound.noise(length: 200_000)
    let sound = Sound(
      length: 200_000,
      channels: [
        { position in
          starts.contains { $0..<$0 + 96 ~= Int64(position) } ? noise.channels[0](position) : 0
        }
      ])
    let speed = try Speed.of(above, below)
    let samples = try retimer().render([.of(24_000, 50_000, at: speed)], of: sound).samples[0]
    // Where sound starts after a millisecond of silence, and how much of it there is.
    var found: [Int] = []
    var loud = 0
    var quiet = 48
    for (index, sample) in samples.enumerated() {
      quiet = sample.magnitude > 0.01 ? 0 : quiet + 1
      if quiet == 0 { loud += 1 }
      if quiet == 0, found.last.map({ index - $0 > 480 }) ?? true { found.append(index) }
    }
    try #require(found.count == starts.count, "\(found)")
    for (start, place) in zip(starts, found) {
      let error = Double(place) - Double(start - 24_000) / speed.fraction.doubleValue
      Measured.note("time-domain clap \(speed)", "\(error / 48) ms")
      // Within the millisecond to which an onset is found, as often as it is stretched.
      #expect(error.magnitude < 48 * 2 * max(1, 1 / speed.fraction.doubleValue))
    }
    // No burst is longer or shorter than it was.
    #expect((340...400).contains(loud))
  }

  @Test func `All channels move together`() throws {
    let noise = Sound.noise(length: 100_000).channels[0]
    let sound = Sound(
      length: 100_000, channels: [noise, { -0.5 * noise($0) }, { 0.25 * noise($0) }])
    for (above, below) in [(1, 3), (7, 4)] as [(Int64, Int64)] {
      let samples = try retimer(3).render(
        [.of(20_000, 20_000, at: .of(above, below))], of: sound
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

  @Test func `The sound runs on from one speed into another without a click`() throws {
    let sound = Sound.sine(440, length: 100_000)
    var end = MediaTime.zero
    var position: Int64 = 10_000
    var mappings: [TimeMapping] = []
    for (above, below) in [(1, 1), (1, 8), (2, 1), (1, 2), (1, 1)] as [(Int64, Int64)] {
      mappings.append(try .of(position, 4002, at: .of(above, below), from: end))
      position += 4002
      end = mappings[mappings.count - 1].target.end
    }
    let samples = try retimer().render(mappings, of: sound).samples[0]
    // The second difference of a sine of 440 Hz, at its most: a jump would be far above.
    let step = 2 * .pi * 440.0 / 48_000
    let rough = (1..<samples.count - 1).map { index -> Double in
      let (before, after) = (Double(samples[index - 1]), Double(samples[index + 1]))
      return (before + after - 2 * Double(samples[index])).magnitude
    }
    Measured.note("time-domain joins", "roughness \((rough.max() ?? 0) / (0.5 * step * step))")
    #expect((rough.max() ?? 0) < 1.3 * 0.5 * step * step)
    #expect(samples[..<4002].elementsEqual(sound.samples(10_000, 4002)[0]))
    #expect(samples[(samples.count - 4002)...].elementsEqual(sound.samples(26_008, 4002)[0]))
  }

  @Test func `A ramp of many speeds is one sound, and keeps its places`() throws {
    // From 9/8 down to 1/8 and up again in steps of 10 ms, with a burst every 60 ms.
    let noise = Sound.noise(length: 200_000).channels[0]
    let sound = Sound(
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
    let samples = try retimer().render(mappings, of: sound).samples[0]
    var errors: [Double] = []
    for mapping in mappings {
      let first = mapping.source.start.seconds.doubleValue * 48_000
      let burst = (first / 2880).rounded(.up) * 2880
      guard burst < first + 480, burst > 10_500, burst < 38_000 else { continue }
      let place =
        (mapping.target.start.seconds.doubleValue * 48_000)
        + (burst - first) / (try mapping.speed().fraction.doubleValue)
      // The nearest loud moment.
      let near = (Int(place) - 500..<Int(place) + 500).first { samples[$0].magnitude > 0.2 }
      // In time of the source: an onset is found to about a millisecond of it.
      let speed = try mapping.speed().fraction.doubleValue
      errors.append(near.map { (Double($0) - place).magnitude * speed } ?? .infinity)
    }
    Measured.note("time-domain ramp", "\(errors.map { $0 / 48 }) ms")
    #expect(errors.count >= 8)
    #expect(errors.allSatisfy { $0 < 48 * 1.5 })
  }
}
