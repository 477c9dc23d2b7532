// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import OvercrankCapture

struct SampleDelivererTests {
  /// A queue of numbers in place of samples.
  ///
  /// It keeps no record of dropped samples.
  private final class Numbers: DeliveryQueue {
    private let numbers = Mutex<[Int]>([])
    var count: Int { numbers.withLock { $0.count } }
    func push(_ number: Int) { numbers.withLock { $0.append(number) } }
    func passNoteOn() -> Bool { false }
    func take() -> Int? { numbers.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    func drain() { numbers.withLock { $0 = [] } }
  }

  /// A sink may still receive samples while its replacement is made.
  @Test func `A replaced sample sink still delivers its last samples`() async throws {
    let deliverer = SampleDeliverer<Int>()
    defer { deliverer.stop() }
    let (old, new) = (Numbers(), Numbers())
    let oldFeed = try deliverer.begin(old)
    let newFeed = try deliverer.begin(new)
    new.push(1)
    newFeed.wake()
    #expect(await deliverer.next() == 1)
    old.push(2)
    oldFeed.wake()
    #expect(await deliverer.next() == 2)
    // A blocking reader gets only samples that were not delivered before.
    old.push(3)
    new.push(4)
    #expect(deliverer.waitForNext { ($0 as? Numbers)?.take() } == 3)
    #expect(deliverer.waitForNext { ($0 as? Numbers)?.take() } == 4)
    withExtendedLifetime((oldFeed, newFeed)) {}
  }

  @Test(.timeLimit(.minutes(30)), arguments: [false, true])
  func `Samples that arrive after a sample deliverer stops are freed`(
    _ hasHandler: Bool
  ) async throws {
    let numbers = Numbers()
    let handled = Numbers()
    weak var watched: SampleDeliverer<Int>?
    do {
      let deliverer = SampleDeliverer<Int>()
      watched = deliverer
      let feed = try deliverer.begin(numbers)
      if hasHandler { deliverer.setHandler(on: nil) { handled.push($0) } }
      deliverer.stop()
      #expect(await deliverer.next() == nil)
      numbers.push(1)
      feed.wake()
      while numbers.count > 0 { await Task.yield() }
    }
    // The thread keeps the deliverer alive, and ends when no sample can arrive anymore.
    while watched != nil { await Task.yield() }
    #expect(numbers.count == 0 && handled.count == 0)
  }
}
