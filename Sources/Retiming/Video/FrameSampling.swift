// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The choice of source frames for each output frame of a constant-rate export.
public enum FrameSampling: String, Hashable, Sendable, CaseIterable {
  /// The last frame that starts at or before the output time, which is the frame that a player
  /// shows.
  case hold
  /// The frame that starts closest to the output time; the earlier of two equally close frames.
  case nearest
  /// All frames visible while the shutter is open, averaged in linear light by their visible time.
  ///
  /// The result looks like a camera with a 360° shutter, or with another ``ShutterAngle``.
  case blend
  /// A frame synthesized at the exact output time from the two captured frames around it, by optical
  /// flow.
  ///
  /// At the time of a captured frame, the captured frame is shown. At scene cuts and jumps, the
  /// frame before is held. Repeated frames are dropped before the synthesis.
  ///
  /// With a ``ShutterAngle``, several such frames are averaged while the shutter is open.
  case flow
  /// The same as ``flow`` with less search: faster, with coarser motion.
  case flowFast = "flow-fast"

  /// True for ``flow`` and ``flowFast``, which synthesize frames; false otherwise.
  public var synthesizesFrames: Bool { self == .flow || self == .flowFast }
}

/// The content of one or more consecutive output frames.
public struct BlendedFrame: Hashable, Sendable {
  /// One source frame in a blended frame.
  public struct Part: Hashable, Sendable {
    /// The index of the source frame.
    public let frame: Int
    /// The visible time of the frame, relative to ``BlendedFrame/total``.
    public let share: Int64
  }

  /// The source frames in order; exactly one unless the sampling is `blend`.
  public let parts: [Part]
  /// The number of consecutive output frames with this content; above zero.
  public internal(set) var count: Int64

  /// The sum of the shares of all parts; above zero.
  public var total: Int64 { parts.reduce(0) { $0 + $1.share } }
}

extension OutputFrameGrid {
  /// Returns the content of all output frames in order.
  ///
  /// The counts add up to the number of output frames.
  ///
  /// - Parameters:
  ///   - times: The start times of the source frames in composition seconds, in ascending order. If
  ///     two times are equal, only the second frame is shown. Before the first time the first frame is
  ///     shown.
  ///   - end: The end of the last frame; content after it is not blended.
  ///   - sampling: The sampling method. `blend` rounds times to half a nanosecond; the other
  ///     methods are exact. `flow` and `flowFast` return the earlier frame of each pair.
  ///   - shutter: The part of each output period whose frames are blended; only for `blend`.
  ///   - jittered: Ranges of source frames whose times jitter and whose rate is not above the
  ///     output rate. In these ranges `hold` may show a frame up to half an output period early, so
  ///     that fewer frames are skipped.
  /// - Returns: The content, with equal neighbors merged; empty without source frames.
  /// - Throws: `MediaError` with `.notAscending`, or `.notExact` if a time cannot be computed
  ///   exactly.
  public func frames(
    of times: [Rational], until end: Rational, _ sampling: FrameSampling,
    shutter: ShutterAngle = .full, jittered: [Range<Int>] = []
  ) throws(MediaError) -> [BlendedFrame] {
    guard !times.isEmpty else { return [] }
    if sampling == .blend {
      return try ShutterContent(of: times, until: end, self, shutter).blended
    }
    // For each source frame, the index of its first output frame; then the number of output frames.
    var starts: [Int64] = [0]
    starts.reserveCapacity(times.count + 1)
    for (time, next) in zip(times, times.dropFirst()) {
      guard time <= next else { throw Self.notAscending(time, next) }
      starts.append(
        sampling != .nearest
          ? try count(before: next)
          : time == next ? starts[starts.count - 1] : try count(nearer: time, than: next))
    }
    starts.append(count)
    if sampling == .hold {
      for range in jittered { try spread(&starts, of: times, over: range) }
    }
    return times.indices.compactMap { index in
      let shown = starts[index + 1] - starts[index]
      return shown > 0
        ? BlendedFrame(parts: [.init(frame: index, share: 1)], count: shown) : nil
    }
  }

  /// Shows skipped frames, where otherwise a frame before them would be shown twice.
  ///
  /// If a source frame is slightly late for its output time, its predecessor is shown a second
  /// time. If the next source frame is then on time, the late frame is never shown. This method
  /// looks for a frame that is shown twice and is followed only by late frames, the last of which
  /// is skipped. It then shows all these late frames one output frame earlier.
  ///
  /// - Parameters:
  ///   - starts: The first output frame of each source frame, then the number of output frames.
  ///   - times: The start times of the source frames.
  ///   - range: The source frames that may move.
  /// - Throws: `MediaError` with `.notExact` if an output time cannot be computed exactly.
  private func spread(
    _ starts: inout [Int64], of times: [Rational], over range: Range<Int>
  ) throws(MediaError) {
    // The latest frame that is shown more than once. It is nil if a frame after it is on time,
    // because that frame must not be shown earlier.
    var spare: Int?
    for index in range {
      let shown = starts[index + 1] - starts[index]
      if shown > 1 {
        spare = index
      } else if try !isLate(times, index, for: starts[index] - 1) {
        spare = nil
      } else if shown == 0 {
        if let spare { for moved in (spare + 1)...index { starts[moved] -= 1 } }
        spare = nil
      }
    }
  }

  /// Returns true if a source frame is slightly late for an output time, and false otherwise.
  ///
  /// Slightly late means at most half an output period, and no farther from the output time than
  /// the preceding source frame.
  private func isLate(
    _ times: [Rational], _ index: Int, for slot: Int64
  ) throws(MediaError) -> Bool {
    guard index > 0, slot >= 0 else { return false }
    let instant = seconds(of: slot)
    let late = try (times[index] - instant).exact("the slot at \(instant) s")
    let early = try (instant - times[index - 1]).exact("the slot at \(instant) s")
    return late <= early && 2 * late * rate.framesPerSecond <= 1
  }

  static func notAscending(_ time: Rational, _ next: Rational) -> MediaError {
    MediaError(
      .notAscending, "a frame at \(next.displayText) s follows one at \(time.displayText) s")
  }

  /// Returns the number of output frames whose time is closer to `time` than to `next`, or equally
  /// close to both.
  private func count(
    nearer time: Rational, than next: Rational
  ) throws(MediaError) -> Int64 {
    let middle = try ((time + next) * rate.framesPerSecond / 2)
      .exact("the slots about \(time.displayText) s")
    let last = try middle.rounded(.towardNegativeInfinity)
    return Int64(clamping: min(max(last, -1) + 1, Int128(count)))
  }
}

/// The policy for synthesized frames of low confidence, where the motion between two frames cannot
/// be followed.
public enum LowConfidencePolicy: String, Hashable, Sendable, CaseIterable {
  /// Shows the synthesized frame anyway.
  case flow
  /// Shows the earlier captured frame.
  case hold
  /// Shows a mix of both captured frames.
  case blend
}
