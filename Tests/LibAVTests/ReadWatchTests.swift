// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import Testing

/// No call into libav goes on without an end.
struct ReadWatchTests {
  @Test func `A call may read on as long as it gets on, or does not work`() {
    let watch = ReadWatch()
    let limit = ReadWatch.longestStall
    watch.begin(now: 0)
    for step in 0..<Int64(20) {
      let ends = watch.shouldEnd(position: step * 100, now: step * limit / 2)
      #expect(!ends)
    }
    // Back and forth over what was read already, until it is enough.
    let last = 19 * limit / 2
    let ends = [limit - 1, limit, limit + 1].map { time in
      [0, 1_900, 50].map { watch.shouldEnd(position: $0, now: last + time) }
    }
    #expect(ends == [[false, false, false], [true, true, true], [true, true, true]])
    #expect(watch.isStalled)
  }

  @Test func `The next call begins anew`() {
    let watch = ReadWatch()
    watch.begin(now: 0)
    #expect(!watch.shouldEnd(position: 1, now: 0))
    watch.begin(now: ReadWatch.longestStall)
    #expect(!watch.shouldEnd(position: 0, now: 2 * ReadWatch.longestStall - 1))
    #expect(watch.shouldEnd(position: 0, now: 2 * ReadWatch.longestStall))
  }
}
