// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import MediaTiming
import Retiming

/// Which frames a constant rate shows, and for how many slots each.
struct ConstantRatePlan {
  /// A frame that is due, in order.
  struct Item {
    /// The frame of the source; nil where the composition plays nothing.
    let index: Int?
    /// How many slots show it; zero where the next one is due before any.
    let count: Int64
  }

  let slots: FrameSlots
  private(set) var items: [Item] = []
  /// Slots that repeat the picture before.
  private(set) var duplicatedCount: Int64 = 0
  /// Frames that no slot shows.
  private(set) var skippedCount: Int64 = 0

  init(_ composition: Composition, _ rate: FrameRate, _ table: FrameTable) throws {
    slots = try Self.slots(composition, rate, table)
    var sampler = HoldSampler(slots)
    var waiting: Int?
    try Self.forEachFrame(of: composition, table) { index, time in
      if let count = try sampler.next(time) { append(waiting, count) }
      waiting = index
    }
    append(waiting, sampler.finish())
  }

  private mutating func append(_ index: Int?, _ count: Int64) {
    items.append(Item(index: index, count: count))
    duplicatedCount += max(0, count - 1)
    if index != nil, count == 0 { skippedCount += 1 }
  }

  private static func slots(
    _ composition: Composition, _ rate: FrameRate, _ table: FrameTable
  ) throws -> FrameSlots {
    // The source cannot say its end any better than to a tick, as long as that plays there.
    var tick = try Rational(1, Int128(table.timescale))
    if let last = composition.segments.last?.mapping {
      tick = try tick.multiplied(
        by: last.target.durationInSeconds.divided(by: last.source.durationInSeconds))
    }
    return try FrameSlots(duration: composition.duration.seconds, rate: rate, sourceTick: tick)
  }

  /// The frames in the order in which the composition shows them, each with the instant from
  /// which on it is shown; nil where nothing plays.
  private static func forEachFrame(
    of composition: Composition, _ table: FrameTable,
    _ body: (_ index: Int?, _ time: Rational) throws -> Void
  ) throws {
    var shown: Int?
    for segment in composition.segments {
      guard let mapping = segment.mapping else {
        try body(nil, segment.target.start.seconds)
        shown = nil
        continue
      }
      guard var index = table.index(at: mapping.source.start) else { continue }
      while index < table.entries.count {
        let time = try table.time(ofFrame: Int64(index))
        guard time < mapping.source.end else { break }
        // Where speeds change within one frame it goes on, and is not shown anew.
        if shown != index {
          // The frame that is on when the segment begins is shown from its beginning.
          let start = max(time, mapping.source.start)
          try body(index, try mapping.targetSeconds(of: start.seconds))
        }
        shown = index
        index += 1
      }
    }
  }
}
