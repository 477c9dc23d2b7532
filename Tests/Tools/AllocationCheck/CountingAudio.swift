// SPDX-License-Identifier: Apache-2.0

import AllocationCounter
import Dispatch
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

/// A simulated sound card that records the capture thread's allocation count at each read.
///
/// The card has no clock, and every 500th read reports an overrun.
final class CountingAudio: AudioDriver {
  let format = AudioFormat(.s16, sampleRate: 48_000, channelCount: 2)
  private let waste: Int
  private let length: Int
  private let isOver = DispatchSemaphore(value: 0)
  // This is written only by the capture thread, and read after that thread has ended.
  private nonisolated(unsafe) let counts: UnsafeMutableBufferPointer<Int64>
  private nonisolated(unsafe) var visits = 0

  init(waste: Int, length: Int) {
    self.waste = waste
    self.length = length
    counts = .allocate(capacity: length)
    counts.initialize(repeating: 0)
  }

  deinit { counts.deallocate() }

  /// The number of allocations between consecutive reads.
  ///
  /// Valid after the stream has stopped.
  var requests: [Int64] { (0..<max(0, length - 1)).map { counts[$0 + 1] - counts[$0] } }

  /// Waits until `length` blocks were read.
  func waitForEnd() { isOver.wait() }

  func nanoseconds() -> Int64 { Int64(visits) * 10_000_000 }
  func start() {}
  func stop() {}

  func read(
    into memory: UnsafeMutableRawBufferPointer, timeoutMilliseconds: Int32
  ) throws(MediaError) -> AudioReading {
    guard visits < length else {
      if visits == length { isOver.signal() }
      visits = length + 1
      return .none
    }
    counts[visits] = allocation_count()
    visits += 1
    if waste > 0, visits % waste == 0 {
      UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1).deallocate()
    }
    if visits % 500 == 0 { return .lost(.overrun) }
    return .samples(
      count: 480, SampleStamp(sample: 480, nanoseconds: Int64(visits) * 10_000_000))
  }
}
