// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore
package import Synchronization

/// A single-producer, single-consumer ring in preallocated memory.
///
/// Neither thread blocks, locks or allocates, because each thread writes its own counter and only
/// reads the counter of the other thread. Elements are numbered from 0 in push order, and stay
/// until the consumer removes them.
package struct SPSCRing<Element>: ~Copyable, @unchecked Sendable {
  /// The maximum number of stored elements.
  package let capacity: Int
  // The elements from `tail` up to `head` belong to the consumer, and the free slots belong to the
  // producer.
  @usableFromInline let elements: UnsafeMutablePointer<Element>
  @usableFromInline let head = Atomic<Int>(0)
  @usableFromInline let tail = Atomic<Int>(0)

  /// Reserves a ring.
  ///
  /// - Parameters:
  ///   - capacity: The maximum number of stored elements, at least 1.
  ///   - takesMemoryNow: If true, all pages are allocated at once. Otherwise each page is allocated
  ///     on its first write, so an unused ring uses no memory.
  /// - Throws: `CallFailure` if mmap(2) fails.
  package init(capacity: Int, takesMemoryNow: Bool = true) throws(CallFailure) {
    let bytes = capacity * MemoryLayout<Element>.stride
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | (takesMemoryNow ? MAP_POPULATE : MAP_NORESERVE)
    let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, flags, -1, 0)
    guard let memory, memory != MAP_FAILED else {
      throw CallFailure("reserve \(bytes) bytes for", "a queue", errno)
    }
    self.capacity = capacity
    elements = memory.bindMemory(to: Element.self, capacity: capacity)
  }

  deinit {
    while pop() != nil {}
    munmap(elements, capacity * MemoryLayout<Element>.stride)
  }

  /// The number of stored elements.
  ///
  /// Callable from any thread.
  @inlinable package var count: Int { endNumber - startNumber }

  /// The number of the oldest stored element.
  @inlinable package var startNumber: Int { tail.load(ordering: .acquiring) }

  /// The number that the next pushed element will get.
  @inlinable package var endNumber: Int { head.load(ordering: .acquiring) }

  /// Appends an element.
  ///
  /// Returns true if it was appended, and false if the ring is full. Producer thread only.
  @inlinable package func push(_ element: Element) -> Bool {
    let number = head.load(ordering: .relaxed)
    guard number - tail.load(ordering: .acquiring) < capacity else { return false }
    (elements + number % capacity).initialize(to: element)
    head.store(number + 1, ordering: .releasing)
    return true
  }

  /// The element with a number.
  ///
  /// Nil if the element was not pushed yet or was already removed.
  ///
  /// Consumer thread only.
  @inlinable package subscript(number: Int) -> Element? {
    guard number >= tail.load(ordering: .relaxed), number < endNumber else { return nil }
    return elements[number % capacity]
  }

  /// Removes and returns the oldest element; nil if the ring is empty.
  ///
  /// Consumer thread only.
  @inlinable @discardableResult package func pop() -> Element? {
    let number = tail.load(ordering: .relaxed)
    guard number < endNumber else { return nil }
    let element = (elements + number % capacity).move()
    tail.store(number + 1, ordering: .releasing)
    return element
  }
}
