// SPDX-License-Identifier: Apache-2.0
import CVideo4Linux
import Testing

@testable import V4L2

/// Claims about frames whose driver may say anything.
struct DequeuedTests {
  private func withFrame(
    _ change: (inout v4l2_buffer) -> Void = { _ in }, _ body: (Dequeued) -> Void
  ) {
    var buffer = v4l2_buffer()
    change(&buffer)
    withUnsafeTemporaryAllocation(byteCount: 100, alignment: 1) { memory in
      body(Dequeued(buffer, memory: UnsafeRawBufferPointer(memory)))
    }
  }

  @Test(
    "A frame never has more bytes than are mapped",
    arguments: [(0, 0), (1, 1), (100, 100), (101, 100), (UInt32.max, 100)] as [(UInt32, Int)])
  func byteCount(claimed: UInt32, expected: Int) {
    withFrame({ $0.bytesused = claimed }) { #expect($0.bytes.count == expected) }
  }

  @Test(
    "Times are microseconds, and those that do not fit wrap",
    arguments: [
      (0, 0, 0), (12, 345_678, 12_345_678), (-1, 0, -1_000_000),
      // Where vivid's wrap_timestamp begins, and what it reaches.
      (9_223_372_020, 0, 9_223_372_020_000_000),
      (9_223_372_036_854, 775_807, .max),
      (9_223_372_036_854, 775_808, .min),
      (.max, .max, .max &* 1_000_000 &+ .max),
    ] as [(Int, Int, Int64)])
  func time(seconds: Int, microseconds: Int, expected: Int64) {
    withFrame({ $0.timestamp = timeval(tv_sec: seconds, tv_usec: microseconds) }) {
      #expect($0.microseconds == expected)
    }
  }

  @Test func `The flags tell a damaged frame, and the clock`() {
    withFrame({ $0.flags = 0x2001 }) {
      #expect(!$0.isError)
      #expect($0.clock == .monotonic)
    }
    withFrame({ $0.flags = 0x4041 }) {
      #expect($0.isError)
      #expect($0.clock == .copied)
    }
    for flags in [0, 0x6000, 0xe000] as [UInt32] {
      withFrame({ $0.flags = flags }) { #expect($0.clock == .unknown) }
    }
  }
}
