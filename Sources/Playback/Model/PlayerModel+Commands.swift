// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

extension PlayerModel {
  /// The supported magnitudes of a rate.
  static let rates = Rational(1, over: 32)...Rational(32)
  /// The greatest denominator of a rate.
  static let largestDenominator: Int128 = 1_000_000

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
    let exact = clock.sample(at: time)
    let whole = (try? exact.rounded(.towardPositiveInfinity)) ?? 0
    let start = max(written, Int64(clamping: min(whole, Int128(TransportRun.end))))
    let run = transport.run(at: Rational(start))
    let begun = restart(played, now) ?? run.position(at: exact).time
    let late = (Rational(start) - exact) / Rational(Int64(sampleRate))
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
    let position = position(at: now)
    let limited = max(-100_000, min(100_000, count))
    if rate != .zero { report(.rate(.zero), now) }
    stepsBackward = count < 0
    let target = timeline.step(
      from: position.time, before: position.isBackward, by: limited)
    move(to: target, rate: .zero, now)
  }

  private mutating func move(to time: Rational, rate: Rational, _ now: MediaTime) {
    // At the end of a composition no frame begins, so the last frame is shown.
    begin(.zero, at: time, isBackward: time >= timeline.duration, isJump: true)
    seek = PendingSeek(rate: rate)
    change(.seek, now)
    finishSeek(now)
  }

  /// Ends a seek when its frame is decoded or is known to be undecodable.
  mutating func finishSeek(_ now: MediaTime) {
    guard state == .seeking, let seek else { return }
    let run = transport.last
    let frame = run.timeline.frame(at: run.origin, before: run.isBackward)
    if let frame, !needsNoDecoding(frame) { return }
    self.seek = nil
    report(.seekCompleted(run.origin), now)
    guard seek.rate != .zero else { return change(.ready, now) }
    begin(seek.rate, at: restart(seek.rate, now) ?? run.origin, isJump: true)
    change(.readyToPlay, now)
  }

  /// Returns true if a frame is decoded, or cannot be decoded.
  func needsNoDecoding(_ key: FrameKey) -> Bool {
    ring.needsNoDecoding(key) || failedAssets.contains(key.asset)
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
      let run = transport.last
      append(
        played, at: run.origin, from: max(run.start, written), isBackward: run.isBackward,
        isJump: run.isJump, run.timeline)
    default: return
    }
    if rate != before { report(.rate(rate), now) }
  }

  /// Replaces the composition.
  ///
  /// - Parameters:
  ///   - timeline: The new composition.
  ///   - keepsSource: True to continue at the same source time if the new composition plays it;
  ///     false to continue at the same composition time.
  ///   - now: The host time.
  mutating func replace(_ timeline: PlaybackTimeline, keepsSource: Bool, _ now: MediaTime) {
    guard state != .closed else { return }
    assets = timeline.assets
    let run = transport.run(at: Rational(written))
    let position = run.position(at: Rational(written))
    var time = position.time
    if keepsSource, let source = run.timeline.source(at: time, before: position.isBackward) {
      time = timeline.time(ofSource: source.seconds, asset: source.asset, near: time) ?? time
    }
    if let loop, loop.end > timeline.duration { self.loop = nil }
    let rate = transport.last.rate
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
    begin(transport.last.rate)
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
}
