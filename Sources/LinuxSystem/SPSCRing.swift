// SPDX-License-Identifier: Apache-2.0

import Glibc
package import Synchronization

/// A ring of elements from one thread to one other, in memory that was reserved beforehand.
///
/// Neither thread waits, takes a lock or asks for memory: each owns one counter and reads the
/// other's. Elements are numbered from 0 in the order in which they were pushed, and stay until the
/// taker removes them.
package struct SPSCRing<Element>: ~Copyable, @unchecked Sendable {
  /// The most elements that wait.
  package let capacity: Int
  // Elements from `tail` to `head` are the taker's, the others the pusher's.
  @usableFromInline let elements: UnsafeMutablePointer<Element>
  @usableFromInline let head = Atomic<Int>(0)
  @usableFromInline let tail = Atomic<Int>(0)

  /// Reserves a ring.
  ///
  /// - Parameters:
  ///   - capacity: The most elements that wait, from 1.
  ///   - takesMemoryNow: Whether its memory is there before the first element comes. Otherwise each
  ///     page is taken when it is first written, and an idle ring costs nothing.
  /// - Throws: `SystemError` when the system refuses the memory.
  package init(capacity: Int, takesMemoryNow: Bool = true) throws(SystemError) {
    let bytes = capacity * MemoryLayout<Element>.stride
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | (takesMemoryNow ? MAP_POPULATE : MAP_NORESERVE)
    let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, flags, -1, 0)
    guard let memory, memory != MAP_FAILED else {
      throw SystemError("reserve \(bytes) bytes for", "a queue", errno)
    }
    self.capacity = capacity
    elements = memory.bindMemory(to: Element.self, capacity: capacity)
  }

  deinit {
    while pop() != nil {}
    munmap(elements, capacity * MemoryLayout<Element>.stride)
  }

  /// How many elements wait; from any thread.
  @inlinable package var count: Int { endNumber - startNumber }

  /// The number of the oldest element that is still here.
  @inlinable package var startNumber: Int { tail.load(ordering: .acquiring) }

  /// The number of the element that is pushed next.
  @inlinable package var endNumber: Int { head.load(ordering: .acquiring) }

  /// Adds an element, on the pusher's thread; false where there is no room.
  @inlinable package func push(_ element: Element) -> Bool {
    let number = head.load(ordering: .relaxed)
    guard number - tail.load(ordering: .acquiring) < capacity else { return false }
    (elements + number % capacity).initialize(to: element)
    head.store(number + 1, ordering: .releasing)
    return true
  }

  /// An element by its number, on the taker's thread; nil for one that has not come yet or was
  /// removed.
  @inlinable package subscript(number: Int) -> Element? {
    guard number >= tail.load(ordering: .relaxed), number < endNumber else { return nil }
    return elements[number % capacity]
  }

  /// Takes the oldest element out, on the taker's thread; nil where none waits.
  @inlinable @discardableResult package func pop() -> Element? {
    let number = tail.load(ordering: .relaxed)
    guard number < endNumber else { return nil }
    let element = (elements + number % capacity).move()
    tail.store(number + 1, ordering: .releasing)
    return element
  }
}
