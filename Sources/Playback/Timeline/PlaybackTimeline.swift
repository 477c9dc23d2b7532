// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import Synchronization

/// A frame of one of a player's assets.
struct FrameKey: Hashable, Sendable {
  /// The index of the asset.
  let asset: Int
  /// The index of the frame in presentation order.
  let frame: Int

  /// The frame before this one, which may not exist.
  var previous: FrameKey { FrameKey(asset: asset, frame: frame - 1) }
  /// The frame after this one, which may not exist.
  var next: FrameKey { FrameKey(asset: asset, frame: frame + 1) }

  /// Returns true if this frame is between two other frames of its asset, or equal to one of them.
  func isBetween(_ one: FrameKey, and other: FrameKey) -> Bool {
    let (low, high) = (min(one.frame, other.frame), max(one.frame, other.frame))
    return asset == one.asset && asset == other.asset && low <= frame && frame <= high
  }
}

/// A composition prepared for playback: the frame and the source time at each instant.
///
/// At the instant where one frame ends and the next begins, the direction decides. Playing forward,
/// an instant shows the frame that begins there. Playing backward, it shows the frame that ends
/// there. Arguments named `before` are true for playing backward.
final class PlaybackTimeline: Sendable {
  /// A segment of a track.
  struct Segment: Sendable {
    let start: Rational
    let end: Rational
    /// The mapping and the index of its asset; nil for a gap.
    let content: Content?

    struct Content: Sendable {
      let mapping: PlaybackMapping
      let asset: Int
    }
  }

  let composition: Composition
  /// The player's assets; the index of an asset never changes.
  let assets: [PlayerAsset]
  let video: [Segment]
  let audio: [Segment]
  /// The end of the composition in seconds.
  let duration: Rational

  /// Prepares a composition.
  ///
  /// - Throws: `MediaError` with `.missingAsset` for a source that is not among the assets.
  init(_ composition: Composition, assets: [PlayerAsset]) throws(MediaError) {
    func segments(_ type: MediaType) throws(MediaError) -> [Segment] {
      try (composition.track(type)?.segments ?? []).map { (segment) throws(MediaError) in
        let content = try segment.mapping.map { (mapping) throws(MediaError) in
          let path = segment.source?.path ?? ""
          guard let asset = assets.firstIndex(where: { $0.asset.path == path }) else {
            throw MediaError(
              .missingAsset, "the composition uses \(path), which is not among the assets",
              recovery: "pass all assets of the composition")
          }
          return Segment.Content(mapping: mapping, asset: asset)
        }
        return Segment(
          start: segment.target.start.seconds, end: segment.target.end.seconds, content: content)
      }
    }
    (self.composition, self.assets) = (composition, assets)
    // A file without video leaves a gap.
    video = try segments(.video).map { segment in
      guard let content = segment.content, assets[content.asset].asset.videoTrack == nil else {
        return segment
      }
      return Segment(start: segment.start, end: segment.end, content: nil)
    }
    audio = try segments(.audio)
    duration = composition.duration.seconds
  }

  /// Returns the segment at an instant; for an instant outside the track, the first or the last
  /// segment.
  static func segment(of list: [Segment], at time: Rational, before: Bool) -> Segment? {
    guard !list.isEmpty else { return nil }
    let index =
      before
      ? list.partitioningIndex { $0.end >= time } : list.partitioningIndex { $0.end > time }
    return list[min(index, list.count - 1)]
  }

  /// Returns the frame at an instant; nil in a gap.
  func frame(at time: Rational, before: Bool) -> FrameKey? {
    guard let segment = Self.segment(of: video, at: time, before: before) else { return nil }
    return frame(of: segment, at: time, before: before)
  }

  /// Returns the first frame shown between two instants in the segment at `end`; nil in a gap.
  func firstFrame(from start: Rational, to end: Rational, isBackward: Bool) -> FrameKey? {
    guard let segment = Self.segment(of: video, at: end, before: isBackward) else { return nil }
    let first = isBackward ? min(start, segment.end) : max(start, segment.start)
    return frame(of: segment, at: first, before: isBackward)
  }

  private func frame(of segment: Segment, at time: Rational, before: Bool) -> FrameKey? {
    // After the end of the video track, no frame is shown, as in an export.
    guard let content = segment.content, time <= segment.end,
      let table = assets[content.asset].asset.videoTrack?.frames
    else { return nil }
    let mapping = content.mapping
    let isBefore =
      mapping.motion == .hold ? mapping.isReversed : mapping.isReversed != before
    let ticks = mapping.nearSourceSeconds(of: time) * Rational(Int64(table.timescale))
    let last = max(0, table.endTicks - 1)
    let whole: Int128
    if isBefore {
      whole = ((try? ticks.rounded(.towardPositiveInfinity)) ?? 0) - 1
    } else {
      whole = (try? ticks.rounded(.towardNegativeInfinity)) ?? 0
    }
    let tick = min(max(0, Int64(clamping: whole)), last)
    return FrameKey(asset: content.asset, frame: table.lastIndex(atOrBefore: tick) ?? 0)
  }

  /// Returns the asset and the source time at an instant; nil in a gap.
  func source(at time: Rational, before: Bool) -> (asset: Int, seconds: Rational)? {
    let list = video.isEmpty ? audio : video
    guard let content = Self.segment(of: list, at: time, before: before)?.content else {
      return nil
    }
    return (content.asset, content.mapping.nearSourceSeconds(of: time))
  }

  /// Returns the source seconds per composition second at an instant; nil in a gap.
  func speed(at time: Rational, before: Bool) -> Rational? {
    let list = video.isEmpty ? audio : video
    guard let mapping = Self.segment(of: list, at: time, before: before)?.content?.mapping else {
      return nil
    }
    return try? mapping.speed(at: time)
  }

  /// Returns the instant nearest to `time` at which a source time plays; nil if it never plays.
  func time(ofSource seconds: Rational, asset: Int, near time: Rational) -> Rational? {
    (video.isEmpty ? audio : video).compactMap { segment -> Rational? in
      guard let content = segment.content, content.asset == asset,
        content.mapping.sourceStart <= seconds, seconds <= content.mapping.sourceEnd
      else { return nil }
      return content.mapping.nearInstant(ofSource: seconds)
    }
    .min { ($0 - time).magnitude < ($1 - time).magnitude }
  }
}

extension PlaybackMapping {
  /// Returns the composition time at which a source time plays; for a hold, the start of the
  /// target.
  ///
  /// The result is exact at constant speed. Inside a ramp it is rounded up to a multiple of
  /// 1/240000 s or, if that overflows, of 1/24000 s or 1/1000 s.
  func nearInstant(ofSource time: Rational) -> Rational {
    let (start, end) = (target.start.seconds, target.end.seconds)
    if motion == .hold { return start }
    if time <= sourceStart { return isReversed ? end : start }
    if time >= sourceEnd { return isReversed ? start : end }
    if motion == .constant {
      let distance = isReversed ? sourceEnd - time : time - sourceStart
      let exact = distance / (sourceEnd - sourceStart) * target.duration + start
      if exact.isValid { return exact }
    }
    for scale in [240_000, 24_000, 1_000] as [Int32] {
      guard
        let ticks = try? ticks(
          ofSource: time, timescale: scale, rounding: .towardPositiveInfinity)
      else { continue }
      return min(max(start, MediaTime(ticks, over: scale).seconds), end)
    }
    return start
  }
}

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

/// An asset that a player plays, with the capture times of the asset's frames.
final class PlayerAsset: Sendable {
  let asset: Asset
  private let captureTimes = Mutex<[MediaTime?]?>(nil)

  init(_ asset: Asset) { self.asset = asset }

  /// Returns the capture time of a frame.
  ///
  /// The first call reads the file's frame records.
  func captureTime(ofFrame index: Int) -> MediaTime? {
    let times = captureTimes.withLock { times in
      if let times { return times }
      let read = asset.captureTimes()
      times = read
      return read
    }
    return times.indices.contains(index) ? times[index] : nil
  }
}
