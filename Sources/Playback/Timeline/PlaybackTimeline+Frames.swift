// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

extension PlaybackTimeline {
  /// A frame, or a gap, and the instants at which it appears and disappears.
  struct Presentation {
    /// The frame; nil for a gap.
    let frame: FrameKey?
    /// The instants at which the frame or gap begins and ends, within one segment.
    let start: Rational
    let end: Rational
  }

  /// Returns the frame at an instant and the instants between which it is on screen.
  ///
  /// Nil without video.
  func presentation(at time: Rational, before: Bool) -> Presentation? {
    guard let segment = Self.segment(of: video, at: time, before: before) else { return nil }
    let whole = Presentation(
      frame: frame(at: time, before: before), start: segment.start, end: segment.end)
    guard let content = segment.content, content.mapping.motion != .hold, let frame = whole.frame
    else { return whole }
    guard let table = assets[content.asset].asset.videoTrack?.frames,
      let first = try? table.time(ofFrame: Int64(frame.frame)).seconds,
      let last = try? table.time(ofFrame: Int64(frame.frame + 1)).seconds
    else { return whole }
    let instants = [first, last].map { content.mapping.nearInstant(ofSource: $0) }.sorted()
    return Presentation(
      frame: frame, start: max(segment.start, instants[0]), end: min(segment.end, instants[1]))
  }

  /// Returns the start of the frame that is `count` frames away from the frame on screen.
  ///
  /// Past the first or last frame, further steps change nothing. A frame that two consecutive
  /// segments show counts once.
  func step(from time: Rational, before: Bool, by count: Int) -> Rational {
    guard var here = presentation(at: time, before: before) else { return time }
    for _ in 0..<abs(count) {
      guard let next = neighbor(of: here, isForward: count > 0) else { break }
      here = next
    }
    return here.start
  }

  /// Returns the next or the previous frame; nil at the ends of the composition.
  func neighbor(of here: Presentation, isForward: Bool) -> Presentation? {
    var next = here
    repeat {
      let edge = isForward ? next.end : next.start
      let isAtEnd = isForward ? edge >= (video.last?.end ?? .zero) : edge <= .zero
      guard !isAtEnd, let found = presentation(at: edge, before: !isForward) else { return nil }
      // A frame that is on screen for no time would repeat this loop forever.
      guard isForward ? found.end > edge : found.start < edge else { return nil }
      next = found
    } while next.frame == here.frame
    return next
  }

  /// Returns the number of frames that begin between two instants, in the direction of play.
  func frameCount(from start: Rational, to end: Rational, isBackward: Bool) -> Int {
    guard isBackward ? end < start : end > start, !video.isEmpty else { return 0 }
    var count = 0
    var last = frame(at: start, before: isBackward)
    var position = start
    while isBackward ? position > end : position < end {
      guard let segment = Self.segment(of: video, at: position, before: isBackward) else { break }
      let edge = isBackward ? max(segment.start, end) : min(segment.end, end)
      guard isBackward ? edge < position : edge > position else { break }
      let isInside = isBackward ? edge > segment.start : edge < segment.end
      // At the end of the interval, the frame that begins there is counted. At the end of a
      // segment, the last frame of the segment is counted, and the next segment's frame is added
      // below.
      let reached = frame(at: edge, before: isInside ? isBackward : !isBackward)
      if let last, let reached, last.asset == reached.asset {
        count += abs(reached.frame - last.frame)
      } else if last != reached, reached != nil {
        count += 1
      }
      last = reached
      let isTrackEnd = edge <= .zero || edge >= video.last?.end ?? .zero
      let next = frame(at: edge, before: isBackward)
      if !isInside, !isTrackEnd, next != reached, next != nil {
        count += 1
        last = next
      }
      position = edge
    }
    return count
  }
}
