// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

/// The frames of a movie in the order of their capture, around an instant.
///
/// It has the part of the movie in which the instant is, up to the next cuts. The frames are in the order
/// in which they were captured, also if the part plays backwards.
struct CaptureLine {
  /// The capture times of the frames relative to the instant, in ascending order, with the index of each
  /// frame.
  private let moments: [(time: Rational, frame: Int)]
  /// The start of the part relative to the instant.
  let start: Rational
  /// The end of the part relative to the instant.
  let end: Rational
  /// The precision of the capture times.
  private let slack: Rational

  /// Finds the frames; nil for an instant at which no frame of known time is shown.
  init?(_ clock: CaptureClock, _ asset: Asset, around origin: MediaTime) {
    guard let table = asset.videoTrack?.frames, let index = table.index(at: origin),
      let part = clock.part(ofFrame: index), let zero = clock.seconds(at: origin)
    else { return nil }
    var moments: [(time: Rational, frame: Int)] = []
    var isBackward = false
    for frame in clock.map.frames.indices where clock.part(ofFrame: frame) == part {
      guard clock.map.frames[frame].content != .repeated || moments.isEmpty,
        let time = clock.seconds(ofFrame: frame)
      else { continue }
      if let last = moments.last { isBackward = time - zero < last.time }
      moments.append((time - zero, frame))
    }
    guard let last = moments.last else { return nil }
    // The last frame is on screen until the part ends.
    let shown = clock.lastFrame(ofPart: part).flatMap { frame -> Rational? in
      let end = try? table.time(ofFrame: Int64(frame + 1))
      guard let end, let begin = try? table.time(ofFrame: Int64(last.frame)),
        let scale = clock.timeScale(in: last.frame..<last.frame + 1)
      else { return nil }
      return ((end - begin) * scale.magnitude).ifValid
    }
    let step = moments.count > 1 ? (last.time - moments[moments.count - 2].time).magnitude : .zero
    let length = shown ?? step
    if isBackward {
      // A frame that plays backwards is on screen before its capture time.
      moments.reverse()
      (start, end) = (moments[0].time, moments[moments.count - 1].time + step)
    } else {
      (start, end) = (moments[0].time, last.time + length)
    }
    moments.sort { $0.time < $1.time }
    self.moments = moments
    let scale = clock.timeScale(in: last.frame..<last.frame + 1)?.magnitude ?? .one
    slack = table.uncertaintyInSeconds * scale
  }

  /// The median time from one of these frames to the next; nil for fewer than two.
  func period(of frames: Range<Int>) -> Rational? {
    let times = moments.filter { frames.contains($0.frame) }.map(\.time)
    let steps = zip(times.dropFirst(), times).map { $0 - $1 }.sorted()
    return steps.isEmpty ? nil : steps[steps.count / 2]
  }

  /// Returns the frames shown at the instant, and at every multiple of a step after it, in the order of
  /// the movie.
  ///
  /// - Parameters:
  ///   - step: The step, above zero.
  ///   - end: The end relative to the instant; below zero where the movie plays backwards.
  /// - Returns: The indices of the frames.
  func frames(every step: Rational, until end: Rational) -> [Int] {
    let isBackward = end < .zero
    var frames: [Int] = []
    for (number, moment) in moments.enumerated() {
      let next = number + 1 < moments.count ? moments[number + 1].time : self.end
      // The frame is on screen from `first` up to `limit`.
      let (first, limit) = (moment.time - slack, next - slack)
      let edge = isBackward ? -limit : first
      guard let steps = try? (edge / step).rounded(.towardPositiveInfinity) else { continue }
      let isOnEdge = isBackward && Rational(steps) * step == edge
      let time = Rational(max(0, steps + (isOnEdge ? 1 : 0))) * step
      let shown = isBackward ? -time : time
      guard time.isValid, shown >= first, shown < limit, time < end.magnitude else { continue }
      frames.append(moment.frame)
    }
    return isBackward ? frames.reversed() : frames
  }

  /// Returns the frame that was captured last at or before a time relative to the instant.
  func frame(at time: Rational) -> Int {
    // The times in a file are rounded, so a frame may seem to begin just after its slot.
    let limit = time + slack
    var (low, high) = (0, moments.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if moments[middle].time <= limit { low = middle } else { high = middle }
    }
    return moments[low].frame
  }
}
