// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRecording

struct TriggerQueueTests {
  private func trigger(_ microseconds: Int64) -> CaptureTrigger {
    CaptureTrigger(source: .call, microseconds: microseconds)
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func `Ignores and counts a trigger within the quiet period`(
    seed: UInt64
  ) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<50 {
      let quiet = Int64.random(in: 0...3_000, using: &random)
      var settings = TriggerSettings(preDuration: .zero, postDuration: .zero)
      settings.quietPeriod = MediaTime(microseconds: quiet)
      var queue = TriggerQueue()
      queue.begin(settings)
      var (accepted, taken, waiting, ignored, refused) = ([Int64](), [Int64](), 0, 0, 0)
      var time: Int64 = 0
      for _ in 0..<500 {
        // Most triggers come close together, as in a burst. Some arrive out of order.
        time += Int64.random(in: -50...200, using: &random)
        queue.append(trigger(time))
        if let last = accepted.last, abs(time - last) < quiet {
          ignored += 1
        } else if waiting == TriggerQueue.capacity {
          refused += 1
        } else {
          accepted.append(time)
          waiting += 1
        }
        if Int.random(in: 0..<40, using: &random) == 0 {
          taken += queue.take().map(\.microseconds)
          waiting = 0
        }
      }
      taken += queue.take().map(\.microseconds)
      #expect(taken == accepted)
      #expect(queue.ignoredCount == ignored && queue.refusedCount == refused)
      #expect(accepted.count + ignored + refused == 500)
    }
  }

  @Test func `Triggers outside the armed time do not count`() {
    var settings = TriggerSettings(
      preDuration: MediaTime(microseconds: 100), postDuration: MediaTime(microseconds: 100))
    settings.armsWhenFull = true
    var queue = TriggerQueue()
    queue.begin(settings)
    queue.append(trigger(900))
    #expect(queue.take().isEmpty && queue.ignoredCount == 1)
    queue.arm(duringMicroseconds: 1_000..<5_000)
    // An audio trigger is reported late.
    queue.append(trigger(999))
    // The ignored triggers begin no quiet period.
    queue.append(trigger(1_000))
    queue.append(trigger(1_100))
    #expect(queue.take().map(\.microseconds) == [1_000] && queue.ignoredCount == 3)
    // The capture ends, and does not know it yet.
    queue.append(trigger(4_999))
    queue.append(trigger(5_000))
    #expect(queue.take().map(\.microseconds) == [4_999] && queue.ignoredCount == 3)
  }

  @Test func `The default quiet period between triggers is a clip length`() {
    var queue = TriggerQueue()
    // The quiet period is unknown before the capture begins.
    for time in [0, 10, 149_999, 150_000, 150_001] as [Int64] { queue.append(trigger(time)) }
    queue.begin(
      TriggerSettings(
        preDuration: MediaTime(microseconds: 100_000), postDuration: MediaTime(microseconds: 50_000)
      ))
    #expect(queue.take().map(\.microseconds) == [0, 150_000])
    #expect(queue.ignoredCount == 3 && queue.refusedCount == 0)
    queue.append(trigger(.max))
    queue.append(trigger(.min))
    #expect(queue.take().map(\.microseconds) == [.max, .min])
  }
}
