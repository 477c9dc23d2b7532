// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import MediaTiming
import Retiming

/// Which frames a constant rate shows, and for how many slots each.
struct ConstantRatePlan {
  /// A frame that is due, in order.
  struct Item {
    /// The frame, and the place of its source among those of the export; nil where the
    /// composition plays nothing.
    let frame: (source: Int, index: Int)?
    /// How many slots show it; zero where the next one is due before any.
    let count: Int64
  }

  let slots: FrameSlots
  private(set) var items: [Item] = []
  /// Slots that repeat the picture before.
  private(set) var duplicatedCount: Int64 = 0
  /// Frames that no slot shows.
  private(set) var skippedCount: Int64 = 0

  init(_ track: CompositionTrack, _ rate: FrameRate, _ assets: [Asset]) throws {
    let tables = try assets.map { asset in
      guard let video = asset.videoTrack else { throw ExportError.hasNoPictures(asset.path) }
      return video.frames
    }
    let paths = assets.map(\.path)
    slots = try Self.slots(track, rate, paths, tables)
    var sampler = HoldSampler(slots)
    var waiting: (source: Int, index: Int)?
    func show(_ frame: (source: Int, index: Int)?, from time: Rational) throws {
      if let count = try sampler.next(time) { append(waiting, count) }
      waiting = frame
    }
    for run in try PlaybackRun.runs(of: track.segments, paths) {
      guard let source = run.source else {
        try show(nil, from: run.target.seconds)
        continue
      }
      let placing = try run.mappings.map { (mapping) throws(TimingError) in
        try PlaybackTicks(mapping, timescale: rate.numerator)
      }
      let frames = try run.frames(of: tables[source], path: paths[source])
      for showing in try run.showings(frames, of: tables[source]) {
        // Rounded up to a part of a slot: the slots at or after it are the same.
        let ticks = try placing[showing.mapping].placed(
          ofSource: showing.time, rounding: .towardPositiveInfinity
        ).ticks
        try show(
          (source, showing.index), from: Rational(Int128(ticks), Int128(rate.numerator)))
      }
    }
    append(waiting, sampler.finish())
  }

  private mutating func append(_ frame: (source: Int, index: Int)?, _ count: Int64) {
    items.append(Item(frame: frame, count: count))
    duplicatedCount += max(0, count - 1)
    if frame != nil, count == 0 { skippedCount += 1 }
  }

  private static func slots(
    _ track: CompositionTrack, _ rate: FrameRate, _ paths: [String], _ tables: [FrameTable]
  ) throws -> FrameSlots {
    // The source cannot say its end any better than to a tick, as long as that plays there.
    var tick = Rational.zero
    if let last = track.segments.last, let mapping = last.mapping,
      let source = paths.firstIndex(of: last.source?.path ?? "")
    {
      tick = try Rational(1, Int128(tables[source].timescale))
      if let speed = try mapping.meanSpeed() { tick = try tick.multiplied(by: speed.stretch()) }
    }
    return try FrameSlots(duration: track.duration.seconds, rate: rate, sourceTick: tick)
  }
}
