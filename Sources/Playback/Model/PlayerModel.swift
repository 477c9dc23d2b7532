// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming

/// A player as a value, without threads or a clock: its commands, its state, and the parts that
/// move, decode and show.
///
/// Every command has the host time as its argument. A change takes effect at the first sample that
/// is not written yet.
struct PlayerModel: Sendable {
  /// A seek whose frame is not decoded yet.
  private struct PendingSeek: Sendable {
    /// The rate after the seek; zero for a pause.
    var rate: Rational
  }

  private(set) var state = PlayerState.paused
  private(set) var algorithm: AudioTimePitchAlgorithm
  var isMuted = false
  private var playhead: Playhead
  private var schedule: DecodeSchedule
  private var presenter: FramePresenter
  private var synthesis: PlayerSynthesis
  private var assets: [PlayerAsset]
  /// The requested rate.
  ///
  /// With `low-quality`, the player may use another rate.
  private var requestedRate = Rational.one
  private var loop: PlaybackLoop?
  /// Whether an audio output consumes samples.
  ///
  /// Without an output, a change takes effect at once.
  private var hasSink: Bool
  private var seek: PendingSeek?
  /// The number of repetitions of the current loop that were reported.
  private var loopCount = 0
  private var runCount = 1
  /// The identifier of the leader's last run; nil for a player that follows no other player.
  private var followedRun: Int?
  /// The distance from the leader with which its runs were copied.
  private var followedDistance = Rational.zero
  /// The events since the last ``takeEvents()``.
  private var events: [PlayerEvent] = []

  init(
    _ timeline: PlaybackTimeline, _ settings: PlayerSettings, sampleRate: Int, hasSink: Bool,
    now: MediaTime
  ) {
    assets = timeline.assets
    self.hasSink = hasSink
    algorithm = settings.algorithm
    schedule = DecodeSchedule(budget: settings.frameMemory)
    presenter = FramePresenter(period: settings.refreshRate.frameDuration.seconds)
    synthesis = PlayerSynthesis(settings.sampling)
    playhead = Playhead(
      TransportRun(
        id: 0, start: 0, origin: .zero, rate: .zero, isBackward: false, loop: nil, isJump: true,
        algorithm: settings.algorithm, timeline: timeline, sampleRate: sampleRate),
      start: now, isRunning: !hasSink)
    seek = PendingSeek(rate: .zero)
    state = .seeking
    // If the composition begins with a gap, or has no video, the seek ends here without waiting for
    // a frame.
    finishSeek(now)
  }

  // MARK: Observing

  /// The most recently set composition.
  var timeline: PlaybackTimeline { playhead.lastRun.timeline }

  /// The playback rate: the current one, or the one that a pending seek or scheduled start will
  /// use; zero in a pause.
  var rate: Rational {
    switch state {
    case .seeking: seek?.rate ?? .zero
    case .playing, .scheduled: playhead.lastRun.rate
    case .paused, .ended, .closed: .zero
    }
  }

  /// The range that repeats; nil for none.
  var loopRange: TimeRange? {
    // This cannot throw, because both ends came from a `MediaTime`.
    loop.flatMap { try? TimeRange(start: $0.start, end: $0.end) }
  }

  var ledger: PlaybackLedger { presenter.ledger }

  /// The memory that the decoded frames use, in bytes.
  var decodedFrameBytes: Int { schedule.byteCount }

  /// Returns the run and the position that are on screen at a host time.
  func shown(at time: MediaTime) -> (run: TransportRun, position: TransportRun.Position) {
    playhead.shown(at: time)
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
  private mutating func change(_ input: PlayerState.Input, _ now: MediaTime) {
    let next = state.next(input)
    guard next != state else { return }
    state = next
    report(.state(next), now)
  }

  // MARK: Time

  /// Brings the model up to a host time.
  ///
  /// Counts samples if there is no output, begins a scheduled start, and detects the end.
  mutating func advance(to now: MediaTime) {
    let (run, position) = playhead.shown(at: now)
    playhead.advance(to: now, countsSamples: !hasSink)
    let isLast = run.id == playhead.lastRun.id
    if state == .scheduled, isLast { change(.begin, now) }
    guard followedRun == nil, state == .playing, isLast else { return }
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
  private mutating func begin(
    _ rate: Rational, at time: Rational? = nil, isBackward: Bool? = nil, isJump: Bool = false,
    timeline: PlaybackTimeline? = nil
  ) {
    let position = nextPosition.position
    append(
      rate, at: time ?? position.time, from: playhead.nextSample,
      isBackward: isBackward ?? position.isBackward, isJump: isJump, timeline ?? self.timeline)
  }

  /// The run and the position of the first sample that is not written yet.
  private var nextPosition: (run: TransportRun, position: TransportRun.Position) {
    let sample = Rational(playhead.nextSample)
    let run = playhead.run(at: sample)
    return (run, run.position(at: sample))
  }

  /// Appends a run to the transport.
  private mutating func append(
    _ rate: Rational, at time: Rational, from start: Int64, isBackward: Bool, isJump: Bool,
    _ timeline: PlaybackTimeline
  ) {
    // A follower takes its runs from the leader.
    guard followedRun == nil else { return }
    let clamped = min(max(.zero, Self.short(time)), timeline.duration)
    playhead.append(
      TransportRun(
        id: runCount, start: start, origin: clamped, rate: rate,
        isBackward: rate == .zero ? isBackward : rate < .zero, loop: loop, isJump: isJump,
        algorithm: algorithm, timeline: timeline, sampleRate: playhead.sampleRate))
    runCount += 1
    loopCount = 0
    schedule.change()
  }

  /// Returns a time unchanged if it fits a `MediaTime`, and otherwise rounded to the nearest
  /// nanosecond.
  ///
  /// Without this, each change of speed would lengthen the fractions.
  private static func short(_ time: Rational) -> Rational {
    guard MediaTime(exactly: time) == nil else { return time }
    let units = (try? (time * 1_000_000_000).rounded(.halfAwayFromZero)) ?? 0
    return Rational(units, over: 1_000_000_000)
  }

  /// Returns the position that is on screen at a host time.
  func position(at time: MediaTime) -> TransportRun.Position { playhead.shown(at: time).position }

  // MARK: Commands

  /// The supported magnitudes of a rate.
  private static let rates = Rational(1, over: 32)...Rational(32)
  /// The greatest denominator of a rate.
  private static let largestDenominator: Int128 = 1_000_000

  /// Plays at the rate that was requested last.
  mutating func play(_ now: MediaTime) {
    // This cannot throw, because the rate was checked when it was set.
    try? setRate(requestedRate, now)
  }

  /// Sets the rate: zero pauses, and any other value plays.
  mutating func setRate(_ rate: Rational, _ now: MediaTime) throws(MediaError) {
    guard rate != .zero else { return pause(now) }
    try Self.check(rate)
    guard state != .closed else { return }
    let before = self.rate
    requestedRate = rate
    let played = supported(rate)
    if state == .seeking {
      seek?.rate = played
    } else {
      begin(played, at: restart(played, now), isJump: restart(played, now) != nil)
      change(.play, now)
    }
    if played != before { report(.rate(played), now) }
    finishSeek(now)
  }

  /// Pauses; the frame on screen stays.
  mutating func pause(_ now: MediaTime) {
    let before = rate
    switch state {
    case .seeking: seek?.rate = .zero
    case .playing, .scheduled:
      begin(.zero)
      change(.pause, now)
    case .paused, .ended, .closed: return
    }
    if before != .zero { report(.rate(.zero), now) }
  }

  /// Starts playback at a host time.
  ///
  /// If samples after that time are already written, playback begins after them, at the position
  /// that it would have reached by then.
  mutating func play(
    atHostTime time: MediaTime, rate: Rational, _ now: MediaTime
  ) throws(MediaError) {
    try Self.check(rate)
    guard state != .closed else { return }
    requestedRate = rate
    let played = supported(rate)
    let exact = playhead.sample(at: time)
    let whole = (try? exact.rounded(.towardPositiveInfinity)) ?? 0
    let start = max(playhead.nextSample, Int64(clamping: min(whole, Int128(TransportRun.end))))
    let run = playhead.run(at: Rational(start))
    let begun = restart(played, now) ?? run.position(at: exact).time
    let late = (Rational(start) - exact) / Rational(Int64(playhead.sampleRate))
    append(
      played, at: begun + played * late, from: start, isBackward: played < .zero, isJump: false,
      timeline)
    seek = nil
    change(.playLater, now)
    report(.rate(played), now)
  }

  /// Moves to a composition time.
  ///
  /// Playback waits until the frame is decoded, and then goes on at the same rate.
  mutating func seek(to time: Rational, isExact: Bool, _ now: MediaTime) {
    guard state != .closed else { return }
    let rate = self.rate
    let wanted = min(max(.zero, time), timeline.duration)
    let target = isExact ? wanted : nearestKeyFrame(to: wanted)
    move(to: target, rate: rate, now)
  }

  /// Pauses and moves by a number of frames, counted from the frame on screen.
  mutating func step(by count: Int, _ now: MediaTime) {
    guard state != .closed else { return }
    let target = stepTarget(count, now)
    if rate != .zero { report(.rate(.zero), now) }
    schedule.note(stepsBackward: count < 0)
    move(to: target, rate: .zero, now)
  }

  /// The composition time from the position to a frame, counted from the frame on screen.
  func stepDistance(_ count: Int, _ now: MediaTime) -> Rational {
    stepTarget(count, now) - position(at: now).time
  }

  private func stepTarget(_ count: Int, _ now: MediaTime) -> Rational {
    let position = position(at: now)
    return timeline.step(
      from: position.time, before: position.isBackward, by: max(-100_000, min(100_000, count)))
  }

  private mutating func move(to time: Rational, rate: Rational, _ now: MediaTime) {
    // At the end of a composition no frame begins, so the last frame is shown.
    begin(.zero, at: time, isBackward: time >= timeline.duration, isJump: true)
    seek = PendingSeek(rate: rate)
    change(.seek, now)
    finishSeek(now)
  }

  /// Ends a seek when its frame is decoded or is known to be undecodable.
  private mutating func finishSeek(_ now: MediaTime) {
    guard state == .seeking, let seek else { return }
    let run = playhead.lastRun
    let frame = run.timeline.frame(at: run.origin, before: run.isBackward)
    if let frame, !schedule.needsNoDecoding(frame) { return }
    self.seek = nil
    report(.seekCompleted(run.origin), now)
    guard seek.rate != .zero else { return change(.ready, now) }
    begin(seek.rate, at: restart(seek.rate, now) ?? run.origin, isJump: true)
    change(.readyToPlay, now)
  }

  /// Sets the range that repeats; nil for none.
  ///
  /// A position outside moves to the start of the range, or to its end in reverse.
  mutating func setLoop(_ range: TimeRange?, _ now: MediaTime) throws(MediaError) {
    guard let range else {
      loop = nil
      return refreshRun()
    }
    guard range.start >= .zero, range.start < range.end,
      range.end.seconds <= timeline.duration
    else {
      throw MediaError(
        .emptyRange,
        "the loop \(range.displayText) is empty or not inside the composition, which ends at "
          + "\(timeline.duration.displayText) s", ranges: [range])
    }
    loop = PlaybackLoop(start: range.start.seconds, end: range.end.seconds)
    let time = position(at: now).time
    guard time < range.start.seconds || time > range.end.seconds else { return refreshRun() }
    let target = rate < .zero ? range.end.seconds : range.start.seconds
    move(to: target, rate: rate, now)
  }

  /// Sets the pitch algorithm.
  ///
  /// With `low-quality`, the player uses the nearest rate that this algorithm supports.
  mutating func setAlgorithm(_ algorithm: AudioTimePitchAlgorithm, _ now: MediaTime) {
    guard algorithm != self.algorithm, state != .closed else { return }
    self.algorithm = algorithm
    report(.algorithm(algorithm), now)
    let before = rate
    let played = supported(requestedRate)
    switch state {
    case .seeking where before != .zero: seek?.rate = played
    case .playing: begin(played)
    case .scheduled:
      let run = playhead.lastRun
      append(
        played, at: run.origin, from: max(run.start, playhead.nextSample),
        isBackward: run.isBackward,
        isJump: run.isJump, run.timeline)
    default: return
    }
    if rate != before { report(.rate(rate), now) }
  }

  /// Replaces the composition.
  ///
  /// - Parameters:
  ///   - composition: The new composition.
  ///   - added: Assets that the player does not know yet.
  ///   - keepsSource: True to continue at the same source time if the new composition plays it;
  ///     false to continue at the same composition time.
  ///   - now: The host time.
  /// - Throws: `MediaError` with `.missingAsset` for an unknown source.
  mutating func replace(
    _ composition: Composition, adding added: [Asset], keepsSource: Bool, _ now: MediaTime
  ) throws(MediaError) {
    let known = Set(assets.map(\.asset.path))
    let new = added.filter { !known.contains($0.path) }.map(PlayerAsset.init)
    replace(
      try PlaybackTimeline(composition, assets: assets + new), keepsSource: keepsSource, now)
  }

  /// Replaces the composition.
  ///
  /// - Parameters:
  ///   - timeline: The new composition.
  ///   - keepsSource: True to continue at the same source time if the new composition plays it;
  ///     false to continue at the same composition time.
  ///   - now: The host time.
  private mutating func replace(_ timeline: PlaybackTimeline, keepsSource: Bool, _ now: MediaTime) {
    guard state != .closed else { return }
    assets = timeline.assets
    let (run, position) = nextPosition
    var time = position.time
    if keepsSource, let source = run.timeline.source(at: time, before: position.isBackward) {
      time = timeline.time(ofSource: source.seconds, asset: source.asset, near: time) ?? time
    }
    if let loop, loop.end > timeline.duration { self.loop = nil }
    let rate = playhead.lastRun.rate
    begin(
      rate, at: time, isBackward: position.isBackward, isJump: rate == .zero, timeline: timeline)
    report(.compositionReplaced, now)
    if rate == .zero, state != .ended {
      let next = self.rate
      change(.seek, now)
      seek = PendingSeek(rate: next)
    }
    finishSeek(now)
  }

  mutating func close(_ now: MediaTime) { change(.close, now) }

  /// Starts a new transport run at the current rate and position, so that changed settings take
  /// effect.
  private mutating func refreshRun() {
    guard state == .playing else { return }
    begin(playhead.lastRun.rate)
  }

  private static func check(_ rate: Rational) throws(MediaError) {
    guard rate.isValid, rates.contains(rate.magnitude), rate.denominator <= largestDenominator
    else { throw .rateOutOfRange(rate) }
  }

  /// Returns the rate that the pitch algorithm supports for a requested rate.
  private func supported(_ rate: Rational) -> Rational {
    guard algorithm == .lowQuality, let speed = Speed(exactly: rate.magnitude) else { return rate }
    let played = AudioRetimer.lowQualitySpeed(nearest: speed).fraction
    return rate < .zero ? -played : played
  }

  /// Returns the end of the composition from which to start over, if the position is already at the
  /// end that `rate` plays toward; otherwise nil.
  private func restart(_ rate: Rational, _ now: MediaTime) -> Rational? {
    guard state != .playing else { return nil }
    let time = position(at: now).time
    if rate > .zero, time >= timeline.duration { return loop?.start ?? .zero }
    if rate < .zero, time <= .zero { return loop?.end ?? timeline.duration }
    return nil
  }

  /// Returns the instant of the nearest key frame in the same segment.
  private func nearestKeyFrame(to time: Rational) -> Rational {
    let isAtEnd = time >= timeline.duration
    guard
      let segment = PlaybackTimeline.segment(of: timeline.video, at: time, before: isAtEnd),
      let content = segment.content, content.mapping.motion != .hold,
      let key = timeline.frame(at: time, before: isAtEnd),
      let table = timeline.assets[key.asset].asset.videoTrack?.frames
    else { return time }
    let isReversed = content.mapping.isReversed
    func instant(_ index: Int) -> Rational? {
      guard let edge = try? table.time(ofFrame: Int64(isReversed ? index + 1 : index)).seconds,
        content.mapping.sourceStart <= edge, edge <= content.mapping.sourceEnd
      else { return nil }
      let instant = content.mapping.nearInstant(ofSource: edge)
      return instant < timeline.duration ? instant : nil
    }
    let before = table.keyFrame(atOrBefore: key.frame)
    let after = table.keyFrame(after: key.frame)
    let candidates = [before, after].compactMap { $0.flatMap(instant) }
    return candidates.min { ($0 - time).magnitude < ($1 - time).magnitude } ?? time
  }

  // MARK: Frames

  /// The state that decides what is shown next.
  private var outlook: PlaybackOutlook {
    PlaybackOutlook(
      playhead: playhead, refreshes: presenter.refreshes, state: state, assets: assets)
  }

  /// Whether the last refresh showed what was due: a frame or a gap.
  var isCurrent: Bool { presenter.isCurrent }

  /// The asset of the last image that a refresh showed, and the asset's index.
  var shownAsset: (index: Int, asset: Asset)? {
    presenter.lastShown.map { ($0.key.asset, assets[$0.key.asset].asset) }
  }

  /// Returns the frame for a refresh, and counts the frames that came due since the last refresh.
  ///
  /// Nil in a gap, and before the first frame is decoded.
  mutating func frame(at time: MediaTime) -> PlayerFrame? {
    advance(to: time)
    return presenter.frame(at: time, playhead, state, assets, &schedule, synthesis)
  }

  /// Returns the next frames to decode, with their asset; nil if all frames that are needed soon are
  /// decoded.
  mutating func nextJob(_ now: MediaTime) -> (job: DecodeJob, asset: Asset)? {
    schedule.nextJob(outlook, now).map { ($0, assets[$0.asset].asset) }
  }

  /// Returns true if a job should continue, and false if frames of other jobs are needed sooner.
  mutating func isNeeded(_ job: DecodeJob, _ now: MediaTime) -> Bool {
    schedule.isNeeded(job, outlook, now)
  }

  /// Adds a frame that a job decoded.
  ///
  /// - Returns: True if the job should continue.
  mutating func insert(
    _ image: MediaFrame, for key: FrameKey, of job: DecodeJob, _ now: MediaTime
  ) -> Bool {
    let isAdded = schedule.insert(image, for: key, of: job, isReverse: rate < .zero)
    if job.frames.contains(key.frame) { finishSeek(now) }
    return isAdded && isNeeded(job, now)
  }

  /// Ends a job.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - decoded: The frames that the decoder returned; nil if the job was stopped before its end.
  ///   - now: The host time.
  mutating func finish(_ job: DecodeJob, decoded: Set<Int>?, _ now: MediaTime) {
    guard let decoded else { return }
    let missing = job.frames.filter { !decoded.contains($0) }
    schedule.fail(missing.map { FrameKey(asset: job.asset, frame: $0) })
    for index in missing {
      report(.undecodableFrame(path: assets[job.asset].asset.path, index: index), now)
    }
    finishSeek(now)
  }

  /// Marks an asset as unreadable.
  mutating func fail(_ job: DecodeJob, _ error: MediaError, _ now: MediaTime) {
    schedule.fail(asset: job.asset)
    report(.fileFailed(error), now)
    finishSeek(now)
  }

  /// Whether slow playback shows synthesized frames.
  var synthesizesFrames: Bool { synthesis.isOn }

  /// Returns the next frame to synthesize; nil if none is needed soon, or can be made yet.
  func nextSynthesis(
    _ now: MediaTime
  ) -> (instant: PlayerSynthesis.Instant, job: SynthesisJob)? {
    synthesis.next(outlook, schedule, now)
  }

  /// Adds a synthesized frame, or records why none could be made.
  mutating func add(
    _ result: SynthesisResult, at instant: PlayerSynthesis.Instant, cost: Rational
  ) {
    synthesis.add(result, at: instant, cost: cost)
  }

  // MARK: Audio

  /// Samples to render: consecutive parts, each from one run of the transport.
  struct RenderOrder: Sendable {
    let parts: [Playhead.Part]
    let isMuted: Bool
  }

  /// Marks the next samples as written, so that commands no longer change them, and returns what
  /// they contain.
  mutating func takeOrder(_ count: Int) -> RenderOrder {
    RenderOrder(parts: playhead.take(count), isMuted: isMuted)
  }

  /// Whether an audio output consumes samples.
  var isHeard: Bool { hasSink }

  /// Adjusts the clock to a position that the output reports.
  mutating func follow(_ timing: AudioSinkTiming) {
    if hasSink { playhead.follow(timing) }
  }

  /// Continues without the audio output, which has failed.
  mutating func loseSink(_ error: MediaError, _ now: MediaTime) {
    hasSink = false
    playhead.release(at: now)
    report(.audioFailed(error), now)
  }

  // MARK: Leader and follower

  /// The part of a player's state that its followers copy.
  struct LeaderState: Sendable {
    fileprivate let playhead: Playhead
    fileprivate let isPlaying: Bool
    fileprivate let stepsBackward: Bool
  }

  var leaderState: LeaderState {
    LeaderState(
      playhead: playhead, isPlaying: state == .playing, stepsBackward: schedule.stepsBackward)
  }

  /// Copies the clock and the transport of the leader.
  ///
  /// Both players then always show frames of the same instant. In this player's composition, these
  /// instants are later by `distance` seconds.
  mutating func follow(_ leader: LeaderState, shiftedBy distance: Rational) {
    guard state != .closed else { return }
    let last = leader.playhead.lastRun.id
    let isNew = followedRun != last || followedDistance != distance
    playhead.follow(leader.playhead, shiftedBy: distance, onto: timeline, isNew: isNew)
    schedule.note(stepsBackward: leader.stepsBackward)
    state = leader.isPlaying ? .playing : .paused
    seek = nil
    guard isNew else { return }
    (followedRun, followedDistance) = (last, distance)
    schedule.change()
  }
}
