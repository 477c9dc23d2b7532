// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming

/// A relation between output samples and composition time that holds from the run's first sample
/// until the next run begins.
///
/// The composition time at a sample is `origin + rate · (sample − start) / sampleRate`, wrapped into
/// the loop. It is computed from the start of the run each time, so errors cannot add up.
struct TransportRun: Sendable {
  /// A number that identifies this transport run within the player.
  let id: Int
  /// The first output sample of the transport run.
  let start: Int64
  /// The composition time at the first output sample, in seconds.
  let origin: Rational
  /// Composition seconds per output second; negative in reverse, and zero for a pause.
  let rate: Rational
  /// True if an instant between two frames shows the frame before it; see ``PlaybackTimeline``.
  ///
  /// A pause keeps the direction of the run before it, so the frame on screen stays.
  let isBackward: Bool
  /// The range of the composition that repeats; nil for none.
  let loop: PlaybackLoop?
  /// True if the position does not continue from the previous run.
  ///
  /// After such a jump, the frame changes at once, and not when the first sample is heard.
  let isJump: Bool
  let algorithm: AudioTimePitchAlgorithm
  let timeline: PlaybackTimeline
  let sampleRate: Int
  /// The limits of the composition time.
  ///
  /// A follower has the limits of the leader's composition. Nil means the limits of this run's
  /// composition.
  var limits: Limits?

  /// The composition times at which a transport run ends.
  struct Limits: Hashable {
    let lower: Rational
    let upper: Rational
  }

  /// A position in a composition.
  struct Position: Equatable {
    /// The composition time in seconds.
    var time: Rational
    var isBackward: Bool
    /// The number of times that the loop has started over.
    var loopCount = 0
    /// True if playback reached the end of the composition, or the start in reverse.
    var isAtEnd = false
  }

  /// Returns the position at an output sample, which may be fractional.
  func position(at sample: Rational) -> Position {
    guard rate != .zero else { return inside(Position(time: origin, isBackward: isBackward)) }
    let distance = max(.zero, sample - Rational(start)) / Rational(Int64(sampleRate))
    let time = origin + rate * distance
    if let loop, let wrapped = loop.wrapped(time, from: origin, isBackward: isBackward) {
      return inside(wrapped)
    }
    let limits = self.limits ?? Limits(lower: .zero, upper: timeline.duration)
    if isBackward, time <= limits.lower {
      return inside(Position(time: limits.lower, isBackward: true, isAtEnd: true))
    }
    if !isBackward, time >= limits.upper {
      // At the end of the composition no frame begins, so the last frame is shown.
      return inside(Position(time: limits.upper, isBackward: true, isAtEnd: true))
    }
    return inside(Position(time: time, isBackward: isBackward))
  }

  /// Returns the position clamped to the composition; only a follower's position can be outside.
  private func inside(_ position: Position) -> Position {
    var position = position
    position.time = min(max(.zero, position.time), timeline.duration)
    return position
  }

  /// Returns the same transport run for another composition, in which the same instants are later
  /// by `distance`.
  func shifted(by distance: Rational, onto timeline: PlaybackTimeline) -> TransportRun {
    TransportRun(
      id: id, start: start, origin: origin + distance, rate: rate, isBackward: isBackward,
      loop: loop.map { PlaybackLoop(start: $0.start + distance, end: $0.end + distance) },
      isJump: isJump, algorithm: algorithm, timeline: timeline, sampleRate: sampleRate,
      limits: Limits(lower: distance, upper: self.timeline.duration + distance))
  }

  /// Returns the first output sample at which playback has moved by a distance, at least one sample
  /// after the start.
  ///
  /// - Parameters:
  ///   - seconds: The distance in composition seconds, above zero.
  ///   - sample: The output sample to start from.
  /// - Returns: The output sample.
  func sample(after seconds: Rational, from sample: Int64) -> Int64 {
    let samples = seconds * Rational(Int64(sampleRate)) / rate.magnitude
    let whole = (try? samples.rounded(.towardPositiveInfinity)) ?? Int128(Self.end)
    return sample + max(1, Int64(clamping: min(whole, Int128(Self.end) - Int128(sample))))
  }

  /// The end of a transport run that has no known end; about a million years.
  static let end: Int64 = 1 << 60
}

/// A range of a composition that repeats.
struct PlaybackLoop: Hashable, Sendable {
  let start: Rational
  let end: Rational

  /// Returns the position of a time that was extrapolated beyond the loop; nil before the first
  /// repetition.
  ///
  /// The period is exact, because the number of repetitions is an integer division.
  func wrapped(
    _ time: Rational, from origin: Rational, isBackward: Bool
  ) -> TransportRun.Position? {
    // Playing backward, the loop includes its end but not its start.
    guard isBackward ? origin > start && time <= start : origin < end && time >= end else {
      return nil
    }
    let period = end - start
    let beyond = isBackward ? start - time : time - end
    guard let count = try? (beyond / period).rounded(.towardNegativeInfinity) else { return nil }
    let rest = beyond - Rational(count) * period
    return TransportRun.Position(
      time: isBackward ? end - rest : start + rest, isBackward: isBackward,
      loopCount: Int(clamping: count) + 1)
  }
}

/// The runs of a player: the current run, and those that are not heard yet.
struct Transport: Sendable {
  private(set) var runs: [TransportRun]

  init(_ first: TransportRun) { runs = [first] }

  /// Creates the transport of a follower from the leader's runs, which must not be empty.
  init(following runs: [TransportRun]) { self.runs = runs }

  /// The transport run that was requested last.
  var last: TransportRun { runs[runs.count - 1] }

  /// Appends a transport run, and removes all runs that start at the same sample or later.
  mutating func append(_ run: TransportRun) {
    runs.removeAll { $0.start >= run.start }
    runs.append(run)
  }

  /// Drops the transport runs that ended before a sample.
  mutating func forget(before sample: Rational) {
    while runs.count > 1, Rational(runs[1].start) <= sample { runs.removeFirst() }
  }

  /// Returns the transport run at an output sample.
  func run(at sample: Rational) -> TransportRun {
    runs.last { Rational($0.start) <= sample } ?? runs[0]
  }

  /// Returns the transport run whose frames are on screen while a sample is heard.
  func shownRun(at sample: Rational) -> TransportRun {
    let heard = runs.lastIndex { Rational($0.start) <= sample } ?? 0
    let jump = runs.lastIndex(where: \.isJump) ?? 0
    return runs[max(heard, jump)]
  }
}
