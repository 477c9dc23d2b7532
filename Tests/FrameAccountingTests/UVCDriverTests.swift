// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankFrameAccounting

/// Accounts of takes behind a model of `uvcvideo`, compared with the faults of the camera.
struct UVCDriverTests {
  private static let rates = [60, 90, 120, 150, 187, 200, 210, 240, 260, 300, 330, 480]

  /// The number of missing and damaged frames in the account of a take with eight random faults, and
  /// the true number.
  private func missing(
    _ driver: UVCDriver, random: inout SeededGenerator
  ) -> (found: Int64, expected: Int64) {
    var driver = driver
    driver.ppm = Double(Int.random(in: -300...300, using: &random))
    driver.phase = Double.random(in: 0...driver.transfer, using: &random)
    var (place, cost) = (300, Int64(0))
    for _ in 0..<8 {
      guard let fault = UVCDriver.Fault.allCases.randomElement(using: &random) else { continue }
      driver.faults[place] = fault
      cost += fault.cost
      place += Int.random(in: 60...130, using: &random)
    }
    var account = FrameAccount(
      frameRate: FrameRate(driver.rate), trustsCounter: false, beginsWithStream: false
    ) { 0 }
    let first = Int.random(in: 150...180, using: &random)
    for frame in driver.frames(place + 60, from: first, random: &random) { account.record(frame) }
    account.close(FrameAccount.End())
    #expect(account.ledger.isBalanced)
    return (account.ledger.expected - account.ledger.stored, cost)
  }

  @Test(arguments: rates, [false, true])
  func `Random losses behind uvcvideo are counted`(rate: Int, deliversDamaged: Bool) {
    for seed in 0..<RunSize.cases(40, full: 2_000) {
      var random = SeededGenerator(seed: UInt64(seed))
      let driver = UVCDriver(
        rate: rate, jitter: seed % 2 == 0 ? 3 : 60, deliversDamaged: deliversDamaged)
      let (found, expected) = missing(driver, random: &random)
      #expect(found == expected, "seed \(seed)")
    }
  }

  /// Steps close to the period are not found if the times have that much jitter.
  @Test(arguments: rates.filter { ![240, 260, 300, 480].contains($0) })
  func `Times that are late by up to 300 microseconds hide no loss`(rate: Int) {
    for seed in 0..<RunSize.cases(40, full: 2_000) {
      var random = SeededGenerator(seed: UInt64(seed))
      let driver = UVCDriver(rate: rate, jitter: 300, deliversDamaged: seed % 2 == 0)
      let (found, expected) = missing(driver, random: &random)
      #expect(found == expected, "seed \(seed)")
    }
  }

  /// A very late frame in each take.
  @Test(arguments: rates)
  func `A late frame rarely hides the step of timestamps`(rate: Int) {
    let count = RunSize.cases(200, full: 2_000)
    var wrong = 0
    for seed in 0..<count {
      var random = SeededGenerator(seed: UInt64(seed))
      let driver = UVCDriver(
        rate: rate, jitter: 3, lateShare: 0.001, deliversDamaged: seed % 2 == 0)
      let (found, expected) = missing(driver, random: &random)
      if found != expected { wrong += 1 }
    }
    #expect(wrong * 40 <= count, "\(wrong) of \(count)")
  }
}
