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
    let first = Int.random(in: 150...180, using: &random)
    let frames = driver.frames(place + 60, from: first, random: &random)
    let ledger = ledger(of: frames, rate: driver.rate)
    #expect(ledger.isBalanced)
    return (ledger.expected - ledger.stored, cost)
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

  /// A frame that the driver counts but does not deliver was damaged on the bus, so a gap in the numbers
  /// alone does not make a loss one of the kernel.
  @Test(arguments: UVCDriver.Fault.allCases, [false, true])
  func `No loss with a free buffer is one of the kernel`(
    fault: UVCDriver.Fault, deliversDamaged: Bool
  ) {
    var random = SeededGenerator(seed: 1)
    let driver = UVCDriver(
      rate: 120, jitter: 3, deliversDamaged: deliversDamaged, faults: [300: fault])
    let ledger = ledger(of: driver.frames(500, random: &random), rate: 120)
    let corrupt = fault.corruptCount(deliversDamaged: deliversDamaged)
    #expect(ledger.isBalanced && ledger.lostKernel == 0)
    #expect(ledger.corrupt == corrupt && ledger.lostDevice == fault.cost - corrupt, "\(ledger)")
  }

  /// Three frames are missing, of which two were due before the program returned a buffer.
  @Test(arguments: [false, true])
  func `Losses without a free buffer are those of the kernel`(hasGap: Bool) {
    var frames: [FrameObservation] = []
    for number in 0..<200 where !(100..<103).contains(number) {
      let sequence = hasGap || number < 100 ? number : number - 3
      var frame = FrameObservation(
        sequence: UInt32(sequence), microseconds: Int64(number) * 10_000)
      if number == 103 { frame.oldestReturn = 1_010_000 }
      frames.append(frame)
    }
    let ledger = ledger(of: frames, rate: 100)
    #expect(ledger.isBalanced)
    #expect(ledger.lostKernel == 2 && ledger.lostDevice == 1, "\(ledger)")
  }

  private func ledger(of frames: [FrameObservation], rate: Int) -> FrameLedger {
    var account = FrameAccount(
      frameRate: FrameRate(rate), trustsCounter: false, beginsWithStream: false
    ) { 0 }
    for frame in frames { account.record(frame) }
    account.close(FrameAccount.End())
    return account.ledger
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
