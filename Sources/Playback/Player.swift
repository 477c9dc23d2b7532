// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankEditing
public import OvercrankMediaCore
public import OvercrankRetiming

/// A player without a window.
///
/// It plays an asset or a composition at any rate, in both directions, with audio.
///
/// A display asks for the frame of each refresh with ``frame(at:)``; audio goes to the settings'
/// ``AudioSink``. Both follow one clock: the samples that the sink has played, or the host's clock
/// without a sink. A change of rate, direction or composition takes effect at the first sample that
/// is not written yet, so audio and frames change together, without a gap.
///
/// All positions are exact. They are computed from the last command and not by adding steps, so
/// playback does not drift.
///
/// Every method may be called from any thread and returns at once. The state machine is drawn at
/// ``PlayerState``.
///
/// The counterpart of `AVPlayer`.
public final class Player: Sendable {
  /// How exactly a seek finds its frame.
  public enum SeekTolerance: Hashable, Sendable {
    /// Shows the frame at exactly the requested time.
    case exact
    /// Shows the nearest key frame, which is decoded soonest. Use it while a slider is dragged.
    case nearestKeyFrame
  }

  /// The position at which playback continues after the composition was replaced.
  public enum EditPosition: Hashable, Sendable {
    /// Continues at the same source time, if the new composition plays it.
    case sameSource
    /// Continues at the same composition time.
    case sameTime
  }

  let core: PlayerCore
  private let settings: PlayerSettings
  private let sampleRate: Int
  /// The format of the audio output; nil without audio.
  public let audioFormat: PlayerAudioFormat?
  /// The reason why audio is not played; nil if audio is played or no sink was given.
  public let audioError: MediaError?

  /// Creates a player of a whole asset, paused at its start.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an asset of zero duration, `.outOfMemory`.
  public convenience init(
    _ asset: Asset, settings: PlayerSettings = PlayerSettings()
  ) throws(MediaError) {
    try self.init(Composition(try asset.mediaSource()), of: [asset], settings: settings)
  }

  /// Creates a player of a composition, paused at its start.
  ///
  /// - Parameters:
  ///   - composition: The composition.
  ///   - assets: The assets that the composition plays.
  ///   - settings: The settings.
  /// - Throws: `MediaError` with `.missingAsset` for a source that is not among the assets,
  ///   `.outOfMemory`.
  public init(
    _ composition: Composition, of assets: [Asset], settings: PlayerSettings = PlayerSettings()
  ) throws(MediaError) {
    let timeline = try PlaybackTimeline(composition, assets: assets.map(PlayerAsset.init))
    let format = timeline.audioFormat
    var (sink, failure) = (settings.audioSink, MediaError?.none)
    do throws(MediaError) {
      if let sink, let format {
        try format.check()
        try sink.open(sampleRate: format.sampleRate, channelCount: format.channelCount)
      } else {
        sink = nil
      }
    } catch {
      failure = error
      sink = nil
    }
    audioFormat = sink == nil ? nil : format
    audioError = failure
    let used = format ?? PlayerAudioFormat(sampleRate: 48_000, channelCount: 1)
    self.settings = settings
    sampleRate = used.sampleRate
    let model = PlayerModel(
      timeline, settings, sampleRate: used.sampleRate, hasSink: sink != nil,
      now: settings.clock.now)
    core = PlayerCore(model, settings.clock, sink, used)
    if settings.hasThreads { try core.start() }
    core.perform { _, _ in }
  }

  /// Creates a player that follows another player; it has the same settings but no audio.
  init(
    following leader: Player, _ timeline: PlaybackTimeline, distance: Rational
  ) throws(MediaError) {
    (audioFormat, audioError) = (nil, nil)
    (settings, sampleRate) = (leader.settings, leader.sampleRate)
    let model = PlayerModel(
      timeline, settings, sampleRate: sampleRate, hasSink: false, now: settings.clock.now)
    core = PlayerCore(
      model, settings.clock, nil, PlayerAudioFormat(sampleRate: sampleRate, channelCount: 1),
      following: PlayerCore.Leader(leader.core, distance: distance))
    if settings.hasThreads { try core.start() }
    core.perform { _, _ in }
  }

  deinit { core.close() }

  /// Ends playback and releases the audio output and the decoders.
  ///
  /// Waits for the frame that is being decoded. Later commands have no effect.
  public func close() { core.close() }

  // MARK: Playing

  /// The rate: composition seconds per second, negative in reverse and zero in a pause.
  public var rate: Rational { core.perform { model, _ in model.rate } }

  /// Sets the rate, which also plays or pauses.
  ///
  /// If the position is at the end that the rate plays toward, playback starts over from the other
  /// end. With `low-quality`, the player uses the nearest rate that the algorithm supports.
  ///
  /// - Parameter rate: Zero, or from 1/32 to 32 in either direction.
  /// - Throws: `MediaError` with `.rateOutOfRange`.
  public func setRate(_ rate: Rational) throws(MediaError) {
    try core.perform { (model, now) throws(MediaError) in try model.setRate(rate, now) }
  }

  /// Plays at the last rate that was set; initially 1.
  public func play() {
    core.perform { model, now in model.play(now) }
  }

  /// Starts playback at a host time and a rate.
  ///
  /// Two players with one clock start together this way. If that time has already passed, playback
  /// begins at once, at the position that it would have reached by now.
  ///
  /// - Parameters:
  ///   - time: The time on the player's clock.
  ///   - rate: From 1/32 to 32 in either direction.
  /// - Throws: `MediaError` with `.rateOutOfRange`.
  public func play(
    atHostTime time: MediaTime, rate: Rational = .one
  ) throws(MediaError) {
    try core.perform { (model, now) throws(MediaError) in
      try model.play(atHostTime: time, rate: rate, now)
    }
  }

  /// Pauses; the frame on screen stays.
  public func pause() { core.perform { model, now in model.pause(now) } }

  /// Moves to a composition time; a time outside the composition is clamped to its nearer end.
  ///
  /// The playback position stands still until the frame is decoded, which
  /// ``PlayerEvent/Kind/seekCompleted(_:)`` reports. Playback then goes on at the same rate.
  public func seek(to time: MediaTime, tolerance: SeekTolerance = .exact) {
    core.perform { model, now in
      model.seek(to: time.seconds, isExact: tolerance == .exact, now)
    }
  }

  /// Pauses and moves by a number of frames, counted from the frame on screen.
  ///
  /// A step past an end of the composition shows the first or the last frame.
  public func step(by count: Int) { core.perform { model, now in model.step(by: count, now) } }

  /// Repeats a range of the composition with an exact period, in either direction; nil for none.
  ///
  /// A position outside the range moves into it. If a new composition does not contain the loop,
  /// the loop ends.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for a range that is empty or not inside the
  ///   composition.
  public func setLoop(_ range: TimeRange?) throws(MediaError) {
    try core.perform { (model, now) throws(MediaError) in try model.setLoop(range, now) }
  }

  /// The range that repeats; nil for none.
  public var loop: TimeRange? {
    core.perform { model, _ in model.loopRange }
  }

  // MARK: Settings

  /// The pitch algorithm for rates other than 1; may be changed at any time.
  public var algorithm: AudioTimePitchAlgorithm {
    get { core.perform { model, _ in model.algorithm } }
    set { core.perform { model, now in model.setAlgorithm(newValue, now) } }
  }

  /// Whether audio is muted; a change fades within 5 ms.
  public var isMuted: Bool {
    get { core.perform { model, _ in model.isMuted } }
    set { core.perform { model, _ in model.isMuted = newValue } }
  }

  /// The composition that is played.
  public var composition: Composition {
    core.perform { model, _ in model.timeline.composition }
  }

  /// Replaces the composition, also during playback.
  ///
  /// - Parameters:
  ///   - composition: The edited composition.
  ///   - assets: Assets that the player does not know yet.
  ///   - position: The position to continue at.
  /// - Throws: `MediaError` with `.missingAsset` for an unknown source.
  public func replaceComposition(
    _ composition: Composition, addingAssets assets: [Asset] = [],
    continuingAt position: EditPosition = .sameSource
  ) throws(MediaError) {
    try core.perform { (model, now) throws(MediaError) in
      try model.replace(
        composition, adding: assets, keepsSource: position == .sameSource, now)
    }
  }

  // MARK: Observing

  /// The state.
  public var state: PlayerState { core.perform { model, _ in model.state } }

  /// The events from now on, as a stream for one listener.
  public var events: AsyncStream<PlayerEvent> { core.events.events() }

  /// The numbers of frames that were shown, skipped by rate, and late.
  public var ledger: PlaybackLedger { core.perform { model, _ in model.ledger } }

  /// The memory used by decoded frames, in bytes.
  ///
  /// Synthesized frames, at most 4, are not included.
  public var decodedFrameBytes: Int { core.perform { model, _ in model.decodedFrameBytes } }

  /// The position that is on screen and heard now.
  public var currentTime: PlayerTime { time(at: nil) }

  /// Returns the position that is on screen and heard at a time on the player's clock.
  ///
  /// Later commands may change the position of a time that has not come yet.
  public func time(at hostTime: MediaTime) -> PlayerTime { time(at: .some(hostTime)) }

  private func time(at hostTime: MediaTime?) -> PlayerTime {
    let (position, timeline) = core.perform { model, now in
      let (run, position) = model.shown(at: hostTime ?? now)
      return (position, run.timeline)
    }
    return timeline.time(at: position)
  }

  /// Returns the frame for a refresh of the screen, and counts it in the ledger.
  ///
  /// Pass the time at which the refresh becomes visible, not the time of the call. From these
  /// times, the player predicts the next refreshes and decodes their frames in advance. Call it
  /// from one thread.
  ///
  /// - Parameter time: The time on the player's clock; not before that of the last call.
  /// - Returns: The frame of that time. If it is not decoded yet, the last decoded frame that
  ///   playback passed in the same segment or, if there is none, the frame on screen. Nil in a gap,
  ///   and before the first frame is decoded.
  public func frame(at time: MediaTime) -> PlayerFrame? {
    core.perform { model, _ in model.frame(at: time) }
  }

  /// True if the last call of ``frame(at:)`` returned the frame that was due, or nil for a gap;
  /// false if the due frame was not decoded yet.
  public var isFrameCurrent: Bool { core.perform(wakes: false) { model, _ in model.isCurrent } }

  // MARK: Without threads

  /// Decodes all frames that are needed soon, on the caller's thread.
  package func decodePending() { while core.decodeNext() {} }

  /// Synthesizes all frames that are needed soon, on the caller's thread.
  package func synthesizePending() { while core.synthesizeNext() {} }

  /// Decodes the frames that are needed next, in one pass on the caller's thread.
  ///
  /// Returns true if frames were needed, and false otherwise.
  package func decodeNext() -> Bool { core.decodeNext() }

  /// The number of packets that were sent to decoders so far.
  package var sentPacketCount: Int { core.sentPacketCount }

  /// Renders as many samples as the output has space for, on the caller's thread.
  package func renderAudio() { core.renderAll() }

  /// Creates a player that shows another composition beside this one, on the same clock.
  ///
  /// The new player has no audio, and commands to it have no effect. It follows every command to
  /// this player: rate, seek, step, loop and pause. After the end of its own composition, the new
  /// player shows the last frame, and before the start the first frame.
  ///
  /// - Parameters:
  ///   - composition: The composition of the new player.
  ///   - assets: The assets that it plays.
  ///   - origin: The time in `composition` that is shown together with `ownOrigin`.
  ///   - ownOrigin: The time in this player's composition.
  /// - Returns: The new player.
  /// - Throws: `MediaError` with `.missingAsset` for a source that is not among the assets,
  ///   `.outOfMemory`.
  public func makeFollower(
    _ composition: Composition, of assets: [Asset], origin: MediaTime = .zero,
    besideOrigin ownOrigin: MediaTime = .zero
  ) throws(MediaError) -> Player {
    let timeline = try PlaybackTimeline(composition, assets: assets.map(PlayerAsset.init))
    return try Player(following: self, timeline, distance: origin - ownOrigin)
  }

  /// Lets a follower show its composition further ahead of the player that it follows.
  ///
  /// A player that follows none is not changed. See ``makeFollower(_:of:origin:besideOrigin:)``.
  ///
  /// - Parameter seconds: The time to add, in seconds; negative to fall behind.
  public func shift(by seconds: Rational) { core.shift(by: seconds) }

  /// Lets a follower show a frame that is a number of its own frames from the frame on screen.
  ///
  /// - Returns: False if the follower is not moved, because its composition ends here.
  package func shift(byFrames count: Int) -> Bool {
    let distance = core.perform(wakes: false) { model, now in model.stepDistance(count, now) }
    shift(by: distance)
    return distance != .zero
  }

  /// A frame of one of the player's assets.
  package struct FrameReference: Sendable {
    package let asset: Asset
    /// The index in presentation order, from 0.
    package let index: Int
  }

  /// The composition time at which the frame on screen begins; without video, the current time.
  package var frameStart: Rational {
    core.perform(wakes: false) { model, now in
      let position = model.position(at: now)
      let shown = model.timeline.presentation(at: position.time, before: position.isBackward)
      return shown?.start ?? position.time
    }
  }

  /// Returns the frame that playback shows at a composition time; nil in a gap.
  package func frameReference(at time: Rational) -> FrameReference? {
    core.perform(wakes: false) { model, _ in
      let timeline = model.timeline
      return timeline.frame(at: time, before: time >= timeline.duration).map {
        FrameReference(asset: timeline.assets[$0.asset].asset, index: $0.frame)
      }
    }
  }
}
