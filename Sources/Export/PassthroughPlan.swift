// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import MediaTiming

/// Which packets a passthrough export copies, and the time each of them gets.
///
/// Each run in which a source goes on without a jump is one monotone map, under which nothing is
/// dropped or reordered: where only the speed changes, no key frame is needed. Where the source
/// jumps there is a cut. If decoding cannot start there, the frames that it needs before are
/// copied along and hidden: each is shown for one tick, just before the cut, at the expense of
/// the frame that is on; before the first cut they lie at negative times, which no player shows.
struct PassthroughPlan {
  /// A packet to copy.
  struct Frame {
    /// The place of its source among those of the export.
    let source: Int
    /// Its place in the source's order of decoding.
    let decodeIndex: Int
    /// When it is shown, in ticks of ``PassthroughPlan/timescale``.
    var pts: Int64
    /// When it is decoded; filled in for all frames together.
    var dts: Int64 = 0
    /// How long it is shown; of the last one that is decoded, how long the last one is shown.
    var duration: Int64 = 0
  }

  /// Packets in the order in which they are written.
  private(set) var frames: [Frame] = []
  /// Frames of the sources that are not copied.
  private(set) var skippedCount: Int64 = 0
  /// Ticks per second in which as many times as can be are whole.
  let timescale: Int32
  /// The end of the last frame, in ticks.
  private(set) var endTicks: Int64 = 0
  /// The farthest that a time was rounded, in seconds.
  private(set) var maxTimeError = Rational.zero
  /// Frames that are copied only because others need them.
  private(set) var hiddenCount: Int64 = 0
  /// For how long such frames are on, one after the other, in ticks.
  private(set) var hiddenTicks: Int64 = 0

  /// The frames that follow a cut unseen: no more than this, nor than fit a quarter of a
  /// millisecond.
  private static let mostHidden = 60

  init(_ track: CompositionTrack, _ assets: [Asset], boundary: ExportBoundary) throws {
    let tables = try assets.map { try Self.table(of: $0) }
    let paths = assets.map(\.path)
    timescale = try ExportTimescale.choose(track.segments, paths, tables)
    let cuts = zip(tables, paths).map { CutFinder($0, path: $1) }
    let most = boundary == .keyframe ? 0 : min(Self.mostHidden, Int(timescale / 4_000))
    let runs = try PlaybackRun.runs(of: track.segments, paths)
    var hidden: [Int] = []
    for (number, run) in runs.enumerated() {
      guard let source = run.source else {
        throw ExportError(
          .unsupportedSource,
          "the composition plays nothing at \(run.target.secondsText) s, and a copy has no "
            + "picture for that",
          hint: "export it at a constant rate with --fps")
      }
      let shown = try run.frames(of: tables[source], path: paths[source])
      let selection = try cuts[source].select(
        run, shown, hidingAtMost: most - hidden.count, isLast: number == runs.count - 1)
      hidden = try append(run, source, shown, selection, tables[source], after: hidden)
    }
    for (source, table) in tables.enumerated() {
      let used = Set(frames.lazy.filter { $0.source == source }.map(\.decodeIndex))
      skippedCount += Int64(table.entries.count - used.count)
    }
    try closeTimes(track.duration.seconds)
  }

  private static func table(of asset: Asset) throws(ExportError) -> FrameTable {
    guard let video = asset.videoTrack else { throw .hasNoPictures(asset.path) }
    return video.frames
  }

  /// Appends the packets of a run, and hides those before it that are to be hidden: its own, and
  /// those at the places that are `waiting` since the run before.
  ///
  /// The places of those to be hidden after it are returned; an error says that there is no room.
  private mutating func append(
    _ run: PlaybackRun, _ source: Int, _ shown: ClosedRange<Int>,
    _ selection: CutFinder.Selection, _ table: FrameTable, after waiting: [Int]
  ) throws -> [Int] {
    let placing = try run.mappings.map { (mapping) throws(TimingError) in
      try PlaybackTicks(mapping, timescale: timescale)
    }
    var times: [Int: Int64] = [:]
    times.reserveCapacity(shown.count)
    for showing in try run.showings(shown, of: table) {
      let placed = try placing[showing.mapping].placed(
        ofSource: showing.time, rounding: .halfAwayFromZero)
      maxTimeError = max(maxTimeError, placed.error)
      times[table.entries[showing.index].decodeIndex] = placed.ticks
    }
    let first = times.values.min() ?? 0
    let latest = frames.lazy.map(\.pts).max()
    let place = frames.count
    frames += selection.decodeIndices.map {
      Frame(source: source, decodeIndex: $0, pts: times[$0] ?? 0)
    }
    func places(_ decodeIndices: [Int]) -> [Int] {
      guard let lowest = selection.decodeIndices.first else { return [] }
      return decodeIndices.map { place + $0 - lowest }
    }
    let hidden = waiting + places(selection.before)
    if !hidden.isEmpty, let latest, latest >= first - Int64(hidden.count) {
      throw ExportError(
        .cutNotOnKeyFrame,
        "before the cut at \(run.target.secondsText) s there is no room to hide "
          + "\(hidden.count) frames that those after it need",
        hint: "cut at key frames, or render it with --fps")
    }
    for (number, place) in hidden.enumerated() {
      frames[place].pts = first - Int64(hidden.count - number)
    }
    hiddenCount += Int64(hidden.count)
    if latest != nil { hiddenTicks += Int64(hidden.count) }
    return places(selection.after)
  }

  /// Gives every frame its decoding time and its duration.
  ///
  /// Decoding times are the presentation times in order, moved back just so far that no frame is
  /// decoded after it is shown; where no frame is reordered, they are the same.
  private mutating func closeTimes(_ duration: Rational) throws {
    let exact = try duration.multiplied(by: Rational(Int64(timescale)))
    guard let end = Int64(exactly: exact.rounded(.halfAwayFromZero)) else {
      throw TimingError(.overflow, "the time \(duration) s in ticks of 1/\(timescale) s")
    }
    endTicks = end
    let error = try Rational(end).subtracting(exact).divided(by: Rational(Int64(timescale)))
    maxTimeError = max(maxTimeError, error < .zero ? try error.negated() : error)
    let order = frames.indices.sorted { frames[$0].pts < frames[$1].pts }
    let sorted = order.map { frames[$0].pts } + [endTicks]
    for (time, next) in zip(sorted, sorted.dropFirst()) where time >= next {
      throw ExportError(
        .unsupportedSource,
        "two frames would share the time \(time)/\(timescale) s: the speed is too high to copy",
        hint: "choose a lower speed, or render it with --fps")
    }
    let delay = zip(sorted, frames).map { $0 - $1.pts }.max() ?? 0
    for (place, index) in order.enumerated() {
      frames[index].duration = sorted[place + 1] - sorted[place]
      frames[place].dts = sorted[place] - delay
    }
    // A track's length is the sum of the steps between decoding times; the last of them must
    // bring it to the end of the last frame that is shown.
    if frames.count > 0 {
      frames[frames.count - 1].duration = endTicks - sorted[frames.count - 1]
    }
  }
}
