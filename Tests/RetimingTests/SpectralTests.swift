// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

struct SpectralTests {
  @Test(
    "A sine keeps its pitch in spectral stretching",
    arguments: [(1, 32), (1, 8), (1, 2), (2, 1), (8, 1), (10, 1)] as [(Int64, Int64)])
  func pitch(above: Int64, below: Int64) throws {
    // The analysis windows of Rubber Band R3 depend on the start of the source. At 1/8 speed, 6 of
    // 14 starts gave a sine only 12 to 16 dB above the distortion in the first half second, and the
    // others gave 28 dB. So one of several starts must give more than 20 dB.
    let sines = try [20_000, 20_037, 20_074].map { start in
      try RetimedSine(.spectral, 1000, at: .of(above, below), from: start)
    }
    #expect(sines.allSatisfy { ($0.pitch - 1).magnitude < 0.0005 })
    #expect(sines.allSatisfy { (0.4...0.6).contains($0.fitted.amplitude) })
    #expect(sines.contains { $0.fitted.signalToNoise > 20 })
  }

  @Test(
    "Spectral stretching moves a click by at most 60 ms",
    arguments: [(1, 2, 7.0), (1, 4, 25), (1, 8, 60), (2, 1, 3)] as [(Int64, Int64, Double)])
  func onset(above: Int64, below: Int64, milliseconds: Double) throws {
    let retimer = try AudioRetimer(algorithm: .spectral, sampleRate: 48_000, channelCount: 1)
    let speed = try Speed.of(above, below)
    // A burst of 4 ms in the middle of 0.4 s.
    let noise = Audio.noise(length: 100_000)
    let audio = Audio(
      length: 100_000,
      channels: [
        { position in
          29_904..<30_096 ~= position ? noise.channels[0](position) : 0
        }
      ])
    let samples = try retimer.render([.of(20_400, 19_200, at: speed)], of: audio).samples[0]
    let loudest = samples.map(\.magnitude).max() ?? 0
    let first = samples.firstIndex { $0.magnitude >= loudest / 2 } ?? 0
    let peak = samples.firstIndex { $0.magnitude == loudest } ?? 0
    // The burst starts at sample 29 904, and its middle is at 30 000.
    let wanted = 9504 / speed.fraction.doubleValue
    let error = (Double(first) - wanted) / 48
    Measured.note(
      "spectral click \(speed)", "half \(error) ms, peak \((Double(peak) - wanted) / 48) ms")
    #expect(error.magnitude <= milliseconds)
  }

  @Test func `Spectral stretching keeps equal channels equal`() throws {
    let retimer = try AudioRetimer(algorithm: .spectral, sampleRate: 48_000, channelCount: 2)
    let mapping = try TimeMapping.of(20_000, 6000, at: .of(1, 8))
    let same = try retimer.render(
      [mapping], of: .sine(440, length: 100_000, channelCount: 2)
    ).samples
    #expect(same[0] == same[1])
    let left = try retimer.render(
      [mapping],
      of: Audio(
        length: 100_000,
        channels: [{ 0.5 * sin(2 * .pi * 440 / 48_000 * $0) }, { _ in 0 }])
    ).samples
    func power(_ samples: [Float]) -> Double { samples.reduce(0) { $0 + Double($1 * $1) } }
    Measured.note("spectral left only", "right / left power \(power(left[1]) / power(left[0]))")
    #expect(power(left[1]) < power(left[0]) / 1000)
  }

  @Test func `Spectral stretching does not click at a change of speed`() throws {
    let joined = try JoinedSpeeds(.spectral, each: 4000)
    for mapping in joined.mappings.dropFirst() {
      let join = Int(mapping.target.start.seconds.doubleValue * 48_000 + 0.5)
      let roughness = joined.roughness(join - 300..<join + 300)
      Measured.note("spectral join", "roughness \(roughness)")
      #expect(roughness < 2.5)
    }
    // The crossfade does not affect ranges at speed 1.
    #expect(joined.isCopiedAtSpeedOne)
  }

  @Test func `Spectral stretching writes nothing to standard error`() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      // Speeds around those at which the engine changes its analysis windows.
      let fractions: [(Int64, Int64)] = [
        (1, 32), (1, 31), (1, 16), (1, 5), (2, 3), (1001, 1000), (7, 1), (79, 10), (8, 1), (81, 10),
        (12, 1), (159, 10), (16, 1), (161, 10), (32, 1),
      ]
      for sampleRate in [8000, 32_000, 48_000, 192_000] as [Int32] {
        let retimer = try AudioRetimer(
          algorithm: .spectral, sampleRate: Int(sampleRate), channelCount: 1)
        for (above, below) in fractions {
          // Freed memory is filled with NaN, since a read of uninitialized memory must not affect
          // the result.
          var litter = (0..<200).map { [Double](repeating: .nan, count: 100 * ($0 + 1)) }
          litter.removeAll()
          let count: Int64 = above < below ? 200 : 20_000
          let mapping = try TimeMapping.of(0, count, at: .of(above, below), sampleRate: sampleRate)
          let rendering = try retimer.render([mapping], of: .noise(length: count))
          guard rendering.report.lengthErrorSamples == 0,
            rendering.samples[0].allSatisfy(\.isFinite)
          else { exit(1) }
        }
      }
    }
    #expect(String(decoding: result.standardErrorContent, as: UTF8.self) == "")
  }
}
