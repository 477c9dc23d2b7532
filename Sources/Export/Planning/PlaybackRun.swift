// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// A gap, or consecutive segments in which one source plays without a jump.
///
/// Inside a run, speeds may change and frames may be frozen. Each frame is shown once, from the
/// instant at which it first appears until the next frame appears.
struct PlaybackRun {
  /// A frame, and the instant at which it first appears.
  struct FramePresentation {
    /// The index of the frame in presentation order.
    let index: Int
    /// The index in `mappings` of the mapping that shows the frame first.
    let mapping: Int
    /// The source time at which the frame appears: the start of the frame, or its end in reverse
    /// playback.
    let time: Rational
  }

  /// The index of the source in the paths passed to ``runs(of:_:)``; nil for a gap.
  let source: Int?
  /// Whether the source plays backwards.
  let isReversed: Bool
  /// The mappings of source time to composition time, in playback order; empty for a gap.
  private(set) var mappings: [PlaybackMapping]
  /// The start of the playback run in composition time.
  let target: MediaTime
  /// The end of the playback run in composition time.
  var targetEnd: MediaTime { mappings.last?.target.end ?? target }
  /// The start of the played range of the source, in source seconds.
  ///
  /// The range ends at `end`.
  private(set) var start: Rational
  private(set) var end: Rational

  /// Splits the segments of a track into runs, at every jump of the source.
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
          .unsupportedSource, "the composition uses \(path), which is not among the assets",
          recovery: "pass all assets of the composition")
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
    // A frozen frame has no direction, so a run in forward or in reverse playback can continue with
    // it.
    guard mapping.isReversed == isReversed || mapping.motion == .hold else { return false }
    return isReversed ? mapping.sourceEnd == start : mapping.sourceStart == end
  }

  private mutating func append(_ mapping: PlaybackMapping) {
    mappings.append(mapping)
    start = min(start, mapping.sourceStart)
    end = max(end, mapping.sourceEnd)
  }

  /// Returns the indices of the frames that are shown.
  ///
  /// These are the frames that are on screen at any instant of the played range. Frame times are
  /// known only to the precision of the source's time base. A boundary of the range that is closer
  /// to a frame time than this precision counts as equal to that time.
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
      // No frame starts in a run that is only a freeze frame at the start of the source. The run
      // shows the frame that is on screen at the frozen instant.
      if !isReversed, first >= 0, let on, first < Int128(table.endTicks) { return on...on }
    } catch { throw MediaError(exporting: error) }
    throw MediaError(
      .unsupportedSource, "\(path) has no frame at \(start.displayText) s",
      recovery: Recovery("choose a time before its end", .inspect(file: path)))
  }

  /// Returns the frames in the order in which they are shown.
  ///
  /// A frame time that is closer to the start of a mapping than the precision of the source's time
  /// base counts as equal to that start.
  func showings(_ frames: ClosedRange<Int>, of table: FrameTable) throws -> [FramePresentation] {
    let slack = table.uncertaintyInSeconds
    var showings: [FramePresentation] = []
    showings.reserveCapacity(frames.count)
    var position = 0
    for offset in 0..<frames.count {
      let index = isReversed ? frames.upperBound - offset : frames.lowerBound + offset
      let edge = try table.time(ofFrame: Int64(isReversed ? index + 1 : index)).seconds
      // The first frame is already on screen at the start of the run, so its presentation begins at
      // that start.
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

  /// Returns true if a frame that appears at a source time first appears in this mapping or an
  /// earlier one, and false otherwise.
  private func plays(_ mapping: PlaybackMapping, _ time: Rational) -> Bool {
    let holdsEdge = mapping.motion == .hold && mapping.isReversed == isReversed
    if isReversed {
      return holdsEdge ? time >= mapping.sourceStart : time > mapping.sourceStart
    }
    return holdsEdge ? time <= mapping.sourceEnd : time < mapping.sourceEnd
  }
}
