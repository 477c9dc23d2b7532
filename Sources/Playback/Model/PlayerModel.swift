// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming

/// A player as a value, without threads or a clock: transport, decoded frames, ledger and state.
///
/// Every command has the host time as its argument. A change takes effect at the first sample that
/// is not written yet.
struct PlayerModel: Sendable {
  /// A seek whose frame is not decoded yet.
  struct PendingSeek: Sendable {
    /// The rate after the seek; zero for a pause.
    var rate: Rational
  }

  /// The frame that was due at the last refresh, and the playback position at that refresh.
  struct Presented: Sendable {
    let run: Int
    let timeline: PlaybackTimeline
    let position: TransportRun.Position
    let frame: FrameKey?
  }

  var transport: Transport
  var clock: PlaybackClock
  var state = PlayerState.paused
  /// The requested rate.
  ///
  /// With `low-quality`, the player may use another rate.
  var requestedRate = Rational.one
  var algorithm: AudioTimePitchAlgorithm
  var isMuted = false
  var loop: PlaybackLoop?
  /// The number of samples rendered for the output so far.
  var written: Int64 = 0
  /// Whether an audio output consumes samples.
  ///
  /// Without an output, a change takes effect at once.
  var hasSink: Bool
  var seek: PendingSeek?
  var assets: [PlayerAsset]
  var ring: FrameRing
  var ledger = PlaybackLedger()
  var synthesis: PlayerSynthesis
  var presented: Presented?
  /// The last image that a refresh showed.
  var lastShown: (key: FrameKey, image: MediaFrame)?
  /// The time of the last refresh, and the seconds between two refreshes.
  var lastRefresh: MediaTime?
  let refreshPeriod: Rational
  /// Increases whenever different frames become needed, so that a running job is judged again.
  var generation = 0
  /// The last decision whether a running job is still needed.
  var judgment: JobJudgment?
  /// The last frame that the running job returned; nil before the first.
  var jobPosition: Int?
  /// For each needed frame, the output sample of the refresh that shows it, as of the last update
  /// of the list of needed frames.
  var deadlines: [FrameKey: Rational] = [:]
  /// The range of output samples in which nothing needs to be decoded; nil if unknown.
  var idle: IdleSpan?
  /// The number of repetitions of the current loop that were reported.
  var loopCount = 0
  var runCount = 1
  /// The direction of the last step; more frames are decoded in advance in this direction.
  var stepsBackward = true
  /// The identifier of the leader's last run; nil for a player that follows no other player.
  var followedRun: Int?
  /// Assets that cannot be read.
  var failedAssets: Set<Int> = []
  /// The events since the last ``takeEvents()``.
  private var events: [PlayerEvent] = []
  let sampleRate: Int

  init(
    _ timeline: PlaybackTimeline, _ settings: PlayerSettings, sampleRate: Int, hasSink: Bool,
    now: MediaTime
  ) {
    assets = timeline.assets
    self.sampleRate = sampleRate
    self.hasSink = hasSink
    algorithm = settings.algorithm
    refreshPeriod = settings.refreshRate.frameDuration.seconds
    ring = FrameRing(budget: settings.frameMemory)
    synthesis = PlayerSynthesis(settings.sampling)
    clock = PlaybackClock(sampleRate: sampleRate, start: now, isRunning: !hasSink)
    transport = Transport(
      TransportRun(
        id: 0, start: 0, origin: .zero, rate: .zero, isBackward: false, loop: nil, isJump: true,
        algorithm: settings.algorithm, timeline: timeline, sampleRate: sampleRate))
    seek = PendingSeek(rate: .zero)
    state = .seeking
    // If the composition begins with a gap, or has no video, the seek ends here without waiting for
    // a frame.
    finishSeek(now)
  }

  /// The most recently set composition.
  var timeline: PlaybackTimeline { transport.last.timeline }

  /// The playback rate: the current one, or the one that a pending seek or scheduled start will
  /// use; zero in a pause.
  var rate: Rational {
    switch state {
    case .seeking: seek?.rate ?? .zero
    case .playing, .scheduled: transport.last.rate
    case .paused, .ended, .closed: .zero
    }
  }

  mutating func takeEvents() -> [PlayerEvent] {
    defer { events = [] }
    return events
  }

  mutating func report(_ kind: PlayerEvent.Kind, _ now: MediaTime) {
    // Nothing is reported after the change to the closed state, although a thread may still try.
    if state == .closed {
      guard case .state = kind else { return }
    }
    events.append(PlayerEvent(kind: kind, hostTime: now))
  }

  /// Applies an input to the state machine, and reports a change of state.
  mutating func change(_ input: PlayerState.Input, _ now: MediaTime) {
    let next = state.next(input)
    guard next != state else { return }
    state = next
    report(.state(next), now)
  }

  /// Brings the model up to a host time.
  ///
  /// Counts samples if there is no output, begins a scheduled start, and detects the end.
  mutating func advance(to now: MediaTime) {
    let heard = clock.sample(at: now)
    if !hasSink {
      let whole = (try? heard.rounded(.towardPositiveInfinity)) ?? 0
      written = max(written, Int64(clamping: whole))
    }
    let run = transport.shownRun(at: heard)
    transport.forget(before: heard)
    let position = run.position(at: heard)
    if state == .scheduled, run.id == transport.last.id { change(.begin, now) }
    guard followedRun == nil, state == .playing, run.id == transport.last.id else { return }
    if position.loopCount > loopCount {
      loopCount = position.loopCount
      report(.looped(loopCount), now)
    }
    if position.isAtEnd {
      begin(.zero, at: position.time, isBackward: run.isBackward ? false : true)
      change(.reachEnd, now)
    }
  }

  /// Starts a run of the transport at the first sample that is not written yet.
  ///
  /// - Parameters:
  ///   - rate: The rate of the run.
  ///   - time: The composition time; nil to continue at the current position.
  ///   - isBackward: The direction that a pause keeps; nil for that of the run before.
  ///   - isJump: Whether the frame changes at once.
  ///   - timeline: A new composition; nil to keep the current one.
  mutating func begin(
    _ rate: Rational, at time: Rational? = nil, isBackward: Bool? = nil, isJump: Bool = false,
    timeline: PlaybackTimeline? = nil
  ) {
    let run = transport.run(at: Rational(written))
    let position = run.position(at: Rational(written))
    append(
      rate, at: time ?? position.time, from: written,
      isBackward: isBackward ?? position.isBackward, isJump: isJump, timeline ?? self.timeline)
  }

  /// Appends a run to the transport.
  mutating func append(
    _ rate: Rational, at time: Rational, from start: Int64, isBackward: Bool, isJump: Bool,
    _ timeline: PlaybackTimeline
  ) {
    // A follower takes its runs from the leader.
    guard followedRun == nil else { return }
    let clamped = min(max(.zero, Self.short(time)), timeline.duration)
    transport.append(
      TransportRun(
        id: runCount, start: start, origin: clamped, rate: rate,
        isBackward: rate == .zero ? isBackward : rate < .zero, loop: loop, isJump: isJump,
        algorithm: algorithm, timeline: timeline, sampleRate: sampleRate))
    runCount += 1
    loopCount = 0
    generation += 1
    ring.resetLimit()
  }

  /// Returns a time unchanged if it fits a `MediaTime`, and otherwise rounded to the nearest
  /// nanosecond.
  ///
  /// Without this, each change of speed would lengthen the fractions.
  static func short(_ time: Rational) -> Rational {
    guard MediaTime(exactly: time) == nil else { return time }
    let units = (try? (time * 1_000_000_000).rounded(.halfAwayFromZero)) ?? 0
    return Rational(units, over: 1_000_000_000)
  }

  /// Returns the position that is on screen at a host time.
  func position(at time: MediaTime) -> TransportRun.Position {
    let heard = clock.sample(at: time)
    return transport.shownRun(at: heard).position(at: heard)
  }
}
