// SPDX-License-Identifier: Apache-2.0
import Synchronization

@testable import Capture

/// A driver that gives what a script says, at once: no clock, no threads.
final class ScriptedDriver: FrameDriver {
  enum Step: Sendable {
    case frame(FrameStamp, byteCount: Int)
    case nothing
    case ended
    case failure(CaptureError)
  }

  let bufferCount: Int
  private let steps: [Step]
  private let next = Atomic<Int>(0)
  private let lent = Atomic<Int>(0)
  // Written in the initialiser only.
  private nonisolated(unsafe) let bytes: UnsafeRawBufferPointer

  init(_ steps: [Step], bufferCount: Int = 4) {
    self.steps = steps
    self.bufferCount = bufferCount
    let largest = steps.map { if case .frame(_, let count) = $0 { count } else { 0 } }.max() ?? 0
    let memory = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, largest), alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 7)
    bytes = UnsafeRawBufferPointer(memory)
  }

  deinit { bytes.deallocate() }

  /// Buffers that were lent and not given back.
  var missingBuffers: Int { lent.load(ordering: .acquiring) }

  func start() {}

  func dequeue(timeoutMilliseconds: Int32) throws(CaptureError) -> DequeueResult {
    let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
    guard index < steps.count else { return .ended }
    switch steps[index] {
    case .nothing: return .none
    case .ended: return .ended
    case .failure(let error): throw error
    case .frame(let stamp, let count):
      lent.wrappingAdd(1, ordering: .relaxed)
      return .frame(
        LentBuffer(
          stamp: stamp, bytes: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)),
          index: index, driver: self))
    }
  }

  func requeue(_ index: Int) { lent.wrappingSubtract(1, ordering: .relaxed) }

  func stop() {}
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the same seed gives the same script.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }
}
