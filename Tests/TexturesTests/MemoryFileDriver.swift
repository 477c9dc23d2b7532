// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization
import TestSupport
import Testing

/// A driver with one frame, in memory that a renderer can import.
final class MemoryFileDriver: FrameDriver {
  /// The driver's answer to a request to export a buffer.
  enum Exports { case memory, nothing, failure }

  static let error = MediaError(.deviceFailed, "no buffer is exported")

  let bufferCount = 4
  private let exports: Exports
  private let descriptor: CInt
  // Written only in the initializer.
  private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer
  private let deliveries = Atomic<Int>(0)
  private let requests = Atomic<Int>(0)

  /// Makes a frame of random bytes.
  init(byteCount: Int, _ exports: Exports) throws {
    self.exports = exports
    let name = "/overcrank-\(UInt64.random(in: .min ... .max))"
    descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0o600)
    try #require(descriptor >= 0 && shm_unlink(name) == 0 && ftruncate(descriptor, byteCount) == 0)
    let start = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    try #require(start != MAP_FAILED)
    memory = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
    var random = SeededGenerator(seed: 5)
    for offset in 0..<byteCount { memory[offset] = UInt8.random(in: 0...255, using: &random) }
  }

  deinit {
    munmap(memory.baseAddress, memory.count)
    close(descriptor)
  }

  /// The number of requests to export a buffer.
  var exportCount: Int { requests.load(ordering: .relaxed) }

  func start(keeping held: [Int]) {}

  func dequeue(timeoutMilliseconds: Int32) -> DequeuedBuffer? {
    guard deliveries.wrappingAdd(1, ordering: .relaxed).oldValue == 0 else { return nil }
    return DequeuedBuffer(
      FrameObservation(sequence: 0, microseconds: 5_000_000),
      bytes: UnsafeRawBufferPointer(memory), index: 0, driver: self)
  }

  var hasEnded: Bool { deliveries.load(ordering: .relaxed) > 1 }

  func requeue(_ index: Int) {}

  func stop() {}

  func export(_ index: Int) throws(MediaError) -> ExportedBuffer? {
    requests.wrappingAdd(1, ordering: .relaxed)
    switch exports {
    case .memory: return ExportedBuffer(owning: dup(descriptor), of: UnsafeRawBufferPointer(memory))
    case .nothing: return nil
    case .failure: throw Self.error
    }
  }
}
