// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Testing

@testable import OvercrankV4L2

/// Frames of drivers that may report invalid values.
struct DequeuedTests {
  private func withFrame(
    _ change: (inout v4l2_buffer) -> Void = { _ in }, _ body: (Dequeued) -> Void
  ) {
    var buffer = v4l2_buffer()
    change(&buffer)
    body(Dequeued(buffer, bytes: UnsafeRawBufferPointer(start: nil, count: 0)))
  }

  @Test(
    "A dequeued frame never has more bytes than are mapped",
    arguments: [
      (0, 0, 0..<0), (1, 0, 0..<1), (100, 0, 0..<100), (101, 0, 0..<100),
      (UInt32.max, 0, 0..<100),
      // The bytes before the data offset count as used.
      (50, 10, 10..<50), (101, 10, 10..<100), (10, 10, 10..<10), (10, 11, 10..<10),
      (UInt32.max, UInt32.max, 100..<100),
    ] as [(UInt32, UInt32, Range<Int>)])
  func byteCount(claimed: UInt32, offset: UInt32, expected: Range<Int>) {
    var plane = v4l2_plane()
    plane.bytesused = claimed
    plane.data_offset = offset
    let memory = (0..<100).map(UInt8.init)
    memory.withUnsafeBytes { memory in
      #expect(Array(plane.payload(in: memory)) == expected.map(UInt8.init))
    }
  }

  @Test(
    "V4L2 timestamps become microseconds and wrap on overflow",
    arguments: [
      (0, 0, 0), (12, 345_678, 12_345_678), (-1, 0, -1_000_000),
      // These are the first timestamp of vivid's wrap_timestamp and the one at which it wraps.
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

  @Test func `A failed buffer without bytes and time is cancelled`() {
    let error = UInt32(V4L2_BUF_FLAG_ERROR)
    withFrame({ $0.flags = error }) { #expect($0.isCancelled) }
    withFrame({ $0.flags = 0 }) { #expect(!$0.isCancelled) }
    withFrame({
      $0.flags = error
      $0.timestamp.tv_usec = 1
    }) { #expect(!$0.isCancelled) }
  }

  @Test func `V4L2 buffer flags give the error state and the clock type`() {
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
