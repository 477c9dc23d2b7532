// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankFrameAccounting

/// The account of a take with several files, joined from the accounts of its files.
struct JoinedAccountTests {
  private static let period: Int64 = 10_000

  private func account(beginsWithStream: Bool = true) -> FrameAccount {
    FrameAccount(
      frameRate: FrameRate(100), trustsCounter: false, beginsWithStream: beginsWithStream
    ) { -5_000 }
  }

  /// A frame of a camera with 100 fps.
  private func frame(_ number: Int64, at start: Int64 = 0) -> FrameObservation {
    FrameObservation(
      sequence: UInt32(number), microseconds: start + number * Self.period)
  }

  /// Frames with losses, damaged frames and pauses.
  private func frames(_ random: inout SeededGenerator) -> [FrameObservation] {
    var frames: [FrameObservation] = []
    var number: Int64 = 0
    var pauseEnd: Int64 = 0
    while number < 600 {
      number += Int.random(in: 0..<20, using: &random) == 0 ? .random(in: 2...5, using: &random) : 1
      var frame = frame(number)
      if Int.random(in: 0..<40, using: &random) == 0 { frame.outcome = .corrupt }
      if number > 20, Int.random(in: 0..<150, using: &random) == 0 {
        pauseEnd = number + .random(in: 1...30, using: &random)
      }
      if number < pauseEnd { frame.outcome = .paused }
      frames.append(frame)
    }
    return frames
  }

  @Test(arguments: 1...RunSize.cases(50, full: 1_000))
  func `Joined accounts of files equal one account of all frames`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let frames = frames(&random)
    var whole = account()
    for frame in frames { whole.record(frame) }
    whole.close(FrameAccount.End())

    var joined: FrameAccount?
    var file = account()
    for (index, frame) in frames.enumerated() {
      let isCut =
        index > 0 && frame.outcome == .taken && frames[index - 1].outcome != .paused
        && file.ledger.stored > 0 && Int.random(in: 0..<60, using: &random) == 0
      if isCut {
        var end = FrameAccount.End()
        end.next = frame
        file.close(end)
        if joined == nil { joined = file } else { joined?.append(file) }
        file = account(beginsWithStream: false)
      }
      file.record(frame)
    }
    file.close(FrameAccount.End())
    if joined == nil { joined = file } else { joined?.append(file) }

    let found = try #require(joined)
    #expect(found.ledger == whole.ledger && found.ledger.isBalanced)
    #expect(found.gaps == whole.gaps)
    #expect(found.measuredFrameRate == whole.measuredFrameRate)
    #expect(found.startupDuration == whole.startupDuration)
    #expect(found.periodsSinceTaken == whole.periodsSinceTaken)
  }

  @Test func `Frames due without a camera are lost between two files`() {
    var take = account()
    for number in 0..<50 as Range<Int64> { take.record(frame(number)) }
    var end = FrameAccount.End()
    end.unnoted = 3
    take.close(end)
    // The camera counts from 0 again, two seconds after its last frame.
    let start = 49 * Self.period + 2_000_000
    var next = account(beginsWithStream: false)
    for number in 0..<50 as Range<Int64> { next.record(frame(number, at: start)) }
    next.close(FrameAccount.End())
    take.reconnect(atMicroseconds: start)
    take.append(next)
    #expect(take.ledger.stored == 100 && take.ledger.isBalanced)
    #expect(take.ledger.lostQueue == 3 && take.ledger.lostDevice == 196)
    #expect(take.gaps.map(\.afterIndex) == [49, 49] && take.gaps.map(\.count) == [3, 196])
    #expect(take.measuredFrameRate == 100)
    #expect(take.clock.time(ofMicroseconds: start) == start)
  }

  @Test func `The silence after a lost camera is unknown`() {
    var take = account()
    for number in 0..<50 as Range<Int64> { take.record(frame(number)) }
    take.close(FrameAccount.End())
    var end = FrameAccount.End()
    end.silence = 11 * Self.period
    take.addSilence(end)
    #expect(take.ledger.unknown == 10 && take.ledger.isBalanced)
  }
}
