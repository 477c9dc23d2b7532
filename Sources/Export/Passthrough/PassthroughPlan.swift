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
/// frames get negative times, and at its end, times after the end of the edit list. Players that
/// apply edit lists do not show either. If possible, the frames from the cut to the next start of
/// decoding are encoded instead, because some players do not apply edit lists.
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
    /// Whether the decoder must start anew at this copied packet of HEVC, in the middle of the output.
    let startsAnew: Bool
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
  /// Whether packets are hidden after the end of the last shown frame.
  var hidesEnd: Bool { frames.contains { $0.pts >= endTicks } }
  /// The greatest rounding error of a frame time, in seconds.
  private(set) var maxTimeError = Rational.zero
  /// The number of frames copied only because other frames need them for decoding.
  private(set) var hiddenCount: Int64 = 0
  /// The total time for which hidden frames are shown, in ticks.
  private(set) var hiddenTicks: Int64 = 0
  /// The number of encoded frames.
  private(set) var encodedCount: Int64 = 0
  /// The number of copied packets whose header says that decoding starts anew, other than in the source.
  private(set) var changedCount: Int64 = 0
  /// The copied packets, as ranges of consecutive packets.
  private(set) var copies: [ExportReport.Copy] = []
  /// The cuts, with the number of frames that each cut hides or encodes.
  private(set) var cuts: [ExportReport.Cut] = []
  /// The reason why frames at cuts are hidden although they would rather be encoded; nil if none are.
  private(set) var hidingReason: String?
  private var partCount = 0
  /// The latest presentation time of all frames planned so far, in ticks.
  private var latestTicks: Int64?

  /// The greatest number of hidden frames at a cut: 60, or the number of ticks in 0.25 ms if that
  /// is less.
  private static func maximumHidden(_ timescale: Int32) -> Int { min(60, Int(timescale / 4_000)) }

  /// The greatest number of frames that the policy `auto` encodes at a start without a later start of
  /// decoding in its range, such as in a movie with intra refresh.
  private static let longestHead = 300

  /// Plans the frames; `known` says why none can be encoded, if that is known.
  init(
    _ track: CompositionTrack, _ assets: [Asset], boundary: CutPolicy, hidingBecause known: String?
  ) throws {
    guard [.auto, .render].contains(boundary) else {
      try self.init(track, assets, boundary, renders: false, nil)
      return
    }
    var reason = known ?? BoundaryRenderer.refusal(assets)
    if reason == nil {
      self = try Self(encoding: track, assets, boundary)
      guard encodedCount > 0, let video = assets.first?.videoTrack else { return }
      reason = BoundaryRenderer.openingFailure(video)
      guard reason != nil else { return }
    }
    try self.init(track, assets, boundary, renders: false, reason)
    if cuts.contains(where: { $0.method == .hidden }) { hidingReason = reason }
  }

  /// Plans to encode frames at cuts, under the policy `auto` or `render`.
  private init(encoding track: CompositionTrack, _ assets: [Asset], _ boundary: CutPolicy) throws {
    do {
      try self.init(track, assets, boundary, renders: true, nil)
    } catch let error as MediaError where error.code == .cutNotOnKeyFrame && boundary == .auto {
      // The policy `auto` hides frames rather than encode a long range. That fails if the frame
      // before a cut lasts fewer ticks than there are frames to hide.
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
    let finders = zip(tables, assets).map { CutFinder($0, $1) }
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
        hidden: most - waiting.count, hidesAny: most > 0,
        // Frames that are hidden before the first run get negative times and are never shown, so
        // their number need not be limited.
        hiddenBefore: number == 0 && most > 0 ? .max : most - waiting.count,
        longestHead: !renders ? 0 : most > 0 ? Self.longestHead : .max,
        reason: [.auto, .render].contains(boundary) ? reason : nil,
        isFirst: number == 0, isLast: number == runs.count - 1)
      let selection = try finders[source].select(run, shown, by: policy)
      waiting = try append(run, source, shown, selection, finders[source], after: waiting)
      note(run, shown, selection, finders[source])
    }
    try hideAtEnd(waiting, track.duration.seconds)
    for (source, table) in tables.enumerated() {
      let used = Set(frames.lazy.filter { $0.source == source }.compactMap(\.number))
      skippedCount += Int64(table.entries.count - used.count)
    }
    try closeTimes(track.duration.seconds)
    let cursors = assets.map(PacketCursor.init)
    for frame in frames where frame.startsAnew {
      let packet = try cursors[frame.source].packet(at: frame.packet)
      if try packet?.startingAnew(assets[frame.source].videoTrack) != nil { changedCount += 1 }
    }
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
    _ selection: CutFinder.Selection, _ finder: CutFinder, after waiting: [Int]
  ) throws -> [Int] {
    let (table, path) = (finder.table, finder.path)
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
    func add(
      _ number: Int?, _ packet: Int, isKeyFrame: Bool, part: Int?, startsAnew: Bool = false
    ) {
      let pts = number.flatMap { times[$0] } ?? first
      latestTicks = max(latestTicks ?? pts, pts)
      frames.append(
        Frame(
          source: source, number: number, packet: packet, isKeyFrame: isKeyFrame, part: part,
          startsAnew: startsAnew,
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
    let isJoined = finder.hasRefresh && !frames.isEmpty
    for (offset, packet) in selection.copied.enumerated() {
      if packet.frame.flatMap({ times[$0] }) == nil {
        hidden.append((frames.count, packet.position))
      }
      add(
        packet.frame, packet.decodeIndex, isKeyFrame: packet.isKeyFrame, part: nil,
        startsAnew: offset == 0 && isJoined)
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

  /// Hides the remaining frames of the last playback run, after the end of the movie.
  ///
  /// The last of them would stay on screen if they were inside the movie.
  private mutating func hideAtEnd(_ indices: [Int], _ duration: Rational) throws {
    let end = try (duration * Rational(Int64(timescale))).rounded(.halfAwayFromZero)
    for (number, offset) in indices.enumerated() {
      frames[offset].pts = Int64(clamping: end) &+ Int64(number)
    }
    hiddenCount += Int64(indices.count)
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
    // Hidden frames after the end are decoded there.
    let fileEnd = max(endTicks, (order.last.map { frames[$0].pts } ?? 0) + 1)
    let sorted = order.map { frames[$0].pts } + [fileEnd]
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
    // that the track ends when its last frame ends.
    if frames.count > 0 {
      frames[frames.count - 1].duration = fileEnd - sorted[frames.count - 1]
    }
  }

  /// Adds the copied packets and the cuts of a playback run to the report.
  private mutating func note(
    _ run: PlaybackRun, _ shown: ClosedRange<Int>, _ selection: CutFinder.Selection,
    _ finder: CutFinder
  ) {
    copies += finder.copies(selection.copied)
    guard !run.isReversed else { return }
    for isStart in [true, false] {
      // If the run starts at the start of the source, or ends at its end, that boundary is not a
      // cut.
      let cut = isStart ? shown.lowerBound : shown.upperBound + 1
      guard isStart ? cut > 0 : cut < finder.table.entries.count else { continue }
      let rendered = isStart ? selection.head.count : selection.tail.count
      let hidden = selection.copied.count {
        isStart
          ? $0.position < finder.position(of: shown.lowerBound)
          : $0.position > finder.position(of: shown.upperBound)
      }
      let free = finder.freeCuts(isStart: isStart, around: cut, first: shown.lowerBound)
      cuts.append(
        ExportReport.Cut(
          path: finder.path, isStart: isStart, source: isStart ? run.start : run.end,
          target: isStart ? run.target : run.targetEnd,
          method: rendered > 0 ? .rendered : hidden > 0 ? .hidden : .free,
          frames: Int64(rendered > 0 ? rendered : hidden), freeBefore: free.before,
          freeAfter: free.after))
    }
  }
}

/// Finds the positions at which a track can be cut without encoding or hiding frames.
///
/// Such a cut is called free. Playback of a source can start with a free cut at a frame that can be
/// decoded without earlier frames: an IDR frame in H.264, and any random access frame in HEVC, where
/// the frames that are decoded after it but shown before it are left out. Playback can end with a free
/// cut if no frame before the cut needs a frame after it. This is the case if all frames before the
/// cut are stored before all frames after it. Packets that an edit list hides are included, because
/// frames may need them for decoding.
private struct CutFinder {
  /// A packet of the track.
  struct Packet {
    /// The index in decode order.
    let decodeIndex: Int
    /// The index in presentation order, in which hidden packets count, too.
    let position: Int
    /// The index of the frame that the packet contains; nil for a hidden packet.
    let frame: Int?
    /// Whether decoding can start at this packet.
    let isKeyFrame: Bool
    /// Whether neither this packet nor a later one in decode order needs a packet before this one.
    let isIndependent: Bool
    /// Whether the edit list of the source jumps to this packet.
    var isJump = false
  }

  let table: FrameTable
  let path: String
  /// Whether each key frame is a random access frame of HEVC.
  ///
  /// No frame that is shown after it needs one that is shown before it (Rec. ITU-T H.265, 8.3.2).
  let hasRefresh: Bool
  /// All packets in presentation order.
  private let packets: [Packet]
  /// For each packet, in decode order, its index in presentation order.
  private let positions: [Int]
  /// For each position in presentation order, the highest decode index at or before it.
  ///
  /// `firstDecoded` is the lowest decode index at or after the position.
  private let lastDecoded: [Int]
  private let firstDecoded: [Int]

  init(_ table: FrameTable, _ asset: Asset) {
    self.table = table
    path = asset.path
    hasRefresh = asset.videoTrack?.codec == .hevc
    let packets = Self.packets(of: table)
    self.packets = packets
    var last = -1
    lastDecoded = packets.map {
      last = max(last, $0.decodeIndex)
      return last
    }
    var first = Int.max
    var reversed: [Int] = []
    reversed.reserveCapacity(packets.count)
    for packet in packets.reversed() {
      first = min(first, packet.decodeIndex)
      reversed.append(first)
    }
    firstDecoded = reversed.reversed()
    var positions = [Int](repeating: 0, count: packets.count)
    for packet in packets { positions[packet.decodeIndex] = packet.position }
    self.positions = positions
  }

  /// Returns all packets in presentation order, including hidden ones.
  private static func packets(of table: FrameTable) -> [Packet] {
    var packets: [Packet] = []
    packets.reserveCapacity(table.entries.count + table.hiddenPackets.count)
    var hidden = table.hiddenPackets[...]
    func addHidden(before frame: Int) {
      while let next = hidden.first, next.nextFrame <= frame {
        packets.append(
          Packet(
            decodeIndex: next.decodeIndex, position: packets.count, frame: nil,
            isKeyFrame: next.isKeyFrame, isIndependent: next.isIndependent, isJump: next.isJump))
        hidden.removeFirst()
      }
    }
    for (number, entry) in table.entries.enumerated() {
      addHidden(before: number)
      packets.append(
        Packet(
          decodeIndex: entry.decodeIndex, position: packets.count, frame: number,
          isKeyFrame: entry.isKeyFrame, isIndependent: entry.isIndependent))
    }
    addHidden(before: table.entries.count)
    return packets
  }

  /// Returns the index in presentation order of a frame's packet.
  func position(of frame: Int) -> Int { positions[table.entries[frame].decodeIndex] }

  /// The allowed methods at a cut that needs extra frames for decoding.
  struct Policy {
    /// The greatest number of frames that may be copied for decoding and hidden at the cuts of a
    /// playback run.
    var hidden: Int
    /// Whether frames may be hidden at all.
    var hidesAny: Bool
    /// The greatest number of frames that may be copied for decoding and hidden before the run.
    var hiddenBefore: Int
    /// The greatest number of frames that are encoded up to the end of a range rather than hidden; 0 if no
    /// frame may be encoded.
    var longestHead: Int
    /// Whether frames may be encoded.
    var renders: Bool { longestHead > 0 }
    /// The reason why frames cannot be encoded although this was requested, otherwise nil.
    var reason: String?
    /// Whether this is the first run of the movie.
    ///
    /// Frames hidden before the first run get negative times and are never shown.
    var isFirst: Bool
    /// Whether this is the last run of the movie.
    ///
    /// Frames hidden after the last run have times after the end of the movie.
    var isLast: Bool
  }

  /// The frames of a playback run that are encoded, and the packets that are copied.
  struct Selection {
    /// The frames to encode before the copied packets.
    var head: Range<Int>
    /// The packets to copy, in file order.
    ///
    /// Packets outside the run and packets that the source's edit list hides are included if a
    /// shown frame may need them for decoding.
    var copied: [Packet] = []
    /// The frames to encode after the copied packets.
    var tail: Range<Int>
  }

  /// Selects the frames to encode and the packets to copy for a playback run.
  ///
  /// - Parameters:
  ///   - run: The playback run.
  ///   - frames: The frames that the run shows.
  ///   - policy: The methods allowed at the start and the end of the run.
  /// - Returns: The frames to encode and the packets to copy.
  /// - Throws: `MediaError` with `.cutNotOnKeyFrame` if a cut is not possible (the message names
  ///   the nearest cuts that need no extra frames), or with `.unsupportedSource` if the run is
  ///   reversed and its frames need other frames.
  func select(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, by policy: Policy
  ) throws(MediaError) -> Selection {
    let (first, end) = (frames.lowerBound, frames.upperBound + 1)
    guard !run.isReversed else {
      try checkReverse(run, frames)
      let copied = frames.reversed().map { packets[position(of: $0)] }
      return Selection(head: first..<first, copied: copied, tail: end..<end)
    }
    let low = position(of: first)
    let high = position(of: frames.upperBound) + 1
    var start = first
    var key = low
    // The source's edit list may hide packets before the first and after the last frame. If the run
    // begins or ends there, this is not a cut: the packets are copied and stay hidden.
    let isOwnStart = policy.isFirst && first == 0
    let isOwnEnd = policy.isLast && end == table.entries.count
    if !isFreeStart(at: low) {
      let found = (0..<low).last(where: isFreeStart(at:)).flatMap { found in
        isOwnStart
          || copies(found, low..<high).count(where: { $0.position < low }) <= policy.hiddenBefore
          ? found : nil
      }
      let next = (first + 1..<end).first { isFreeStart(at: position(of: $0)) }
      if let found,
        isOwnStart || !policy.renders || next == nil && end - first > policy.longestHead
      {
        key = found
      } else {
        guard policy.renders else { throw refusal(run, frames, isStart: true, policy) }
        start = next ?? end
        key = start < end ? position(of: start) : high
      }
    }
    guard start < end else { return Selection(head: first..<end, tail: end..<end) }
    let copied = copies(key, position(of: start)..<high)
    guard !copied.dropFirst().contains(where: { $0.isJump && !$0.isIndependent }) else {
      throw MediaError(
        .unsupportedSource,
        "the edit list of \(path) jumps to a frame that needs earlier frames",
        recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
    }
    // Frames hidden before the first run and after the last one take no ticks of the movie, so they
    // are not counted.
    let hidden = copied.count {
      $0.position < low && !policy.isFirst || $0.position >= high && !policy.isLast
    }
    if isOwnEnd || isFreeEnd(end)
      || !policy.renders && policy.hidesAny && hidden <= policy.hidden
    {
      return Selection(head: first..<start, copied: copied, tail: end..<end)
    }
    guard policy.renders else { throw refusal(run, frames, isStart: false, policy) }
    guard let free = (start + 1..<end).last(where: isFreeEnd) else {
      return Selection(head: first..<end, tail: end..<end)
    }
    return Selection(
      head: first..<start, copied: copies(key, position(of: start)..<position(of: free - 1) + 1),
      tail: free..<end)
  }

  /// Returns the packets that are needed to decode a range of positions, in decode order.
  ///
  /// Decoding starts at the position `key`, where no earlier packet is needed.
  ///
  /// All packets from there to the end of the range are included, because a shown frame may need
  /// any of them.
  private func copies(_ key: Int, _ range: Range<Int>) -> [Packet] {
    let last = packets[range].lazy.filter { $0.frame != nil }.map(\.decodeIndex).max()
    let first = firstDecoded[key]
    guard let last, first <= last else { return [] }
    // Frames that are shown before a random access frame may need frames before it.
    let leading = isRefresh(at: key) ? key : 0
    return positions[first...last].filter { $0 >= leading }.map { packets[$0] }
  }

  private func checkReverse(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>
  ) throws(MediaError) {
    guard frames.allSatisfy({ table.entries[$0].isIndependent }) else {
      throw MediaError(
        .unsupportedSource,
        "\(path) plays backwards from \(run.end.displayText) to \(run.start.displayText) s, and its "
          + "frames need earlier frames",
        recovery: Recovery(
          "render it at a constant frame rate; only images that stand alone (MJPEG, FFV1) are copied",
          .change(.outputFrameRate)))
    }
  }

  private func isFreeStart(at position: Int) -> Bool {
    // If the first packet of the file is shown at or after this position, decoding starts at the
    // beginning of the file. No earlier packet can then be missing.
    packets[position].isIndependent || firstDecoded[position] == 0 || isRefresh(at: position)
  }

  /// Whether the packet is a random access frame of HEVC, and all frames shown after it are decoded after
  /// it.
  private func isRefresh(at position: Int) -> Bool {
    let packet = packets[position]
    return hasRefresh && packet.isKeyFrame && firstDecoded[position] == packet.decodeIndex
  }

  /// Returns true if the frames before `index` can be decoded without the frame at `index` and all
  /// later ones, and false otherwise.
  private func isFreeEnd(_ index: Int) -> Bool {
    guard index > 0 else { return true }
    let next = position(of: index - 1) + 1
    return next == packets.count || lastDecoded[next - 1] < firstDecoded[next]
  }

  /// Groups packets in file order into ranges of consecutive packets of the source.
  func copies(_ packets: [Packet]) -> [ExportReport.Copy] {
    var copies: [ExportReport.Copy] = []
    for index in packets.lazy.map({ Int64($0.decodeIndex) }) {
      if let last = copies.last, last.firstPacket + last.packetCount == index {
        copies[copies.count - 1].packetCount += 1
      } else {
        copies.append(ExportReport.Copy(path: path, firstPacket: index, packetCount: 1))
      }
    }
    return copies
  }

  /// Returns the nearest cuts that need no extra frames: one at or before a frame, and one after
  /// that frame.
  ///
  /// If the frame ends a range, only cuts after the range's first frame are considered.
  func freeCuts(
    isStart: Bool, around index: Int, first: Int
  ) -> (before: MediaTime?, after: MediaTime?) {
    let count = table.entries.count
    func isFree(_ index: Int) -> Bool {
      if isStart { return index < count && isFreeStart(at: position(of: index)) }
      // No frame comes after the end of the source, so a cut there never needs extra frames.
      return index > first && (index >= count || isFreeEnd(index))
    }
    let before = (0...index).reversed().first(where: isFree)
    let after = ((index + 1)..<max(index + 1, count + 1)).first(where: isFree)
    func time(_ index: Int?) -> MediaTime? {
      index.flatMap { try? table.time(ofFrame: Int64($0)) }
    }
    return (time(before), time(after))
  }

  /// Creates the error for a cut that needs extra frames for decoding.
  ///
  /// The message of the error names the nearest cuts that need no extra frames.
  private func refusal(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, isStart: Bool, _ policy: Policy
  ) -> MediaError {
    let cuts = freeCuts(
      isStart: isStart, around: isStart ? frames.lowerBound : frames.upperBound + 1,
      first: frames.lowerBound)
    let free = [cuts.before, cuts.after].compactMap { $0?.exactDisplayText }
    let why =
      isStart
      ? "no frame can be decoded on its own" : "frames need later frames that would be missing"
    return MediaError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(isStart ? "starts" : "ends") at "
        + "\((isStart ? run.start : run.end).displayText) s, where \(why)"
        + (policy.reason.map { "; \($0)" } ?? ""),
      recovery: free.isEmpty
        ? Recovery("render it at a constant frame rate", .change(.outputFrameRate))
        : Recovery(
          "cut at \(free.joined(separator: " or ")), or render it at a constant frame rate",
          .change(.outputFrameRate)))
  }
}

/// Chooses the timescale of a passthrough export.
private enum ExportTimescale {
  /// With 240000 ticks per second, the frame period is a whole number of ticks at the usual rates
  /// from 24 to 1000 fps, and at variants of these rates such as 30000/1001.
  private static let customary: Int128 = 240_000
  private static let largest: Int128 = 10_000_000

  /// A mapping of source time to composition time, with the tick and the longest frame duration of
  /// the source, both in seconds.
  private struct Piece {
    let mapping: PlaybackMapping
    let tick: Rational
    let longestFrame: Rational
  }

  /// Returns the smallest timescale of at least 240000 in which all times are whole ticks.
  ///
  /// If that timescale is too large, times are rounded, and the result is 240000 or the source's
  /// timescale, whichever is higher. In a ramp, only the times of the two ends are considered,
  /// because no timescale represents all times between them.
  static func choose(
    _ segments: [TrackSegment], _ paths: [String], _ tables: [FrameTable]
  ) throws -> Int32 {
    let longest = tables.map { table in
      Rational(
        Int128(max(1, table.entries.lazy.map(\.duration).max() ?? 0)), over: Int128(table.timescale)
      )
    }
    let pieces = segments.compactMap { segment -> Piece? in
      guard let mapping = segment.mapping,
        let source = paths.firstIndex(of: segment.source?.path ?? "")
      else { return nil }
      return Piece(
        mapping: mapping, tick: Rational(1, over: Int128(tables[source].timescale)),
        longestFrame: longest[source])
    }
    let limit = try limit(pieces)
    let finest = tables.map { Int128($0.timescale) }.max() ?? 1
    var common: Int128 = 1
    for seconds in try pieces.map(\.tick) + pieces.flatMap(times) {
      let seconds = try seconds.checked("a time of the export")
      let divisor = Int128(
        greatestCommonDivisor(common.magnitude, seconds.denominator.magnitude))
      let (product, overflow) = (common / divisor)
        .multipliedReportingOverflow(by: seconds.denominator)
      guard !overflow, product <= limit else {
        return Int32(clamping: min(limit, max(customary, finest)))
      }
      common = product
    }
    let scaled = common * max(1, (customary + common - 1) / common)
    return Int32(clamping: min(limit, scaled <= limit ? scaled : common))
  }

  /// Returns the times in seconds that must be whole ticks, so that all frame times of a segment
  /// are whole ticks.
  ///
  /// At constant speed, these are the duration of a source tick in the composition, the composition
  /// time of source time zero, and the two ends of the segment. For ramps and frozen frames, these
  /// are only the two ends.
  private static func times(_ piece: Piece) throws -> [Rational] {
    let mapping = piece.mapping
    let ends = [mapping.target.start.seconds, mapping.target.end.seconds]
    guard mapping.motion == .constant, let speed = try mapping.meanSpeed() else { return ends }
    // In forward playback, source tick k is shown at target.start + (k·tick −
    // source.start)·stretch. In reverse playback, it is shown at target.end − (k·tick −
    // source.start)·stretch.
    let offset = mapping.sourceStart * speed.stretch
    let zero = mapping.isReversed ? ends[1] + offset : ends[0] - offset
    return [piece.tick * speed.stretch, zero] + ends
  }

  /// Returns the highest timescale at which the longest frame lasts fewer than 2^31 ticks.
  ///
  /// This is the limit of the file format.
  private static func limit(_ pieces: [Piece]) throws -> Int128 {
    var frame = Rational.zero
    var held = Rational.zero
    for piece in pieces {
      let target = piece.mapping.target
      if piece.mapping.motion == .hold {
        held += target.duration
        continue
      }
      // A frame lasts longest where the speed is lowest, and a ramp is slowest at one of its ends.
      for end in [target.start, target.end] {
        let speed = try piece.mapping.speed(at: end.seconds)
        frame = max(frame, piece.longestFrame / speed.magnitude)
      }
    }
    let whole = max(1, try (frame + held).rounded(.towardPositiveInfinity))
    return max(1, min(largest, Int128(Int32.max) / whole))
  }
}
