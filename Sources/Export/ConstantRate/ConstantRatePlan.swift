// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

/// Which frames a constant rate shows, and for how many slots each.
struct ConstantRatePlan: Sendable {
  /// A frame of one of the sources.
  struct Frame: Hashable, Sendable {
    /// The place of its source among those of the export.
    let source: Int
    let index: Int
  }

  /// What one slot or several in a row show.
  struct Item: Sendable {
    struct Part: Sendable {
      /// Nil where the composition plays nothing.
      let frame: Frame?
      /// How much of the picture it makes; all parts add up to 1.
      let share: Float
    }

    let parts: [Part]
    /// Above zero.
    let count: Int64
  }

  let slots: OutputFrameGrid
  let items: [Item]
  /// Slots that repeat the picture before.
  let duplicatedCount: Int64
  /// Frames that no slot shows.
  let skippedCount: Int64
  /// Where the source has fewer frames than there are slots.
  let sparse: [ExportReport.LowRateRange]

  init(
    _ track: CompositionTrack, _ rate: FrameRate, _ sampling: FrameSampling, _ assets: [Asset]
  ) throws {
    let tables = try assets.map { asset in
      guard let video = asset.videoTrack else { throw MediaError.hasNoFrames(asset.path) }
      return video.frames
    }
    let paths = assets.map(\.path)
    let slots = try Self.slots(track, rate, paths, tables)
    self.slots = slots
    let isRegular = tables.map(\.isRegular)
    var frames: [Frame?] = []
    var times: [Rational] = []
    var jittered: [Range<Int>] = []
    for run in try PlaybackRun.runs(of: track.segments, paths) {
      guard let source = run.source else {
        frames.append(nil)
        times.append(run.target.seconds)
        continue
      }
      let placing = try run.mappings.map {
        try SlotTimes($0, rate, sampling, uncertainty: tables[source].uncertaintyInSeconds)
      }
      let range = try run.frames(of: tables[source], path: paths[source])
      var shown: [Int: Range<Int>] = [:]
      for showing in try run.showings(range, of: tables[source]) {
        shown[showing.mapping] =
          (shown[showing.mapping]?.lowerBound ?? frames.count)..<frames.count + 1
        frames.append(Frame(source: source, index: showing.index))
        // Where one side of a boundary is rounded and the other is not, they might cross.
        let time = try placing[showing.mapping].time(ofSource: showing.time)
        times.append(max(time, times.last ?? time))
      }
      if !isRegular[source] {
        jittered += try shown.filter { try slots.suffice(for: $1, run.mappings[$0]) }.values
      }
    }
    let pictures = try slots.frames(
      of: times, until: track.duration.seconds, sampling, jittered: jittered)
    items = pictures.map { image in
      let total = Float(image.total)
      return Item(
        parts: image.parts.map {
          Item.Part(frame: frames[$0.frame], share: Float($0.share) / total)
        },
        count: image.count)
    }
    duplicatedCount = pictures.reduce(0) { $0 + $1.count - 1 }
    var isShown = [Bool](repeating: false, count: frames.count)
    for image in pictures { for part in image.parts { isShown[part.frame] = true } }
    skippedCount = zip(frames, isShown).reduce(0) { $0 + ($1.0 != nil && !$1.1 ? 1 : 0) }
    sparse = try Self.sparse(track, slots, times)
  }

  /// Segments in which fewer frames start than there are slots, but for one at each end.
  private static func sparse(
    _ track: CompositionTrack, _ slots: OutputFrameGrid, _ times: [Rational]
  ) throws -> [ExportReport.LowRateRange] {
    var result: [ExportReport.LowRateRange] = []
    var next = 0
    for segment in track.segments {
      let (start, end) = (segment.target.start.seconds, segment.target.end.seconds)
      while next < times.count, times[next] < start { next += 1 }
      let first = next
      while next < times.count, times[next] < end { next += 1 }
      guard let mapping = segment.mapping, mapping.motion != .hold else { continue }
      let wanted = try slots.count(before: end) - slots.count(before: start)
      let given = Int64(next - first)
      guard given + 2 < wanted else { continue }
      result.append(
        ExportReport.LowRateRange(
          range: segment.target,
          framesPerSecond: try (Rational(given) / (end - start)).checked("a frame rate")))
    }
    return result
  }

  private static func slots(
    _ track: CompositionTrack, _ rate: FrameRate, _ paths: [String], _ tables: [FrameTable]
  ) throws -> OutputFrameGrid {
    // The source cannot say its end any better than to a tick, as long as that plays there.
    var tick = Rational.zero
    if let last = track.segments.last, let mapping = last.mapping,
      let source = paths.firstIndex(of: last.source?.path ?? "")
    {
      tick = Rational(1, over: Int128(tables[source].timescale))
      if let speed = try mapping.meanSpeed() {
        tick = try (tick * speed.stretch).checked("the last tick of \(last.target.displayText)")
      }
    }
    return try OutputFrameGrid(duration: track.duration.seconds, rate: rate, sourceTick: tick)
  }
}

extension OutputFrameGrid {
  /// Whether there are slots for some frames that a mapping shows, but for one in a hundred.
  ///
  /// Never in a ramp, in which there are enough for some of its frames.
  fileprivate func suffice(
    for frames: Range<Int>, _ mapping: PlaybackMapping
  ) throws -> Bool {
    guard mapping.motion == .constant else { return false }
    let slotCount = mapping.target.duration * rate.framesPerSecond
    return try (slotCount * 100).checked("a number of slots") >= Rational(Int64(frames.count) * 99)
  }
}

/// When frames start, as finely as the way of sampling needs it.
private struct SlotTimes {
  private let line: TimeMapping?
  private let ticks: PlaybackTicks
  private let timescale: Int32
  private let rounding: TimeRounding
  /// What the mapping plays, in seconds of the source.
  private let range: ClosedRange<Rational>
  /// How much before its time a slot shows a frame already, in seconds of the source; negative
  /// where it plays backwards.
  private let slack: Rational

  init(
    _ mapping: PlaybackMapping, _ rate: FrameRate, _ sampling: FrameSampling,
    uncertainty: Rational
  ) throws {
    range = mapping.sourceStart...mapping.sourceEnd
    slack = sampling != .hold ? 0 : mapping.isReversed ? -uncertainty : uncertainty
    // Rounded up to a tick of which each slot is a whole number, the slots at or after it are the
    // same: that is all that holding needs, whatever the curve. The others get the instant itself
    // where it is a fraction, and elsewhere to half a nanosecond.
    timescale = rate.numerator * max(1, 2_000_000_000 / rate.numerator)
    rounding = sampling == .hold ? .towardPositiveInfinity : .halfAwayFromZero
    line = sampling == .hold ? nil : mapping.line
    ticks = try PlaybackTicks(mapping, timescale: timescale)
  }

  func time(ofSource exact: Rational) throws -> Rational {
    let early = try (exact - slack).checked("the time of a frame")
    let time = min(max(early, range.lowerBound), range.upperBound)
    if let line {
      let inside = min(max(time, line.source.start.seconds), line.source.end.seconds)
      if let exact = line.targetSeconds(of: inside).ifValid { return exact }
    }
    let placed = try ticks.tick(at: time, rounding: rounding)
    return Rational(Int128(placed.ticks), over: Int128(timescale))
  }
}
