// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// Which packets a passthrough export copies, which frames it encodes at cuts, and the time each
/// of them gets.
///
/// Each run in which a source goes on without a jump is one monotone map, under which nothing is
/// dropped or reordered: where only the speed changes, no key frame is needed. Where the source
/// jumps there is a cut. If decoding cannot start there, the frames that it needs before are
/// copied along and hidden: each is shown for one tick, just before the cut, at the expense of
/// the frame that is on; before the first cut they lie at negative times, which no player shows.
/// Where too many would have to be hidden, those frames of the run are encoded that are shown
/// before the first of its packets that can be decoded by itself.
struct PassthroughPlan {
  /// A frame to write.
  struct Frame {
    /// The place of its source among those of the export.
    let source: Int
    /// Its number in the source, in order of presentation; nil for a packet that the source hides.
    let number: Int?
    /// The index of its packet in the source's order of decoding.
    let packet: Int
    /// Whether decoding may start here.
    let isKeyFrame: Bool
    /// Which part of frames that are encoded one after the other it belongs to; nil where its
    /// packet is copied.
    let part: Int?
    /// When it is shown, in ticks of ``PassthroughPlan/timescale``.
    var pts: Int64
    /// When it is decoded; filled in for all frames together.
    var dts: Int64 = 0
    /// How long it is shown; of the last one that is decoded, how long the last one is shown.
    var duration: Int64 = 0
  }

  /// Frames in the order in which they are written.
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
  /// Frames that are encoded.
  private(set) var encodedCount: Int64 = 0
  /// Packets that are copied, as runs of neighbours.
  private(set) var copies: [ExportReport.Copy] = []
  /// What each cut takes.
  private(set) var cuts: [ExportReport.Cut] = []
  private var partCount = 0
  /// The latest time of a frame that is shown so far.
  private var latestTicks: Int64?

  /// The frames that follow a cut unseen: no more than this, nor than fit a quarter of a
  /// millisecond.
  private static func mostHidden(_ timescale: Int32) -> Int { min(60, Int(timescale / 4_000)) }

  init(_ track: CompositionTrack, _ assets: [Asset], boundary: CutPolicy) throws {
    let reason = BoundaryRenderer.refusal(assets.first?.videoTrack)
    guard boundary == .auto, reason == nil else {
      try self.init(track, assets, boundary, renders: boundary == .render && reason == nil, reason)
      return
    }
    do {
      try self.init(track, assets, boundary, renders: true, nil)
    } catch let error as MediaError where error.code == .cutNotOnKeyFrame {
      // Between frames that are on for a few ticks there is no room to hide any.
      try self.init(track, assets, .render, renders: true, nil)
    }
  }

  private init(
    _ track: CompositionTrack, _ assets: [Asset], _ boundary: CutPolicy, renders: Bool,
    _ reason: String?
  ) throws {
    let tables = try assets.map { try Self.table(of: $0) }
    let paths = assets.map(\.path)
    timescale = try ExportTimescale.choose(track.segments, paths, tables)
    let finders = zip(tables, paths).map { CutFinder($0, path: $1) }
    let most = [.auto, .squeeze].contains(boundary) ? Self.mostHidden(timescale) : 0
    let runs = try PlaybackRun.runs(of: track.segments, paths)
    var waiting: [Int] = []
    for (number, run) in runs.enumerated() {
      guard let source = run.source else {
        throw MediaError(
          .unsupportedSource,
          "the composition plays nothing at \(run.target.displayText) s, and a copy has no "
            + "picture for that",
          recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
      }
      let shown = try run.frames(of: tables[source], path: paths[source])
      let means = CutFinder.Means(
        hidden: most - waiting.count,
        // Nobody sees what lies at negative times: it only has to be decoded.
        hiddenBefore: number == 0 && most > 0 && !renders ? .max : most - waiting.count,
        renders: renders,
        reason: [.auto, .render].contains(boundary) ? reason : nil,
        isFirst: number == 0, isLast: number == runs.count - 1)
      let selection = try finders[source].select(run, shown, by: means)
      waiting = try append(
        run, source, shown, selection, finders[source], tables[source], paths[source],
        after: waiting)
      note(run, shown, selection, finders[source], paths[source])
    }
    try hideAtEnd(waiting, track.duration.seconds)
    for (source, table) in tables.enumerated() {
      let used = Set(frames.lazy.filter { $0.source == source }.compactMap(\.number))
      skippedCount += Int64(table.entries.count - used.count)
    }
    try closeTimes(track.duration.seconds)
  }

  private static func table(of asset: Asset) throws(MediaError) -> FrameTable {
    guard let video = asset.videoTrack else { throw .hasNoFrames(asset.path) }
    return video.frames
  }

  /// Appends the frames of a run, and hides those before it that are to be hidden: its own, and
  /// those at the places that are `waiting` since the run before.
  ///
  /// The places of those to be hidden after it are returned; an error says that there is no room.
  private mutating func append(
    _ run: PlaybackRun, _ source: Int, _ shown: ClosedRange<Int>,
    _ selection: CutFinder.Selection, _ finder: CutFinder, _ table: FrameTable, _ path: String,
    after waiting: [Int]
  ) throws -> [Int] {
    let placing = try run.mappings.map { (mapping) throws(MediaError) in
      try PlaybackTicks(mapping, timescale: timescale)
    }
    var times: [Int: Int64] = [:]
    times.reserveCapacity(shown.count)
    for showing in try run.showings(shown, of: table) {
      let placed = try placing[showing.mapping].tick(
        at: showing.time, rounding: .halfAwayFromZero)
      maxTimeError = max(maxTimeError, placed.error)
      times[showing.index] = placed.ticks
    }
    let first = times.values.min() ?? 0
    let latest = latestTicks
    var hidden: [(place: Int, position: Int)] = []
    func add(_ number: Int?, _ packet: Int, isKeyFrame: Bool, part: Int?) {
      let pts = number.flatMap { times[$0] } ?? first
      latestTicks = max(latestTicks ?? pts, pts)
      frames.append(
        Frame(
          source: source, number: number, packet: packet, isKeyFrame: isKeyFrame, part: part,
          pts: pts))
    }
    func encode(_ numbers: Range<Int>) {
      guard !numbers.isEmpty else { return }
      for number in numbers {
        add(
          number, table.entries[number].decodeIndex, isKeyFrame: number == numbers.lowerBound,
          part: partCount)
      }
      partCount += 1
      encodedCount += Int64(numbers.count)
    }
    encode(selection.head)
    for packet in selection.copied {
      if packet.frame.flatMap({ times[$0] }) == nil {
        hidden.append((frames.count, packet.position))
      }
      add(packet.frame, packet.decodeIndex, isKeyFrame: packet.isKeyFrame, part: nil)
    }
    encode(selection.tail)
    hidden.sort { $0.position < $1.position }
    let start = finder.position(of: shown.lowerBound)
    let end = finder.position(of: shown.upperBound)
    let before = waiting + hidden.filter { $0.position < start }.map(\.place)
    try hide(before, before: first, run.target, after: latest)
    if latest != nil { hiddenTicks += Int64(before.count) }
    // What the source itself hides between frames that it shows.
    var rest = hidden.filter { start < $0.position && $0.position < end }[...]
    while let next = rest.first,
      let frame = shown.first(where: { finder.position(of: $0) > next.position })
    {
      let places = rest.prefix { $0.position < finder.position(of: frame) }.map(\.place)
      rest.removeFirst(places.count)
      guard let ticks = times[frame], let previous = times[frame - 1],
        places.count <= Self.mostHidden(timescale)
      else {
        throw MediaError(
          .unsupportedSource,
          "\(path) hides \(places.count) packets before its frame \(frame), too many to "
            + "copy unseen",
          recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
      }
      let time = MediaTime(ticks, over: timescale)
      try hide(places, before: ticks, time, after: previous)
      hiddenTicks += Int64(places.count)
    }
    return hidden.filter { $0.position > end }.map(\.place)
  }

  /// Lets frames be on for a tick each, one after the other, before a time.
  private mutating func hide(
    _ places: [Int], before ticks: Int64, _ time: MediaTime, after latest: Int64?
  ) throws {
    guard !places.isEmpty else { return }
    if let latest, latest >= ticks - Int64(places.count) {
      throw MediaError(
        .cutNotOnKeyFrame,
        "before the cut at \(time.displayText) s there is no room to hide "
          + "\(places.count) frames that others need",
        recovery: Recovery(
          "cut at key frames, or render it at a constant frame rate", .change(.outputFrameRate)))
    }
    for (number, place) in places.enumerated() {
      frames[place].pts = ticks - Int64(places.count - number)
    }
    hiddenCount += Int64(places.count)
  }

  /// Hides what the last run needs and nothing follows: in the last ticks.
  private mutating func hideAtEnd(_ places: [Int], _ duration: Rational) throws {
    guard !places.isEmpty else { return }
    let end = try (duration * Rational(Int64(timescale))).rounded(.halfAwayFromZero)
    let shown = frames.indices.filter { !places.contains($0) }.map { frames[$0].pts }.max()
    try hide(places, before: Int64(clamping: end), MediaTime(duration), after: shown)
    hiddenTicks += Int64(places.count)
  }

  /// Keeps what the report says of a run.
  private mutating func note(
    _ run: PlaybackRun, _ shown: ClosedRange<Int>, _ selection: CutFinder.Selection,
    _ finder: CutFinder, _ path: String
  ) {
    copies += finder.copies(selection.copied)
    guard !run.isReversed else { return }
    for isStart in [true, false] {
      // The file's own ends are no cuts.
      let place = isStart ? shown.lowerBound : shown.upperBound + 1
      guard isStart ? place > 0 : place < finder.frameCount else { continue }
      let rendered = isStart ? selection.head.count : selection.tail.count
      let hidden = selection.copied.count {
        isStart
          ? $0.position < finder.position(of: shown.lowerBound)
          : $0.position > finder.position(of: shown.upperBound)
      }
      let free = finder.freeCuts(isStart: isStart, around: place, first: shown.lowerBound)
      cuts.append(
        ExportReport.Cut(
          path: path, isStart: isStart, source: isStart ? run.start : run.end,
          target: isStart ? run.target : run.targetEnd,
          method: rendered > 0 ? .rendered : hidden > 0 ? .hidden : .free,
          frames: Int64(rendered > 0 ? rendered : hidden), freeBefore: free.before,
          freeAfter: free.after))
    }
  }

  /// Gives every frame its decoding time and its duration.
  ///
  /// Decoding times are the presentation times in order, moved back just so far that no frame is
  /// decoded after it is shown; where no frame is reordered, they are the same.
  private mutating func closeTimes(_ duration: Rational) throws {
    let exact = duration * Rational(Int64(timescale))
    guard let end = try Int64(exactly: exact.rounded(.halfAwayFromZero)) else {
      throw MediaError(
        .overflow, "the time \(duration.exactDisplayText) in ticks of 1/\(timescale) s")
    }
    endTicks = end
    let error = (Rational(end) - exact) / Rational(Int64(timescale))
    maxTimeError = max(maxTimeError, error.magnitude)
    let order = frames.indices.sorted { frames[$0].pts < frames[$1].pts }
    let sorted = order.map { frames[$0].pts } + [endTicks]
    for (time, next) in zip(sorted, sorted.dropFirst()) where time >= next {
      throw MediaError(
        .unsupportedSource,
        "two frames would share the time \(Rational(Int128(time), over: Int128(timescale)).displayText)"
          + " s: the speed is too high to copy",
        recovery: Recovery(
          "choose a lower speed, or render it at a constant frame rate", .change(.outputFrameRate)))
    }
    let delay = zip(sorted, frames).map { $0 - $1.pts }.max() ?? 0
    for (place, index) in order.enumerated() {
      frames[index].duration = sorted[place + 1] - sorted[place]
      frames[place].dts = sorted[place] - delay
    }
    // libavformat leaves out what follows the second key frame that would last beyond the edit list
    // if it were shown as long as decoding takes to the next (`mov_fix_index`).
    let lastKey = frames.lastIndex(where: \.isKeyFrame) ?? 0
    for place in frames.indices.prefix(lastKey) where frames[place].isKeyFrame {
      let longest = max(1, endTicks - frames[place].pts - 1)
      frames[place + 1].dts = min(frames[place + 1].dts, frames[place].dts + longest)
    }
    // A track's length is the sum of the steps between decoding times; the last of them must
    // bring it to the end of the last frame that is shown.
    if frames.count > 0 {
      frames[frames.count - 1].duration = endTicks - sorted[frames.count - 1]
    }
  }
}
