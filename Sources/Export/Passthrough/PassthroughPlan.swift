// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// The copied packets, encoded frames and times of a passthrough export.
///
/// A run is a part of the composition in which one source continues without a jump. Within a run,
/// no packet is dropped or reordered: only the times change. A change of speed therefore needs no
/// key frame.
///
/// A jump in the source is a cut. If decoding cannot start at a cut, the earlier frames that the
/// decoder needs are copied and hidden. Each hidden frame is shown for one tick just before the
/// cut, and the frame before them is shown for a shorter time. At the start of the movie, hidden
/// frames get negative times, which players do not show. If too many frames would have to be
/// hidden, the frames from the cut to the next independently decodable frame are encoded instead.
struct PassthroughPlan {
  /// A frame of the output.
  struct Frame {
    /// The index of the source among the export's assets.
    let source: Int
    /// The index of the frame in presentation order.
    ///
    /// Nil for a packet that the source's edit list hides.
    let number: Int?
    /// The index of the packet in the decode order of the source.
    let packet: Int
    /// Whether decoding can start at this packet.
    let isKeyFrame: Bool
    /// The index of the group of frames that are encoded together; nil for a copied packet.
    let part: Int?
    /// The index of the frame's passage among ``PassthroughPlan/passages``.
    let passage: Int
    /// The presentation time in ticks of ``PassthroughPlan/timescale``.
    var pts: Int64
    /// The decode time in ticks.
    ///
    /// Zero until the times of all frames are planned.
    var dts: Int64 = 0
    /// The duration in ticks.
    ///
    /// The duration is the time until the next frame is shown, except for the last frame in file
    /// order, see `closeTimes(_:)`.
    var duration: Int64 = 0
  }

  /// The frames of the output in file order.
  private(set) var frames: [Frame] = []
  /// The passages of frames: one for each mapping, and one for the hidden frames of each run.
  private(set) var passages: [TimeMapBuilder.Passage] = []
  /// The number of source frames that are not written.
  private(set) var skippedCount: Int64 = 0
  /// The number of ticks per second.
  ///
  /// It is chosen so that as many times as possible are exact.
  let timescale: Int32
  /// The end of the last frame in ticks.
  private(set) var endTicks: Int64 = 0
  /// The greatest rounding error of a frame time, in seconds.
  private(set) var maxTimeError = Rational.zero
  /// The number of frames copied only because other frames need them for decoding.
  private(set) var hiddenCount: Int64 = 0
  /// The total time for which hidden frames are shown, in ticks.
  private(set) var hiddenTicks: Int64 = 0
  /// The number of encoded frames.
  private(set) var encodedCount: Int64 = 0
  /// The copied packets, as ranges of consecutive packets.
  var copies: [ExportReport.Copy] = []
  /// The cuts, with the number of frames that each cut hides or encodes.
  var cuts: [ExportReport.Cut] = []
  private var partCount = 0
  /// The latest presentation time of all frames planned so far, in ticks.
  private var latestTicks: Int64?

  /// The greatest number of hidden frames at a cut: 60, or the number of ticks in 0.25 ms if that
  /// is less.
  private static func maximumHidden(_ timescale: Int32) -> Int { min(60, Int(timescale / 4_000)) }

  init(_ track: CompositionTrack, _ assets: [Asset], boundary: CutPolicy) throws {
    let reason = BoundaryRenderer.refusal(assets)
    guard boundary == .auto, reason == nil else {
      try self.init(track, assets, boundary, renders: boundary == .render && reason == nil, reason)
      return
    }
    do {
      try self.init(track, assets, boundary, renders: true, nil)
    } catch let error as MediaError where error.code == .cutNotOnKeyFrame {
      // The policy `auto` prefers to hide frames. That fails if the frame before a cut lasts fewer
      // ticks than there are frames to hide. The frames at cuts are then encoded.
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
    let most = [.auto, .squeeze].contains(boundary) ? Self.maximumHidden(timescale) : 0
    let runs = try PlaybackRun.runs(of: track.segments, paths)
    var waiting: [Int] = []
    for (number, run) in runs.enumerated() {
      guard let source = run.source else {
        throw MediaError(
          .unsupportedSource,
          "the composition has a gap at \(run.target.displayText) s, and a copy has no "
            + "frame for it",
          recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
      }
      let shown = try run.frames(of: tables[source], path: paths[source])
      let policy = CutFinder.Policy(
        hidden: most - waiting.count,
        // Frames that are hidden before the first run get negative times and are never shown, so
        // their number need not be limited. They still cost decoding time, so encoding is preferred
        // if it is possible.
        hiddenBefore: number == 0 && most > 0 && !renders ? .max : most - waiting.count,
        renders: renders,
        reason: [.auto, .render].contains(boundary) ? reason : nil,
        isFirst: number == 0, isLast: number == runs.count - 1)
      let selection = try finders[source].select(run, shown, by: policy)
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

  /// Appends the frames of a playback run, and hides the frames that are needed only for decoding.
  ///
  /// `waiting` lists the frames of the previous run that were copied for decoding but come after
  /// the last frame that it shows. These frames are hidden at the start of this run, together with
  /// the frames that this run needs for decoding. Returns the frames of this run that must be
  /// hidden at the start of the next run.
  ///
  /// - Throws: `MediaError` if the output has no time in which to hide the frames.
  private mutating func append(
    _ run: PlaybackRun, _ source: Int, _ shown: ClosedRange<Int>,
    _ selection: CutFinder.Selection, _ finder: CutFinder, _ table: FrameTable, _ path: String,
    after waiting: [Int]
  ) throws -> [Int] {
    let placing = try run.mappings.map { (mapping) throws(MediaError) in
      try PlaybackTicks(mapping, timescale: timescale)
    }
    let hiddenPassage = passages.count
    let number = (passages.last?.run ?? -1) + 1
    passages.append(TimeMapBuilder.Passage(run: number))
    passages += run.mappings.map { TimeMapBuilder.Passage(run: number, $0) }
    var times: [Int: Int64] = [:]
    times.reserveCapacity(shown.count)
    var mappings: [Int: Int] = [:]
    mappings.reserveCapacity(shown.count)
    for showing in try run.showings(shown, of: table) {
      let tick = try placing[showing.mapping].tick(
        at: showing.time, rounding: .halfAwayFromZero)
      maxTimeError = max(maxTimeError, tick.error)
      times[showing.index] = tick.ticks
      mappings[showing.index] = showing.mapping
    }
    let first = times.values.min() ?? 0
    let latest = latestTicks
    var hidden: [(offset: Int, position: Int)] = []
    func add(_ number: Int?, _ packet: Int, isKeyFrame: Bool, part: Int?) {
      let pts = number.flatMap { times[$0] } ?? first
      latestTicks = max(latestTicks ?? pts, pts)
      frames.append(
        Frame(
          source: source, number: number, packet: packet, isKeyFrame: isKeyFrame, part: part,
          passage: number.flatMap { mappings[$0] }.map { hiddenPassage + 1 + $0 } ?? hiddenPassage,
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
    let before = waiting + hidden.filter { $0.position < start }.map(\.offset)
    try hide(before, before: first, run.target, after: latest)
    if latest != nil { hiddenTicks += Int64(before.count) }
    // The source's edit list may hide packets between shown frames. The hidden packets are copied
    // for decoding, and hidden just before the shown frame that follows them.
    var rest = hidden.filter { start < $0.position && $0.position < end }[...]
    while let next = rest.first,
      let frame = shown.first(where: { finder.position(of: $0) > next.position })
    {
      let indices = rest.prefix { $0.position < finder.position(of: frame) }.map(\.offset)
      rest.removeFirst(indices.count)
      guard let ticks = times[frame], let previous = times[frame - 1],
        indices.count <= Self.maximumHidden(timescale)
      else {
        throw MediaError(
          .unsupportedSource,
          "\(path) has \(indices.count) hidden packets before frame \(frame), too many to "
            + "hide in the copy",
          recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
      }
      let time = MediaTime(ticks, over: timescale)
      try hide(indices, before: ticks, time, after: previous)
      hiddenTicks += Int64(indices.count)
    }
    return hidden.filter { $0.position > end }.map(\.offset)
  }

  /// Hides frames just before a time: each frame is shown for one tick.
  private mutating func hide(
    _ indices: [Int], before ticks: Int64, _ time: MediaTime, after latest: Int64?
  ) throws {
    guard !indices.isEmpty else { return }
    if let latest, latest >= ticks - Int64(indices.count) {
      throw MediaError(
        .cutNotOnKeyFrame,
        "no room before the cut at \(time.displayText) s to hide "
          + "\(indices.count) frames needed for decoding",
        recovery: Recovery(
          "cut at key frames, or render it at a constant frame rate", .change(.outputFrameRate)))
    }
    for (number, offset) in indices.enumerated() {
      frames[offset].pts = ticks - Int64(indices.count - number)
    }
    hiddenCount += Int64(indices.count)
  }

  /// Hides the remaining frames of the last playback run, in the last ticks of the movie.
  private mutating func hideAtEnd(_ indices: [Int], _ duration: Rational) throws {
    guard !indices.isEmpty else { return }
    let end = try (duration * Rational(Int64(timescale))).rounded(.halfAwayFromZero)
    let shown = frames.indices.filter { !indices.contains($0) }.map { frames[$0].pts }.max()
    try hide(indices, before: Int64(clamping: end), MediaTime(duration), after: shown)
    hiddenTicks += Int64(indices.count)
  }

  /// Sets the decode times and durations of all frames.
  ///
  /// In file order, the frames get the sorted presentation times as decode times. Then all decode
  /// times are reduced by the smallest constant with which no frame is decoded after it is shown.
  /// Without reordered frames, decode and presentation times are equal.
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
    for (offset, index) in order.enumerated() {
      frames[index].duration = sorted[offset + 1] - sorted[offset]
      frames[offset].dts = sorted[offset] - delay
    }
    // Workaround for libavformat (`mov_fix_index`): if the first key frame's decode duration
    // exceeds the edit list, its demuxer drops packets after the second key frame. The packet after
    // such a key frame therefore gets an earlier decode time.
    let lastKey = frames.lastIndex(where: \.isKeyFrame) ?? 0
    for offset in frames.indices.prefix(lastKey) where frames[offset].isKeyFrame {
      let longest = max(1, endTicks - frames[offset].pts - 1)
      frames[offset + 1].dts = min(frames[offset + 1].dts, frames[offset].dts + longest)
    }
    // The muxer computes a track's duration from decode times: from the first packet's time to the
    // last packet's, plus the duration of the last packet. That duration is therefore chosen so
    // that the track ends when the frame shown last ends.
    if frames.count > 0 {
      frames[frames.count - 1].duration = endTicks - sorted[frames.count - 1]
    }
  }
}

extension PassthroughPlan {
  /// Adds the copied packets and the cuts of a playback run to the report.
  mutating func note(
    _ run: PlaybackRun, _ shown: ClosedRange<Int>, _ selection: CutFinder.Selection,
    _ finder: CutFinder, _ path: String
  ) {
    copies += finder.copies(selection.copied)
    guard !run.isReversed else { return }
    for isStart in [true, false] {
      // If the run starts at the start of the source, or ends at its end, that boundary is not a
      // cut.
      let cut = isStart ? shown.lowerBound : shown.upperBound + 1
      guard isStart ? cut > 0 : cut < finder.frameCount else { continue }
      let rendered = isStart ? selection.head.count : selection.tail.count
      let hidden = selection.copied.count {
        isStart
          ? $0.position < finder.position(of: shown.lowerBound)
          : $0.position > finder.position(of: shown.upperBound)
      }
      let free = finder.freeCuts(isStart: isStart, around: cut, first: shown.lowerBound)
      cuts.append(
        ExportReport.Cut(
          path: path, isStart: isStart, source: isStart ? run.start : run.end,
          target: isStart ? run.target : run.targetEnd,
          method: rendered > 0 ? .rendered : hidden > 0 ? .hidden : .free,
          frames: Int64(rendered > 0 ? rendered : hidden), freeBefore: free.before,
          freeAfter: free.after))
    }
  }
}
