// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
public import OvercrankMediaCore

/// The moving position of a player: its transport, and the clock that moves it.
struct Playhead: Sendable {
  let sampleRate: Int
  private var clock: PlaybackClock
  private var transport: Transport
  /// The number of samples rendered for the output so far.
  private var written: Int64 = 0

  /// Samples to render, all from one run of the transport.
  struct Part: Sendable {
    let run: TransportRun
    let count: Int
  }

  /// Starts at a run; the clock of a player without an output runs at once.
  init(_ run: TransportRun, start: MediaTime, isRunning: Bool) {
    sampleRate = run.sampleRate
    clock = PlaybackClock(sampleRate: run.sampleRate, start: start, isRunning: isRunning)
    transport = Transport(run)
  }

  // MARK: Position

  /// The run that was requested last.
  var lastRun: TransportRun { transport.last }

  /// The first output sample that is not written yet, at which a change takes effect.
  var nextSample: Int64 { written }

  /// Returns the sample that is heard at a host time.
  func sample(at time: MediaTime) -> Rational { clock.sample(at: time) }

  /// Returns the run at an output sample.
  func run(at sample: Rational) -> TransportRun { transport.run(at: sample) }

  /// Returns the run whose frames are on screen while a sample is heard.
  func shownRun(at sample: Rational) -> TransportRun { transport.shownRun(at: sample) }

  /// Returns the run and the position that are on screen at a host time.
  func shown(at time: MediaTime) -> (run: TransportRun, position: TransportRun.Position) {
    let heard = clock.sample(at: time)
    let run = transport.shownRun(at: heard)
    return (run, run.position(at: heard))
  }

  // MARK: Movement

  /// Appends a run, and removes all runs that start at the same sample or later.
  mutating func append(_ run: TransportRun) { transport.append(run) }

  /// Drops the runs that ended before a host time.
  ///
  /// Without an output, which would count the written samples, `countsSamples` is true.
  mutating func advance(to time: MediaTime, countsSamples: Bool) {
    let heard = clock.sample(at: time)
    if countsSamples {
      let whole = (try? heard.rounded(.towardPositiveInfinity)) ?? 0
      written = max(written, Int64(clamping: whole))
    }
    transport.forget(before: heard)
  }

  /// Marks the next samples as written, so that later runs no longer change them, and returns what
  /// they contain.
  mutating func take(_ count: Int) -> [Part] {
    var parts: [Part] = []
    let end = written + Int64(count)
    while written < end {
      let run = transport.run(at: Rational(written))
      let next = transport.runs.first { $0.start > written }?.start ?? end
      let partEnd = min(next, end)
      parts.append(Part(run: run, count: Int(partEnd - written)))
      written = partEnd
    }
    return parts
  }

  /// Adjusts the clock to a position that the output reports.
  mutating func follow(_ timing: AudioSinkTiming) { clock.follow(timing) }

  /// Lets the clock run without an output from a host time on.
  mutating func release(at time: MediaTime) { clock.release(at: time) }

  /// Copies the position of another player.
  ///
  /// - Parameters:
  ///   - leader: The position of the other player.
  ///   - distance: The time by which the same instants are later in this player's composition.
  ///   - timeline: This player's composition.
  ///   - isNew: Whether the leader has runs that this player has not copied yet.
  mutating func follow(
    _ leader: Playhead, shiftedBy distance: Rational, onto timeline: PlaybackTimeline, isNew: Bool
  ) {
    clock = leader.clock
    written = leader.written
    guard isNew else { return }
    transport = Transport(
      following: leader.transport.runs.map { $0.shifted(by: distance, onto: timeline) })
  }
}

/// The refreshes of the screen, which are assumed at regular intervals from the last one.
struct ScreenRefreshes: Sendable {
  /// The seconds between two refreshes.
  let period: Rational
  /// The time of the last refresh; nil before the first.
  private(set) var last: MediaTime?

  init(period: Rational) { self.period = period }

  mutating func note(_ time: MediaTime) { last = time }

  /// The output samples between two refreshes.
  func step(_ sampleRate: Int) -> Rational { period * Rational(Int64(sampleRate)) }

  /// Returns the earliest time of a refresh that is still to come.
  func next(after now: MediaTime) -> MediaTime { max(now, last ?? now) }
}

/// The state of a player that decides what it shows next, for the parts that prepare it.
struct PlaybackOutlook: Sendable {
  let playhead: Playhead
  let refreshes: ScreenRefreshes
  let state: PlayerState
  let assets: [PlayerAsset]

  /// The run that was requested last.
  var lastRun: TransportRun { playhead.lastRun }
}

/// The relation between host time and the output sample that is heard.
///
/// The count of played samples is the clock, because a sound card's clock differs from the host's.
/// Between two reports of the sound card, the clock runs at the nominal sampling rate.
struct PlaybackClock: Sendable {
  let sampleRate: Int
  private var anchor: AudioSinkTiming
  /// False until the output plays its first sample.
  private(set) var isRunning: Bool

  /// Starts at sample 0.
  ///
  /// Pass false for `isRunning` if the output reports when it starts.
  init(sampleRate: Int, start: MediaTime, isRunning: Bool) {
    (self.sampleRate, self.isRunning) = (sampleRate, isRunning)
    anchor = AudioSinkTiming(sample: .zero, hostTime: start)
  }

  /// Returns the sample that is heard at a host time.
  func sample(at time: MediaTime) -> Rational {
    guard isRunning else { return anchor.sample }
    return max(.zero, anchor.sample + (time - anchor.hostTime) * Rational(Int64(sampleRate)))
  }

  /// Adjusts the clock to a position that the output reports.
  ///
  /// A difference of up to 5 ms is taken as jitter of the report, and corrected gradually. A larger
  /// difference is a gap in the playback, and corrected at once.
  mutating func follow(_ timing: AudioSinkTiming) {
    let error = timing.sample - sample(at: timing.hostTime)
    guard isRunning, error.magnitude <= Rational(Int128(sampleRate), over: 200) else {
      anchor = timing
      isRunning = true
      return
    }
    guard error != .zero else { return }
    // The correction is rounded to thousandths of a sample, so that the fractions stay short.
    let step = (try? (error * 1_000 / 16).rounded(.halfAwayFromZero)) ?? 0
    let sample = self.sample(at: timing.hostTime) + Rational(step, over: 1_000)
    let units = (try? (sample * 1_000).rounded(.halfAwayFromZero)) ?? 0
    anchor = AudioSinkTiming(sample: Rational(units, over: 1_000), hostTime: timing.hostTime)
  }

  /// Continues on the host's clock from the current position.
  mutating func release(at time: MediaTime) {
    anchor = AudioSinkTiming(sample: sample(at: time), hostTime: time)
    isRunning = true
  }
}

/// The clock by which a player shows frames and plays samples.
public protocol HostClock: Sendable {
  /// The current time.
  var now: MediaTime { get }

  /// Waits until a time; may return earlier.
  func sleep(until time: MediaTime)
}

/// The machine's monotonic clock, `CLOCK_MONOTONIC`, which also stamps captured frames.
public struct MonotonicHostClock: HostClock {
  /// Creates the clock.
  public init() {}

  /// The current time in nanoseconds.
  public var now: MediaTime { MediaTime(nanoseconds: MonotonicClock.nanoseconds()) }

  /// Sleeps until a time on this clock.
  public func sleep(until time: MediaTime) {
    MonotonicClock.sleep(untilMicroseconds: time.wholeMicroseconds)
  }
}
