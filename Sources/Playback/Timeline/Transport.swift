// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming

/// A relation between output samples and composition time that holds from one sample on.
///
/// The composition time at a sample is `origin + rate · (sample − start) / sampleRate`, wrapped into
/// the loop. It is computed from the start of the run each time, so errors cannot add up.
struct TransportRun: Sendable {
  /// A number that distinguishes runs.
  let id: Int
  /// The first output sample of the run.
  let start: Int64
  /// The composition time at that sample, in seconds.
  let origin: Rational
  /// Composition seconds per output second; negative in reverse, and zero for a pause.
  let rate: Rational
  /// True if an instant between two frames shows the one before it, see ``PlaybackTimeline``.
  ///
  /// A pause keeps the direction before it, so the frame on screen stays.
  let isBackward: Bool
  /// The range that repeats.
  let loop: PlaybackLoop?
  /// True if the position does not continue that of the run before.
  ///
  /// Frames then change at once, and not when the sample is heard.
  let isJump: Bool
  let algorithm: AudioTimePitchAlgorithm
  let timeline: PlaybackTimeline
  let sampleRate: Int
  /// The limits of the time; those of the other player in a player beside it, and nil for the
  /// composition.
  var limits: Limits?

  /// The composition times at which a run ends.
  struct Limits: Hashable {
    let lower: Rational
    let upper: Rational
  }

  /// A position in a composition.
  struct Position: Equatable {
    /// The composition time in seconds.
    var time: Rational
    var isBackward: Bool
    /// The number of times that the loop has begun again.
    var loopCount = 0
    /// True if the end was reached, or the start in reverse.
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
      // The end of the composition belongs to no frame, so the last frame stays.
      return inside(Position(time: limits.upper, isBackward: true, isAtEnd: true))
    }
    return inside(Position(time: time, isBackward: isBackward))
  }

  /// Returns the position moved into the composition, outside of which only a player beside another
  /// can be.
  private func inside(_ position: Position) -> Position {
    var position = position
    position.time = min(max(.zero, position.time), timeline.duration)
    return position
  }

  /// Returns the same run of another composition, whose times are later by a distance.
  func shifted(by distance: Rational, onto timeline: PlaybackTimeline) -> TransportRun {
    TransportRun(
      id: id, start: start, origin: origin + distance, rate: rate, isBackward: isBackward,
      loop: loop.map { PlaybackLoop(start: $0.start + distance, end: $0.end + distance) },
      isJump: isJump, algorithm: algorithm, timeline: timeline, sampleRate: sampleRate,
      limits: Limits(lower: distance, upper: self.timeline.duration + distance))
  }

  /// Returns the first output sample at or after a distance from a position, at least one on.
  ///
  /// - Parameters:
  ///   - seconds: The distance in composition seconds, above zero.
  ///   - sample: The sample of the position.
  /// - Returns: The output sample.
  func sample(after seconds: Rational, from sample: Int64) -> Int64 {
    let samples = seconds * Rational(Int64(sampleRate)) / rate.magnitude
    let whole = (try? samples.rounded(.towardPositiveInfinity)) ?? Int128(Self.end)
    return sample + max(1, Int64(clamping: min(whole, Int128(Self.end) - Int128(sample))))
  }

  /// The end of a run without one; about a million years.
  static let end: Int64 = 1 << 60
}

/// A range of a composition that repeats.
struct PlaybackLoop: Hashable, Sendable {
  let start: Rational
  let end: Rational

  /// Returns the position in the loop for an unlimited time; nil before the loop has begun again.
  ///
  /// The period is exact, because the number of repetitions is an integer division.
  func wrapped(
    _ time: Rational, from origin: Rational, isBackward: Bool
  ) -> TransportRun.Position? {
    // Backward, the loop excludes its start and contains its end.
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

/// The runs of a player: those that are heard, and those that will be.
struct Transport: Sendable {
  private(set) var runs: [TransportRun]

  init(_ first: TransportRun) { runs = [first] }

  /// Creates the transport of a player beside another, with the runs of that player; not empty.
  init(following runs: [TransportRun]) { self.runs = runs }

  /// The run that was requested last.
  var last: TransportRun { runs[runs.count - 1] }

  /// Appends a run, which replaces all runs that start at its start or later.
  mutating func append(_ run: TransportRun) {
    runs.removeAll { $0.start >= run.start }
    runs.append(run)
  }

  /// Drops the runs that ended before a sample.
  mutating func forget(before sample: Rational) {
    while runs.count > 1, Rational(runs[1].start) <= sample { runs.removeFirst() }
  }

  /// Returns the run at an output sample.
  func run(at sample: Rational) -> TransportRun {
    runs.last { Rational($0.start) <= sample } ?? runs[0]
  }

  /// Returns the run whose frames are on screen while a sample is heard.
  func shownRun(at sample: Rational) -> TransportRun {
    let heard = runs.lastIndex { Rational($0.start) <= sample } ?? 0
    let jump = runs.lastIndex(where: \.isJump) ?? 0
    return runs[max(heard, jump)]
  }
}
