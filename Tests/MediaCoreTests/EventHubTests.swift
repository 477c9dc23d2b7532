// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Testing

/// Tests the broadcast of events while listeners come and go.
@Suite struct EventHubTests {
  /// Receives the next event of a new listener, which then leaves.
  private static func received(_ event: Int, by hub: EventHub<Int>) async -> Int? {
    var events = hub.events().makeAsyncIterator()
    hub.send(event)
    return await events.next()
  }

  @Test func `Each event stream of a hub receives every event`() async {
    let hub = EventHub<Int>()
    var first = hub.events().makeAsyncIterator()
    var second = hub.events().makeAsyncIterator()
    hub.send(1)
    #expect(await first.next() == 1)
    #expect(await second.next() == 1)
  }

  @Test func `An event is not kept for later listeners`() async {
    let hub = EventHub<Int>()
    hub.send(1)
    #expect(await Self.received(2, by: hub) == 2)
    hub.send(3)
    #expect(await Self.received(4, by: hub) == 4)
  }

  @Test func `A listener still gets events after another listener left`() async {
    let hub = EventHub<Int>()
    var staying = hub.events().makeAsyncIterator()
    #expect(await Self.received(1, by: hub) == 1)
    hub.send(2)
    #expect(await staying.next() == 1)
    #expect(await staying.next() == 2)
  }

  @Test func `Finishing an event hub ends present and later streams`() async {
    let hub = EventHub<Int>()
    var present = hub.events().makeAsyncIterator()
    hub.send(1)
    hub.finish()
    hub.send(2)
    #expect(await present.next() == 1)
    #expect(await present.next() == nil)
    var later = hub.events().makeAsyncIterator()
    #expect(await later.next() == nil)
  }
}
