// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankFrameAccounting

/// Frame accounting with timestamps that a driver rounds up to the end of a transfer or of a tick.
struct QuantizedTimestampTests {
  private static let rates: [Double] = [
    50, 59.94, 60, 90, 100, 119.88, 120, 125, 144, 150, 180, 187, 200, 210, 239.76, 240, 245, 250,
    260, 280, 300, 330, 360, 375, 400, 420, 480,
  ]
  private static let quanta: [Double] = [
    125, 500, 1_000, 1_875, 2_000, 3_125, 3_333, 4_000, 8_000, 10_000,
  ]

  /// The frame numbers that the timeline assigns to the frames of a take, and its quantum.
  private func assigned(
    _ take: QuantizedCamera.Take, granted rate: Double
  ) -> (numbers: [Int64], quantum: Double?) {
    var timeline = FrameTimeline(period: 1e6 / rate)
    var steps: [Int64] = []
    for reading in take.readings {
      timeline.add(reading)
      steps += timeline.steps
    }
    timeline.finish()
    steps += timeline.steps
    var number: Int64 = 0
    let numbers = steps.map { step -> Int64 in
      number += step
      return number
    }
    return (numbers, timeline.quantum)
  }

  @Test(arguments: quanta)
  func `A camera without a loss has none at any quantum`(quantum: Double) {
    for (index, rate) in Self.rates.enumerated() where RunSize.isFull || index % 2 == 1 {
      for (seed, ppm) in [0.0, -300, 300, 37].enumerated() {
        let camera = QuantizedCamera(
          rate: rate, ppm: ppm, quantum: quantum, jitter: seed % 2 == 0 ? 3 : 60,
          seed: UInt64(seed))
        guard !camera.isAmbiguous else { continue }
        let take = camera.take()
        let numbers = assigned(take, granted: rate).numbers
        #expect(numbers == take.numbers, "\(rate) fps, \(ppm) ppm")
        let elapsed = Double(
          take.readings[take.readings.count - 1].microseconds - take.readings[0].microseconds)
        let measured = Double(numbers[numbers.count - 1]) * 1e6 / elapsed
        let tolerance = max(0.0002, (quantum + camera.jitter) / elapsed)
        #expect(abs(measured / take.rate - 1) <= tolerance, "\(rate) fps, \(ppm) ppm")
      }
    }
  }

  private static let losses =
    QuantizedCamera.Loss.allCases.map { [$0] } + [QuantizedCamera.Loss.allCases]

  @Test(arguments: quanta, losses)
  func `Losses are counted at any quantum`(quantum: Double, losses: [QuantizedCamera.Loss]) {
    for (index, rate) in Self.rates.enumerated() where RunSize.isFull || index % 4 == 3 {
      for (seed, ppm) in [0.0, -300, 300, 37].enumerated() {
        let camera = QuantizedCamera(
          rate: rate, ppm: ppm, quantum: quantum, count: 1_500, losses: losses,
          seed: UInt64(seed))
        guard !camera.hidesLosses else { continue }
        let take = camera.take()
        let numbers = assigned(take, granted: rate).numbers
        #expect(numbers.last == take.numbers.last, "\(rate) fps, \(ppm) ppm")
        // The steps may hide a loss until the camera has passed through a whole step.
        let wrong = zip(numbers, take.numbers).count { $0 != $1 }
        #expect(wrong <= take.lossIndices.count * 120, "\(rate) fps, \(ppm) ppm")
      }
    }
  }

  @Test(arguments: [0.5, 0.8, 0.9, 0.97, 0.99, 1.01, 1.03, 1.1, 2])
  func `A wrong granted rate is corrected without a loss`(error: Double) {
    for rate in [60.0, 100, 120, 187, 200, 240, 300, 330] {
      for quantum in [1_000.0, 2_000, 4_000] {
        let camera = QuantizedCamera(rate: rate, quantum: quantum, count: 2_000, seed: 3)
        let take = camera.take()
        #expect(
          assigned(take, granted: rate / error).numbers == take.numbers,
          "\(rate) fps, step \(quantum)")
      }
    }
  }

  @Test(
    arguments: [
      (240, 4_000), (330, 4_000), (480, 4_000), (480, 8_000), (240, 1_875), (90, 10_000),
    ] as [(Double, Double)])
  func `The quantum is estimated from a take`(rate: Double, quantum: Double) throws {
    let take = QuantizedCamera(rate: rate, quantum: quantum, jitter: 40, seed: 7).take()
    let found = try #require(assigned(take, granted: rate).quantum)
    #expect(abs(found / quantum - 1) < 0.02)
  }

  @Test(arguments: [60.0, 120, 239.76, 480])
  func `Exact timestamps have no quantum`(rate: Double) {
    let take = QuantizedCamera(rate: rate, quantum: 1, jitter: 50, seed: 7).take()
    #expect(assigned(take, granted: rate).quantum == nil)
  }

  @Test(arguments: [60.0, 240, 480], [3.0, 2.5, 4])
  func `Frames that are late have no quantum`(rate: Double, share: Double) {
    for seed in 0..<20 {
      var random = SeededGenerator(seed: UInt64(seed))
      var take = QuantizedCamera(rate: rate, quantum: 1, jitter: 30, count: 900, seed: 9).take()
      for index in take.readings.indices where Int.random(in: 0..<6, using: &random) == 0 {
        take.readings[index].microseconds += Int64(1e6 / rate / share)
      }
      let (numbers, quantum) = assigned(take, granted: rate)
      #expect(numbers == take.numbers)
      #expect(quantum == nil, "seed \(seed)")
    }
  }

  /// A transfer that completes late makes one interval longer and the next one shorter.
  ///
  /// Together with the interval of a rounding, these may all be multiples of a step that the driver does
  /// not have.
  @Test(arguments: [200.0, 230, 240, 260, 300, 330])
  func `A late frame rarely changes a coarse step`(rate: Double) {
    var (wrong, count) = (0, 0)
    for lateIndex in (0..<20).map({ 3 * $0 + 1 }) {
      for (seed, share) in [0.2, 0.25, 0.5, 0.2, 0.25, 0.5].enumerated() {
        let camera = QuantizedCamera(rate: rate, quantum: 4_000, count: 900, seed: UInt64(seed))
        var take = camera.take()
        take.readings[lateIndex].microseconds += Int64(4_000 * share)
        let (numbers, quantum) = assigned(take, granted: rate)
        let isRight = quantum.map { abs($0 / 4_000 - 1) < 0.02 } ?? true
        if numbers != take.numbers || !isRight { wrong += 1 }
        count += 1
      }
    }
    #expect(wrong * 20 <= count, "\(wrong) of \(count)")
  }

  @Test(arguments: [(120, 30_000), (240, 10_000), (60, 23_000)] as [(Double, Double)])
  func `A pause of the camera is no loss`(rate: Double, pause: Double) {
    var take = QuantizedCamera(rate: rate, quantum: 1, jitter: 50, count: 900, seed: 4).take()
    for index in 400..<900 { take.readings[index].microseconds += Int64(pause) }
    #expect(assigned(take, granted: rate).numbers == take.numbers)
  }

  @Test func `A pause of the camera does not change the measured rate`() throws {
    var account = FrameAccount(frameRate: FrameRate(120), trustsCounter: false) { 1_000_000 }
    for index in 0..<480 {
      let pause: Int64 = index < 300 ? 0 : 30_000
      account.record(
        FrameObservation(
          sequence: UInt32(index), microseconds: 1_000_000 + Int64(index) * 25_000 / 3 + pause))
    }
    account.close(FrameAccount.End())
    #expect(account.ledger.dropped == 0)
    #expect(account.ledger.isBalanced)
    let measured = try #require(account.measuredFrameRate).doubleValue
    #expect(abs(measured / 120 - 1) < 0.0002)
    #expect(account.timestampQuantum == nil)
  }

  @Test func `An account reports the step of coarse timestamps`() throws {
    var account = FrameAccount(frameRate: FrameRate(240), trustsCounter: false) { 1_000_000 }
    let take = QuantizedCamera(rate: 240, quantum: 4_000, count: 600, seed: 1).take()
    for reading in take.readings {
      account.record(
        FrameObservation(sequence: reading.sequence, microseconds: reading.microseconds))
    }
    account.close(FrameAccount.End())
    #expect(account.ledger.dropped == 0)
    let step = try #require(account.timestampQuantum)
    #expect(abs(step.wholeNanoseconds - 4_000_000) < 40_000)
  }
}
