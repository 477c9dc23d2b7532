// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore
import Testing

struct SPSCRingTests {
  /// A copyable owner of the noncopyable ring, since `#expect` copies its operands.
  private final class Shared<Element>: Sendable {
    let ring: SPSCRing<Element>
    init(capacity: Int, takesMemoryNow: Bool = true) throws {
      ring = try SPSCRing(capacity: capacity, takesMemoryNow: takesMemoryNow)
    }
    var count: Int { ring.count }
    func push(_ element: Element) -> Bool { ring.push(element) }
    func pop() -> Element? { ring.pop() }
    subscript(number: Int) -> Element? { ring[number] }
  }

  @Test func `A full ring buffer rejects elements and keeps FIFO order`() throws {
    let ring = try Shared<Int>(capacity: 3)
    for number in 0..<3 { #expect(ring.push(number)) }
    #expect(!ring.push(3) && ring.count == 3)
    #expect(ring[0] == 0 && ring[2] == 2 && ring[3] == nil)
    #expect(ring.pop() == 0 && ring[0] == nil)
    #expect(ring.push(3) && ring[3] == 3)
    #expect((1...3).allSatisfy { ring.pop() == $0 } && ring.pop() == nil)
    #expect(ring.ring.startNumber == 4 && ring.ring.endNumber == 4)
  }

  @Test func `A ring buffer passes every element between two threads`() throws {
    let (shared, count) = (try Shared<Int>(capacity: 7, takesMemoryNow: false), 200_000)
    let pusher = try BlockingThread {
      for number in 0..<count { while !shared.push(number) { sched_yield() } }
    }
    var wrong = 0
    for number in 0..<count {
      while shared.count == 0 { sched_yield() }
      if shared.pop() != number { wrong += 1 }
    }
    pusher.join()
    #expect(wrong == 0 && shared.count == 0)
  }

  @Test func `A ring buffer releases its elements when it is deallocated`() throws {
    final class Element {}
    weak var left: Element?
    do {
      let ring = try Shared<Element>(capacity: 2)
      let element = Element()
      left = element
      #expect(ring.push(element))
    }
    #expect(left == nil)
  }

  @Test func `A ring buffer larger than the address space throws an error`() {
    #expect(throws: CallFailure.self) { _ = try Shared<Int>(capacity: 1 << 57) }
  }
}
