// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

/// The source frames from which each output frame of a constant-rate export is made.
struct ConstantRatePlan: Sendable {
  /// A frame of one of the export's sources.
  struct Frame: Hashable, Sendable {
    /// The index of the source among the export's assets.
    let source: Int
    let index: Int
  }

  /// The content of one or more consecutive output frames.
  struct Item: Sendable {
    struct Part: Sendable {
      /// The source frame; nil for a gap in the composition.
      let frame: Frame?
      /// The weight of the source frame.
      ///
      /// The weights in an item add up to 1.
      let share: Float
      /// The index of the frame's passage among ``ConstantRatePlan/passages``.
      let passage: Int
    }

    let parts: [Part]
    /// The number of output frames with this content, above zero.
    let count: Int64
  }

  let slots: OutputFrameGrid
  private(set) var items: [Item]
  /// The range of output frames that `items` describes: all, or those of a shard.
  private(set) var rendered: Range<Int64>
  /// The number of output frames that one encoder encodes; nil if one encoder encodes all.
  private(set) var groupLength: Int64?
  /// The number of output frames that repeat the previous image.
  private(set) var duplicatedCount: Int64
  /// The number of source frames that no output frame shows.
  let skippedCount: Int64
  /// The plan for synthesized frames; nil if no frames are synthesized.
  let inBetweens: InBetweenPlan?
  /// The segments with fewer source frames than output frames.
  let sparse: [ExportReport.LowRateRange]
  /// The mappings and gaps of the composition in order.
  let passages: [TimeMapBuilder.Passage]
  /// The start of each passage in composition time.
  private let passageStarts: [Rational]

  /// The source frames to decode, in the order in which they are used; nil for a gap.
  var frames: [Frame?] {
    inBetweens?.entries.map(\.frame) ?? items.flatMap { $0.parts.map(\.frame) }
  }

  init(
    _ track: CompositionTrack, _ rate: FrameRate, _ sampling: FrameSampling,
    _ shutter: ShutterAngle?, _ assets: [Asset]
  ) throws {
    let tables = try assets.map { asset in
      guard let video = asset.videoTrack else { throw MediaError.hasNoFrames(asset.path) }
      return video.frames
    }
    let paths = assets.map(\.path)
    let slots = try Self.slots(track, rate, paths, tables)
    self.slots = slots
    rendered = 0..<slots.count
    let isRegular = tables.map(\.isRegular)
    var frames: [Frame?] = []
    var times: [Rational] = []
    var jittered: [Range<Int>] = []
    // The run and the passage of each frame.
    var runs: [Int] = []
    var framePassages: [Int] = []
    var passages: [TimeMapBuilder.Passage] = []
    var passageStarts: [Rational] = []
    for (number, run) in try PlaybackRun.runs(of: track.segments, paths).enumerated() {
      guard let source = run.source else {
        runs.append(number)
        framePassages.append(passages.count)
        frames.append(nil)
        times.append(run.target.seconds)
        passages.append(TimeMapBuilder.Passage(run: number))
        passageStarts.append(run.target.seconds)
        continue
      }
      let placing = try run.mappings.map {
        try SlotTimes($0, rate, sampling, uncertainty: tables[source].uncertaintyInSeconds)
      }
      let range = try run.frames(of: tables[source], path: paths[source])
      var shown: [Int: Range<Int>] = [:]
      let firstPassage = passages.count
      passages += run.mappings.map { TimeMapBuilder.Passage(run: number, $0) }
      passageStarts += run.mappings.map(\.target.start.seconds)
      for showing in try run.showings(range, of: tables[source]) {
        shown[showing.mapping] =
          (shown[showing.mapping]?.lowerBound ?? frames.count)..<frames.count + 1
        runs.append(number)
        framePassages.append(firstPassage + showing.mapping)
        frames.append(Frame(source: source, index: showing.index))
        // At the border between two mappings of source time to output time, the time of the earlier
        // frame may be rounded up while that of the later frame is exact. The times must not
        // descend, so the time of the later frame is raised to that of the earlier one if
        // necessary.
        let time = try placing[showing.mapping].time(ofSource: showing.time)
        times.append(max(time, times.last ?? time))
      }
      if !isRegular[source] {
        jittered += try shown.filter { try slots.suffice(for: $1, run.mappings[$0]) }.values
      }
    }
    let end = track.duration.seconds
    // With a shutter, a captured frame is shown if it is visible while the shutter is open.
    let open = try shutter.map { try ShutterContent(of: times, until: end, slots, $0) }
    let blended =
      try open?.blended ?? slots.frames(of: times, until: end, sampling, jittered: jittered)
    (self.passages, self.passageStarts) = (passages, passageStarts)
    items = blended.map { image in
      let total = Float(image.total)
      return Item(
        parts: image.parts.map {
          Item.Part(
            frame: frames[$0.frame], share: Float($0.share) / total,
            passage: framePassages[$0.frame])
        },
        count: image.count)
    }
    duplicatedCount = blended.reduce(0) { $0 + $1.count - 1 }
    var isShown = [Bool](repeating: false, count: frames.count)
    for image in blended { for part in image.parts { isShown[part.frame] = true } }
    skippedCount = zip(frames, isShown).reduce(0) { $0 + ($1.0 != nil && !$1.1 ? 1 : 0) }
    sparse = sampling.synthesizesFrames ? [] : try Self.sparse(track, slots, times)
    inBetweens =
      sampling.synthesizesFrames
      ? try InBetweenPlan(
        track.segments, slots, paths, tables, exposures: open?.exposures,
        of: Array(zip(frames, runs))) : nil
    // Synthesized output frames differ even if they have the same source frames, so none repeats
    // another.
    if inBetweens != nil { duplicatedCount = 0 }
  }

  /// Returns the index of the passage of an output frame.
  ///
  /// - Parameters:
  ///   - slot: The number of the output frame.
  ///   - known: The passage of the frame that it shows, which may have begun in the passage before.
  /// - Returns: The index among ``passages``.
  func passage(ofSlot slot: Int64, showing known: Int? = nil) -> Int {
    let time = slots.seconds(of: slot)
    let found = max(0, passageStarts.partitioningIndex { $0 > time } - 1)
    guard let known, passages.indices.contains(known) else { return found }
    return passages.indices.contains(found) && passages[found].run == passages[known].run
      ? found : known
  }

  /// The groups into which the output frames are divided for shards.
  var groups: FrameGroups { FrameGroups(slots) }

  /// Returns the part of the plan for a range of output frames.
  ///
  /// The range consists of whole groups, and each group is encoded by a separate encoder.
  func limited(to frames: Range<Int64>) -> ConstantRatePlan {
    var part = self
    part.items = []
    var slot: Int64 = 0
    for item in items {
      let kept = (slot..<slot + item.count).clamped(to: frames)
      slot += item.count
      if !kept.isEmpty { part.items.append(Item(parts: item.parts, count: Int64(kept.count))) }
    }
    part.duplicatedCount = Int64(frames.count - part.items.count)
    part.rendered = frames
    part.groupLength = groups.length
    return part
  }

  /// Returns the segments with at least three fewer source frames than output frames.
  ///
  /// Rounding at the two ends of a segment can make a difference of up to two frames, so
  /// differences of one or two frames are ignored.
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
    // The duration of the track is exact only to one tick of the source's time base, because the
    // end of the source is rounded to a tick. In the composition, this tick lasts longer if the
    // last segment plays in slow motion.
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
  /// Returns true if a mapping of source time to composition time has at least 99 output frames for
  /// 100 source frames, and false otherwise.
  ///
  /// The result is false for ramps, because the ratio varies along a ramp.
  fileprivate func suffice(
    for frames: Range<Int>, _ mapping: PlaybackMapping
  ) throws -> Bool {
    guard mapping.motion == .constant else { return false }
    let slotCount = mapping.target.duration * rate.framesPerSecond
    return try (slotCount * 100).checked("a number of slots") >= Rational(Int64(frames.count) * 99)
  }
}

/// Converts source times to output times with the precision that a sampling method needs.
private struct SlotTimes {
  private let line: TimeMapping?
  private let ticks: PlaybackTicks
  private let timescale: Int32
  private let rounding: TimeRounding
  /// The range of the mapping in source seconds.
  private let range: ClosedRange<Rational>
  /// The time by which a source frame may be shown early, in source seconds.
  ///
  /// Negative in reverse playback.
  ///
  /// The time of a frame is known only to the precision of the source's time base. A frame that
  /// seems late by less than that precision counts as on time.
  private let slack: Rational

  init(
    _ mapping: PlaybackMapping, _ rate: FrameRate, _ sampling: FrameSampling,
    uncertainty: Rational
  ) throws {
    range = mapping.sourceStart...mapping.sourceEnd
    slack = sampling != .hold ? 0 : mapping.isReversed ? -uncertainty : uncertainty
    // The sampling `hold` shows a source frame from the first output time at or after the frame's
    // time. Every output time is a whole number of ticks, so rounding the frame's time up to a tick
    // changes nothing. The other sampling methods use exact times at constant speed. On ramps, the
    // error of their times is at most half a nanosecond.
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
    let tick = try ticks.tick(at: time, rounding: rounding)
    return Rational(Int128(tick.ticks), over: Int128(timescale))
  }
}
