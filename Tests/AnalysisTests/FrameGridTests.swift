// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Finds the positions and lengths of gaps from frame times alone.
struct FrameGridTests {
  /// The frame rate in fps, the timescale in ticks per second, and the jitter as a fraction of the
  /// frame period.
  private static let clocks: [(rate: Double, timescale: Double, jitter: Double)] = [
    (240, 240_000, 0), (240, 1_000_000, 0.02), (59.94, 90_000, 0), (960, 1_000_000, 0.05),
    (240, 1_000, 0), (120, 1_000, 0.05), (480, 1_000, 0), (30, 30, 0),
  ]

  @Test(arguments: clocks.indices)
  func `Finds exactly the gaps that were planted in frame times`(index: Int) {
    let clock = Self.clocks[index]
    for seed in 0..<40 as Range<UInt64> {
      var random = SeededGenerator(seed: seed &* 77 &+ UInt64(index))
      var slot = 0
      var ticks: [Int64] = []
      var planted: [[Int]] = []
      for frame in 0..<400 {
        let late = Double.random(in: 0...clock.jitter, using: &random)
        ticks.append(Int64(((Double(slot) + late) / clock.rate * clock.timescale).rounded()))
        slot += 1
        if frame > 0, frame < 399, Int.random(in: 0..<12, using: &random) == 0 {
          let count = Int.random(in: 1...4, using: &random)
          planted.append([frame, count])
          slot += count
        }
      }
      let grid = FrameGrid(ticks[...], isExact: clock.timescale < 500)
      #expect(grid.isRegular && !grid.isCoarse)
      #expect(grid.gaps.map { [$0.after, $0.count] } == planted, "seed \(seed)")
      let rate = Double(grid.periodCount) / Double(ticks[399] - ticks[0]) * clock.timescale
      #expect(abs(rate / clock.rate - 1) < 0.002)
    }
  }

  @Test func `A late frame does not count as a gap`() {
    var ticks = (0..<200).map { Int64($0) * 1_000 }
    for index in [20, 60, 61, 150] { ticks[index] += 700 }
    #expect(FrameGrid(ticks[...]).gaps.isEmpty)
  }

  @Test func `Irregular frame times are not reported as gaps`() {
    var random = SeededGenerator(seed: 5)
    var ticks: [Int64] = [0]
    for _ in 0..<300 {
      ticks.append(ticks[ticks.count - 1] + .random(in: 100...900, using: &random))
    }
    let grid = FrameGrid(ticks[...])
    #expect(!grid.isRegular && grid.gaps.isEmpty)
  }

  @Test func `Reports millisecond frame times as too coarse for 960 fps`() {
    let ticks = (0..<400).map { Int64((Double($0) / 0.96).rounded()) }
    let grid = FrameGrid(ticks[...])
    #expect(grid.isCoarse && grid.gaps.isEmpty)
  }

  @Test func `A gap in frame times does not count as a frame rate change`() {
    var ticks: [Int64] = [0]
    func add(_ count: Int, _ interval: Int64) {
      for _ in 0..<count { ticks.append(ticks[ticks.count - 1] + interval) }
    }
    add(100, 1_000)
    add(1, 7_000)
    add(60, 1_000)
    add(80, 2_000)
    add(50, 1_250)
    let ranges = FrameRateSegments.ranges(of: ticks)
    #expect(ranges == [0...161, 161...241, 241...291])
    #expect(FrameGrid(ticks[ranges[0]]).gaps.map(\.count) == [6])
    #expect(FrameGrid(ticks[ranges[1]]).gaps.isEmpty)
    #expect(FrameRateSegments.ranges(of: [0, 5]) == [0...1])
    #expect(FrameRateSegments.ranges(of: []).isEmpty)
  }
}
