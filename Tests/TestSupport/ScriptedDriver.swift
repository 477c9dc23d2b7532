// SPDX-License-Identifier: Apache-2.0

package import OvercrankCapture
package import OvercrankFrameAccounting
package import OvercrankMediaCore
import Synchronization

/// A simulated driver that follows a script without a clock or threads.
package final class ScriptedDriver: FrameDriver {
  /// The result of one call of `dequeue`.
  package enum Step: Sendable {
    /// A frame of the given size, with all bytes equal.
    case frame(FrameObservation, byteCount: Int)
    /// A frame with the given bytes.
    case frameWithBytes(FrameObservation, [UInt8])
    /// No frame, after running a closure on the capture thread.
    case action(@Sendable () -> Void)
    case nothing
    case ended
    case failure(MediaError)
    /// A frame whose buffer the driver does not take back.
    case unreturnable(FrameObservation, byteCount: Int, MediaError)
  }

  package let bufferCount: Int
  private let steps: [Step]
  /// The closures that have not run yet.
  ///
  /// Closures often retain an owner of the driver, so none is kept after it has run.
  private let actions: Mutex<[Int: @Sendable () -> Void]>
  private let startError: @Sendable () -> MediaError?
  private let next = Atomic<Int>(0)
  private let ended = Atomic<Bool>(false)
  private let held = Atomic<Int>(0)
  private let stops = Atomic<Int>(0)
  private let abandons = Atomic<Int>(0)
  private let clock: Atomic<Int64>
  // This is written only in the initializer. Each `frameWithBytes` has separate memory, because it
  // may be read until the end.
  private nonisolated(unsafe) let bytes: UnsafeRawBufferPointer
  private nonisolated(unsafe) let frameBytes: [Int: UnsafeRawBufferPointer]

  /// Makes a driver with a script.
  ///
  /// `startError` is computed and thrown when the stream starts.
  package init(
    _ steps: [Step], bufferCount: Int = 4,
    startError: @autoclosure @escaping @Sendable () -> MediaError? = nil
  ) {
    var actions: [Int: @Sendable () -> Void] = [:]
    self.steps = steps.enumerated().map { index, step in
      guard case .action(let body) = step else { return step }
      actions[index] = body
      return .nothing
    }
    self.actions = Mutex(actions)
    self.bufferCount = bufferCount
    self.startError = startError
    // The clock starts 60 s before the first frame, early enough for any initial sequence number.
    clock = Atomic(
      steps.lazy.compactMap(\.observation).first.map { $0.microseconds &- 60_000_000 } ?? 0)
    let largest = steps.map(\.byteCount).max() ?? 0
    let memory = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, largest), alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 7)
    bytes = UnsafeRawBufferPointer(memory)
    var frameBytes: [Int: UnsafeRawBufferPointer] = [:]
    for case (let index, .frameWithBytes(_, let content)) in steps.enumerated() {
      let memory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(1, content.count), alignment: 16)
      memory.copyBytes(from: content)
      frameBytes[index] = UnsafeRawBufferPointer(rebasing: memory[..<content.count])
    }
    self.frameBytes = frameBytes
  }

  deinit {
    bytes.deallocate()
    for content in frameBytes.values { content.deallocate() }
  }

  /// The number of buffers that were dequeued and not returned.
  ///
  /// Buffers that are held when the stream stops also count, because they are not returned
  /// afterwards.
  package var missingBuffers: Int { held.load(ordering: .acquiring) }
  /// The number of times that the device was abandoned.
  package var abandonCount: Int { abandons.load(ordering: .acquiring) }
  /// The number of times that the stream was stopped.
  package var stopCount: Int { stops.load(ordering: .acquiring) }

  /// The time of the last frame, unless that time is implausible.
  package func microseconds() -> Int64 { clock.load(ordering: .relaxed) }

  package func start(keeping held: [Int]) throws(MediaError) {
    if let error = startError() { throw error }
  }

  package func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
    guard index < steps.count else { return end() }
    switch steps[index] {
    case .nothing, .action:
      actions.withLock { $0.removeValue(forKey: index) }?()
      return nil
    case .ended: return end()
    case .failure(let error): throw error
    case .frame(let observation, let count), .unreturnable(let observation, let count, _):
      return hold(observation, UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), index)
    case .frameWithBytes(let observation, _):
      return hold(observation, frameBytes[index] ?? bytes, index)
    }
  }

  package var hasEnded: Bool { ended.load(ordering: .relaxed) }

  private func end() -> DequeuedBuffer? {
    ended.store(true, ordering: .relaxed)
    return nil
  }

  private func hold(
    _ observation: FrameObservation, _ bytes: UnsafeRawBufferPointer, _ index: Int
  ) -> DequeuedBuffer? {
    held.wrappingAdd(1, ordering: .relaxed)
    let now = clock.load(ordering: .relaxed)
    let passed = observation.microseconds.subtractingReportingOverflow(now)
    let isClock = !passed.overflow && (0...120_000_000).contains(passed.partialValue)
    clock.store(isClock ? observation.microseconds : now &+ 10_000, ordering: .relaxed)
    return DequeuedBuffer(observation, bytes: bytes, index: index, driver: self)
  }

  package func requeue(_ index: Int) throws(MediaError) {
    held.wrappingSubtract(1, ordering: .relaxed)
    if case .unreturnable(_, _, let error) = steps[index] { throw error }
  }

  package func abandon() { abandons.wrappingAdd(1, ordering: .relaxed) }

  package func stop() { stops.wrappingAdd(1, ordering: .relaxed) }
}

extension ScriptedDriver.Step {
  fileprivate var observation: FrameObservation? {
    switch self {
    case .frame(let observation, _), .frameWithBytes(let observation, _),
      .unreturnable(let observation, _, _):
      observation
    default: nil
    }
  }

  fileprivate var byteCount: Int {
    switch self {
    case .frame(_, let count), .unreturnable(_, let count, _): count
    default: 0
    }
  }
}
