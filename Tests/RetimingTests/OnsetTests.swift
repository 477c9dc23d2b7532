// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRetiming

struct OnsetTests {
  @Test(
    "Audio onsets are found at all sample rates and block sizes",
    arguments: [8000, 44_100, 48_000, 192_000])
  func bursts(sampleRate: Int) {
    let second = Double(sampleRate)
    let starts = [0.2, 0.5, 0.63, 1.1].map { Int($0 * second) }
    var random = SeededGenerator(seed: 1)
    var plane = [Float](repeating: 0, count: sampleRate * 2)
    for index in plane.indices { plane[index] = .random(in: -0.001...0.001, using: &random) }
    for start in starts {
      for index in start..<start + sampleRate / 250 {
        plane[index] = .random(in: -0.5...0.5, using: &random)
      }
    }
    for block in [1, 333, 4096, plane.count] {
      var detector = OnsetDetector(sampleRate: sampleRate, channelCount: 2)
      var found: [Onset] = []
      for start in stride(from: 0, to: plane.count, by: block) {
        let part = Array(plane[start..<min(plane.count, start + block)])
        found += detector.append([part.map { -$0 }, part])
        // Onsets are reported in the order of their positions.
        #expect(found.allSatisfy { $0.position <= detector.scanned + Int64(sampleRate / 100) })
      }
      // The start of the noise at the beginning is an onset, too.
      #expect(found.count == starts.count + 1)
      for (start, offset) in zip(starts, found.dropFirst()) {
        #expect((-0.001...0.0045).contains(Double(Int(offset.position) - start) / second))
        #expect(offset.strength > 0.9)
      }
    }
  }

  @Test func `Steady tones and voices and silence have no audio onsets`() {
    let audios: [(Int) -> Float] = [
      { _ in 0 }, { Float(sin(0.1 * Double($0))) },
      // A signal of a hundred pulses per second.
      { Float(exp(-Double($0 % 480) / 30)) },
    ]
    for audio in audios {
      var detector = OnsetDetector(sampleRate: 48_000, channelCount: 1)
      let found = detector.append([(0..<96_000).map(audio)])
      // Only the start of the signal is an onset.
      #expect(found.allSatisfy { $0.position < 2400 })
      #expect(detector.scanned > 92_000)
    }
  }

  @Test func `A faint audio onset after a loud one has a low strength`() throws {
    var random = SeededGenerator(seed: 3)
    var plane = (0..<96_000).map { _ in Float.random(in: -0.002...0.002, using: &random) }
    for (start, loudness) in [(20_000, 0.8), (50_000, 0.015), (80_000, 0.7)] as [(Int, Float)] {
      for index in start..<start + 2400 {
        plane[index] += loudness * Float.random(in: -1...1, using: &random)
      }
    }
    var detector = OnsetDetector(sampleRate: 48_000, channelCount: 1)
    let found = detector.append([plane]).dropFirst()
    try #require(found.count == 3)
    let strengths = found.map(\.strength)
    #expect(strengths[0] == 1 && strengths[2] > 0.8)
    #expect(strengths[1] < 0.2)
  }

  private func piece(
    _ speeds: [(Int64, Int64)], each count: Int64
  ) throws -> AudioPiece {
    var output = Rational.zero
    var breakpoints: [AudioPiece.Breakpoint] = []
    for (index, (above, below)) in speeds.enumerated() {
      breakpoints.append(
        AudioPiece.Breakpoint(
          output: output, source: Rational(1000 + Int64(index) * count),
          speed: try .of(above, below)))
      output = output + Rational(Int128(count) * Int128(below), over: Int128(above))
    }
    return AudioPiece(
      content: .retimed, samples: 0..<Int64(try output.rounded(.halfAwayFromZero)),
      position: Rational(1000), speed: breakpoints[0].speed, sampleRate: 48_000,
      breakpoints: Array(breakpoints.dropFirst()))
  }

  @Test func `Mapping output samples back to source samples is exact`() throws {
    let map = try SpeedMap(piece([(1, 8), (2, 1), (1, 3)], each: 600), origin: 900)
    #expect(map.source(at: 0) == 100)
    #expect(map.source(at: 4800) == 700)
    #expect(map.source(at: 5100) == 1300)
    #expect(map.source(at: 5103) == 1301)
    #expect(map.source(at: -8) == 99)
    #expect(map.speed(at: 700) == 2)
    #expect(map.speeds == 0.125...2)
    for output in stride(from: -100.0, to: 8000, by: 7.7) {
      #expect((map.output(at: map.source(at: output)) - output).magnitude < 1e-9)
    }
  }

  @Test(
    "Stretched audio keeps each onset at its exact position",
    arguments: 0..<60 as Range<UInt64>)
  func locks(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let speeds: [(Int64, Int64)] = [
      (1, 8), (1, 2), (4, 5), (3, 2), (2, 1), (8, 1), (1, 32), (32, 1),
    ]
    let (above, below) = speeds[Int(seed) % speeds.count]
    let base = try SpeedMap(piece([(above, below)], each: 50_000), origin: 0)
    let extent = TransientTimeMap.Extent(before: 20, after: 30, least: 0.2, sampleRate: 48_000)
    var map = TransientTimeMap(base, extent, bounds: 1000..<51_000)
    var onsets: [Double] = []
    var offset = 0.0
    while offset < 60_000 {
      offset +=
        .random(in: 0...2, using: &random) < 1
        ? .random(in: 1500...4000, using: &random) : .random(in: 4000...40_000, using: &random)
      onsets.append(offset)
      map.append(offset, strength: .random(in: 0...1, using: &random))
    }
    map.scanned(upTo: .infinity)
    let stretch = Double(below) / Double(above)
    for lock in map.locks {
      #expect((map.output(at: lock.source) - base.output(at: lock.source)).magnitude < 1e-6)
      let after = map.output(at: lock.source + lock.after) - map.output(at: lock.source)
      #expect((after - lock.after).magnitude < 1e-6)
      #expect(lock.before > 0 && lock.after > 0)
    }
    #expect(map.locks.count == onsets.count { (1000..<51_000).contains($0) })
    // The time map never runs backward. Away from locked onsets, it is close to the map at constant
    // speed.
    var last = map.output(at: 990)
    var largest = 0.0
    for source in stride(from: 991.0, to: 51_100, by: 1) {
      let output = map.output(at: source)
      let slope = output - last
      last = output
      largest = max(largest, slope)
      guard slope >= min(1, stretch / 2) - 1e-6, slope <= max(1, 2 * stretch) + 1e-6 else {
        Issue.record("a stretch of \(slope) at \(source), where it is \(stretch) by itself")
        break
      }
      guard (map.source(at: output) - source).magnitude < 1e-6 else {
        Issue.record("back from \(output) is \(map.source(at: output)), not \(source)")
        break
      }
    }
    // Onsets outside of the audio range do not change the time map.
    #expect((map.output(at: 999) - base.output(at: 999)).magnitude < 1e-6)
    #expect((map.output(at: 201_001) - base.output(at: 201_001)).magnitude < 1e-6)
  }

  @Test func `A vectorized correlation equals a plain loop`() {
    var random = SeededGenerator(seed: 5)
    for count in [0, 1, 7, 8, 9, 64, 961] {
      let first = (0..<count).map { _ in Float.random(in: -1...1, using: &random) }
      let second = (0..<count).map { _ in Float.random(in: -1...1, using: &random) }
      let plain = zip(first, second).reduce(0.0) { $0 + Double($1.0) * Double($1.1) }
      let made = first.withUnsafeBufferPointer { first in
        second.withUnsafeBufferPointer { CrossCorrelation.product(first, $0) }
      }
      #expect((Double(made) - plain).magnitude < 1e-4)
    }
  }

  @Test func `The correlation search finds the best allowed position`() {
    var samples = [Float](repeating: 0, count: 4000)
    var random = SeededGenerator(seed: 6)
    for index in samples.indices { samples[index] = .random(in: -0.1...0.1, using: &random) }
    // A bump of the signal at sample 1000, and the same bump at samples 1950 and 2037.
    for index in 0..<40 {
      let bump = Float(sin(.pi * Double(index) / 40))
      for start in [1000, 2037, 1950] { samples[start + index] += bump }
    }
    let search = CrossCorrelation.Search(
      wanted: Array(samples[1000..<1040]), middle: 2000, reach: 100, penalty: 0.01)
    var steps = DecimatedSignal(step: 4)
    steps.extend(to: samples)
    let best = CrossCorrelation.best(search, in: samples, steps)
    #expect((36...38).contains(best))
    let other = CrossCorrelation.best(search, in: samples, steps) { $0 > 0 }
    #expect((-51 ... -49).contains(other))
    let silence = [Float](repeating: 0, count: 4000)
    steps = DecimatedSignal(step: 4)
    steps.extend(to: silence)
    #expect(CrossCorrelation.best(search, in: silence, steps) == 0)
  }

  @Test("Correlating several offsets at once equals one at a time", arguments: [1, 3, 4, 5, 19])
  func products(count: Int) {
    var random = SeededGenerator(seed: 8)
    for length in [1, 8, 45, 720] {
      let wanted = (0..<length).map { _ in Float.random(in: -1...1, using: &random) }
      let samples = (0..<length + 40).map { _ in Float.random(in: -1...1, using: &random) }
      let made = wanted.withUnsafeBufferPointer { wanted in
        samples.withUnsafeBufferPointer {
          CrossCorrelation.products(wanted, $0, from: 20, count: count)
        }
      }
      let plain = (20..<20 + count).map { start in
        zip(wanted, samples[start...]).reduce(0.0) { $0 + Double($1.0) * Double($1.1) }
      }
      #expect(made.count == count)
      #expect(zip(made, plain).allSatisfy { ($0 - $1).magnitude < 1e-4 })
    }
  }

  @Test(
    "Interpolated correlation equals that of a delayed signal",
    arguments: [-1, -0.6, 0, 0.000_001, 0.3, 0.999_999])
  func neighbors(offset: Double) {
    var random = SeededGenerator(seed: 9)
    let samples = (0..<800).map { _ in Float.random(in: -1...1, using: &random) }
    let wanted = (0..<500).map { _ in Float.random(in: -1...1, using: &random) }
    let fit = NeighborProducts(wanted, around: 100, in: samples).estimator(at: offset)
    let whole = Int(offset.rounded(.down))
    let between = FractionalDelay(offset - Double(whole))
      .samples(of: samples, from: 99 + whole, count: 502).map { Double($0) }
    let other = between[1...500]
    let slope = (1...500).map { (between[$0 + 1] - between[$0 - 1]) / 2 }
    func product(_ first: some Sequence<Double>, _ second: some Sequence<Double>) -> Double {
      zip(first, second).reduce(0) { $0 + $1.0 * $1.1 }
    }
    let template = wanted.map { Double($0) }
    #expect((fit.wantedOther - product(template, other)).magnitude < 1e-3)
    #expect((fit.wantedSlope - product(template, slope)).magnitude < 1e-3)
    #expect((fit.other - product(other, other)).magnitude < 1e-3)
    #expect((fit.otherSlope - product(other, slope)).magnitude < 1e-3)
    #expect((fit.slope - product(slope, slope)).magnitude < 1e-3)
  }

  /// The delay is exact to a thousandth of a sample, so that tones stay 70 dB above the distortion.
  @Test(
    "A delay of a fraction of a sample is found and applied",
    arguments: [0.0, 0.03, 0.4, 0.5, -0.27])
  func between(rest: Double) throws {
    for frequency in [100.0, 1000, 8000, 12_000] {
      let step = 2 * .pi * frequency / 44_100
      let samples = (0..<2000).map { Float(0.5 * sin(step * Double($0))) }
      // The signal to find starts `rest` samples after sample 900.
      let wanted = (0..<600).map { Float(0.5 * sin(step * (900 + Double($0) + rest))) }
      let found = CrossCorrelation.remainder(of: wanted, around: 900, in: samples)
      #expect((found - rest).magnitude < 0.001, "\(frequency) Hz: \(found)")
      let whole = rest.rounded(.down)
      let read = FractionalDelay(rest - whole).samples(
        of: samples, from: 900 + Int(whole), count: 600)
      #expect(zip(read, wanted).allSatisfy { ($0 - $1).magnitude < 1e-4 })
    }
    let noise = Audio.noise(length: 4000).samples(0, 4000)[0]
    #expect(CrossCorrelation.remainder(of: Array(noise[100..<700]), around: 2000, in: noise) == 0)
  }
}
