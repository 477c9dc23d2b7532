// SPDX-License-Identifier: Apache-2.0

import AllocationCounter
import Dispatch
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

/// A sound card without a clock that notes, each time the capture thread comes for a block, how
/// often that thread has asked for memory so far, and breaks off now and then.
final class CountingAudio: AudioDriver {
  let format = AudioFormat(.s16, sampleRate: 48_000, channelCount: 2)
  private let waste: Int
  private let length: Int
  private let isOver = DispatchSemaphore(value: 0)
  // Written by the capture thread alone, read when it has ended.
  private nonisolated(unsafe) let counts: UnsafeMutableBufferPointer<Int64>
  private nonisolated(unsafe) var visits = 0

  init(waste: Int, length: Int) {
    self.waste = waste
    self.length = length
    counts = .allocate(capacity: length)
    counts.initialize(repeating: 0)
  }

  deinit { counts.deallocate() }

  /// The requests for memory from each visit to the next, once the stream is off.
  var requests: [Int64] { (0..<max(0, length - 1)).map { counts[$0 + 1] - counts[$0] } }

  /// Waits until as many blocks have been taken as are counted.
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
