// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import Testing

/// The time limit for calls of libav functions.
struct ReadWatchTests {
  @Test func `An FFmpeg read times out only if it makes no progress`() {
    let watch = ReadWatch()
    let limit = ReadWatch.longestStall
    watch.begin(now: 0)
    for step in 0..<Int64(20) {
      let ends = watch.shouldEnd(position: step * 100, now: step * limit / 2)
      #expect(!ends)
    }
    // The file is read back and forth in a range that was already read, until the time limit.
    let last = 19 * limit / 2
    let ends = [limit - 1, limit, limit + 1].map { time in
      [0, 1_900, 50].map { watch.shouldEnd(position: $0, now: last + time) }
    }
    #expect(ends == [[false, false, false], [true, true, true], [true, true, true]])
    #expect(watch.isStalled)
  }

  @Test func `Each FFmpeg read starts with the full time limit`() {
    let watch = ReadWatch()
    watch.begin(now: 0)
    #expect(!watch.shouldEnd(position: 1, now: 0))
    watch.begin(now: ReadWatch.longestStall)
    #expect(!watch.shouldEnd(position: 0, now: 2 * ReadWatch.longestStall - 1))
    #expect(watch.shouldEnd(position: 0, now: 2 * ReadWatch.longestStall))
  }
}
