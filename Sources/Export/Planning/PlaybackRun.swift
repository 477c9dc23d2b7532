// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// Segments in which one source goes on without a jump, or in which nothing plays.
///
/// Speeds may change and frames may be held: each frame is shown once, from the instant at which
/// it first plays. Both kinds of export show just these frames.
struct PlaybackRun {
  /// A frame, and where it first plays.
  struct FramePresentation {
    /// Its number in the source, in order of presentation.
    let index: Int
    /// The mapping that shows it first.
    let mapping: Int
    /// The source time from which on it plays: its start, or the run's; backwards its end.
    let time: Rational
  }

  /// The place of the source among those given; nil where nothing plays.
  let source: Int?
  /// Whether it plays backwards.
  let isReversed: Bool
  /// In the order in which they play; none where nothing plays.
  private(set) var mappings: [PlaybackMapping]
  /// Where it starts, in the time of the composition.
  let target: MediaTime
  /// Where it ends.
  var targetEnd: MediaTime { mappings.last?.target.end ?? target }
  /// What of the source is played, in seconds.
  private(set) var start: Rational
  private(set) var end: Rational

  /// Splits the segments of a track where the source jumps.
  static func runs(
    of segments: [TrackSegment], _ paths: [String]
  ) throws(MediaError) -> [PlaybackRun] {
    var runs: [PlaybackRun] = []
    for segment in segments {
      guard let mapping = segment.mapping, let path = segment.source?.path else {
        runs.append(PlaybackRun(gap: segment.target.start))
        continue
      }
      guard let source = paths.firstIndex(of: path) else {
        throw MediaError(
          .unsupportedSource, "the composition plays \(path), which was not given",
          recovery: "give all the files that it plays")
      }
      if runs.last?.isContinued(by: mapping, of: source) == true {
        runs[runs.count - 1].append(mapping)
      } else {
        runs.append(PlaybackRun(mapping, of: source))
      }
    }
    return runs
  }

  private init(gap target: MediaTime) {
    (source, isReversed, mappings) = (nil, false, [])
    self.target = target
    (start, end) = (.zero, .zero)
  }

  private init(_ mapping: PlaybackMapping, of source: Int) {
    self.source = source
    isReversed = mapping.isReversed
    mappings = [mapping]
    target = mapping.target.start
    (start, end) = (mapping.sourceStart, mapping.sourceEnd)
  }

  private func isContinued(by mapping: PlaybackMapping, of source: Int) -> Bool {
    guard self.source == source else { return false }
    // What is held goes on either way.
    guard mapping.isReversed == isReversed || mapping.motion == .hold else { return false }
    return isReversed ? mapping.sourceEnd == start : mapping.sourceStart == end
  }

  private mutating func append(_ mapping: PlaybackMapping) {
    mappings.append(mapping)
    start = min(start, mapping.sourceStart)
    end = max(end, mapping.sourceEnd)
  }

  /// The frames that are shown, by number.
  ///
  /// Forwards those that begin in the range and the one that is on when it begins; backwards
  /// those that are on in it, and the last that begins before its end. An edge of the range that is
  /// as near to a frame's time as the table can tell is meant to be that frame's time.
  func frames(of table: FrameTable, path: String) throws(MediaError) -> ClosedRange<Int> {
    let ticks = Rational(Int64(table.timescale))
    do throws(MediaError) {
      let startTicks = start * ticks
      let first = try startTicks.rounded(.towardNegativeInfinity)
      let begun = try (startTicks + table.uncertainty).rounded(.towardNegativeInfinity)
      let after = try (end * ticks - table.uncertainty).rounded(.towardPositiveInfinity)
      let on = table.lastIndex(atOrBefore: Int64(clamping: begun))
      if let last = table.lastIndex(atOrBefore: Int64(clamping: after) - 1), let on,
        first < Int128(table.endTicks) || isReversed
      {
        return isReversed ? min(on, last)...last : on...max(on, last)
      }
      // What is held at the first instant has nothing before it.
      if !isReversed, first >= 0, let on, first < Int128(table.endTicks) { return on...on }
    } catch { throw MediaError(exporting: error) }
    throw MediaError(
      .unsupportedSource, "\(path) shows no frame at \(start.displayText) s",
      recovery: Recovery("choose a time before its end", .inspect(file: path)))
  }

  /// The frames in the order in which they are shown.
  ///
  /// A frame whose time is as near to where a mapping begins as the table can tell begins there.
  func showings(_ frames: ClosedRange<Int>, of table: FrameTable) throws -> [FramePresentation] {
    let slack = table.uncertaintyInSeconds
    var showings: [FramePresentation] = []
    showings.reserveCapacity(frames.count)
    var position = 0
    for offset in 0..<frames.count {
      let index = isReversed ? frames.upperBound - offset : frames.lowerBound + offset
      let edge = try table.time(ofFrame: Int64(isReversed ? index + 1 : index)).seconds
      // The first plays from the beginning, whichever side of it its time is rounded to.
      let first = isReversed ? end : start
      var time = offset == 0 ? first : isReversed ? min(edge, end) : max(edge, start)
      while position < mappings.count - 1 {
        let boundary = isReversed ? mappings[position].sourceStart : mappings[position].sourceEnd
        let distance = try (time - boundary).checked("the distance of two frames").magnitude
        if distance <= slack { time = boundary }
        if plays(mappings[position], time) { break }
        position += 1
      }
      showings.append(FramePresentation(index: index, mapping: position, time: time))
    }
    return showings
  }

  /// Whether a frame that plays from a source time on is first shown by a mapping, or before it.
  private func plays(_ mapping: PlaybackMapping, _ time: Rational) -> Bool {
    let holdsEdge = mapping.motion == .hold && mapping.isReversed == isReversed
    if isReversed {
      return holdsEdge ? time >= mapping.sourceStart : time > mapping.sourceStart
    }
    return holdsEdge ? time <= mapping.sourceEnd : time < mapping.sourceEnd
  }
}
