// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankMediaCore
import Synchronization

/// The driver's buffers that others than the capture thread hold.
///
/// A frame may be held by several; the last who releases it gives its buffer back to the driver.
/// The capture thread hands out and releases without a lock and without asking for memory. Others
/// release under a lock, which the capture thread takes only when it switches the stream on or
/// off: a buffer that is still held then is not handed to the driver.
package final class BufferPool: Sendable {
  /// A slot for a held frame.
  private struct Slot: ~Copyable {
    let isFree = Atomic<Bool>(true)
    let holders = Atomic<Int>(0)
    // Written by the capture thread while the slot is free.
    var index = 0
    var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// The number of a held frame.
  package struct HeldBuffer: Sendable { fileprivate let slot: Int }

  package let driver: any FrameDriver
  /// How many frames may be held at a time: the driver keeps the other half of its buffers, so
  /// that none is lost for want of one.
  package let capacity: Int
  // Its fields say who may touch them when.
  private nonisolated(unsafe) let slots: UnsafeMutablePointer<Slot>
  private enum Stream { case off, on, closed }
  private let stream = Mutex(Stream.off)

  package init(_ driver: any FrameDriver) {
    self.driver = driver
    capacity = driver.bufferCount / 2
    slots = .allocate(capacity: max(1, capacity))
    for slot in 0..<capacity { (slots + slot).initialize(to: Slot()) }
  }

  deinit {
    slots.deinitialize(count: capacity)
    slots.deallocate()
  }

  /// Frames that are held now.
  package var heldCount: Int {
    (0..<capacity).count { !slots[$0].isFree.load(ordering: .acquiring) }
  }

  /// Switches the stream on, without the buffers that are still held.
  package func start() throws(MediaError) {
    let result = stream.withLock { stream in
      Result { () throws(MediaError) in
        guard stream != .closed else {
          throw MediaError(
            .deviceLost, "the device was closed and could not be reopened",
            recovery: "reconnect the device and start again")
        }
        let held = (0..<capacity).filter { !slots[$0].isFree.load(ordering: .acquiring) }
        try driver.start(keeping: held.map { slots[$0].index })
        stream = .on
      }
    }
    try result.get()
  }

  /// Switches the stream off; what is held stays readable.
  package func stop() {
    stream.withLock { stream in
      if stream == .on { stream = .off }
      driver.stop()
    }
  }

  /// Takes the driver's buffers from it for good, so that its device may be opened anew; what is
  /// held stays readable, and keeps the driver until it is released.
  func close() {
    stream.withLock { stream in
      guard stream != .closed else { return }
      stream = .closed
      driver.release()
      if heldCount == 0 { driver.abandon() }
    }
  }

  /// Whether the driver can stream no more.
  var isClosed: Bool { stream.withLock { $0 == .closed } }

  /// Hands a frame to its first holder besides the capture thread; nil when too many are held.
  ///
  /// On the capture thread only.
  func hold(_ bytes: UnsafeRawBufferPointer, index: Int) -> HeldBuffer? {
    for slot in 0..<capacity where slots[slot].isFree.load(ordering: .acquiring) {
      slots[slot].index = index
      slots[slot].bytes = bytes
      slots[slot].holders.store(2, ordering: .relaxed)
      slots[slot].isFree.store(false, ordering: .releasing)
      return HeldBuffer(slot: slot)
    }
    return nil
  }

  /// Adds a holder to a frame that is held.
  func hold(_ heldBuffer: HeldBuffer) {
    slots[heldBuffer.slot].holders.wrappingAdd(1, ordering: .relaxed)
  }

  /// Whether nobody else holds a frame, and thus nobody else can: only a holder adds another.
  func hasOneHolder(_ heldBuffer: HeldBuffer) -> Bool {
    slots[heldBuffer.slot].holders.load(ordering: .acquiring) == 1
  }

  /// The bytes of a frame, valid while it is held.
  package func bytes(of heldBuffer: HeldBuffer) -> UnsafeRawBufferPointer {
    slots[heldBuffer.slot].bytes
  }

  /// Takes a sink's hold away during its call, while the capture thread's own lasts.
  func cancelHold(_ heldBuffer: HeldBuffer) { _ = releaseHold(heldBuffer) }

  /// Ends the capture thread's own hold; true when it was the last, and the buffer is its again.
  func endHolding(_ heldBuffer: HeldBuffer) -> Bool {
    guard releaseHold(heldBuffer) else { return false }
    slots[heldBuffer.slot].isFree.store(true, ordering: .releasing)
    return true
  }

  /// Releases a frame, from any thread but the one that captures.
  package func release(_ heldBuffer: HeldBuffer) {
    guard releaseHold(heldBuffer) else { return }
    stream.withLock { stream in
      // A driver that does not take it has failed, which the capture thread learns by itself.
      if stream == .on { try? driver.requeue(slots[heldBuffer.slot].index) }
      slots[heldBuffer.slot].isFree.store(true, ordering: .releasing)
      if stream == .closed, heldCount == 0 { driver.abandon() }
    }
  }

  private func releaseHold(_ heldBuffer: HeldBuffer) -> Bool {
    slots[heldBuffer.slot].holders.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
      == 0
  }
}
