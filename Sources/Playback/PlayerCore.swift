// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRetiming
import Synchronization

/// The machinery of a player: its model behind a lock, and its threads.
///
/// The threads retain the core and not the ``Player``, so a ``Player`` that is released can end
/// them.
final class PlayerCore: Sendable {
  let clock: any HostClock
  let events = EventHub<PlayerEvent>(capacity: 4_096)
  /// The player that another player follows.
  final class Leader: Sendable {
    fileprivate let core: PlayerCore
    /// The follower's composition time minus the leader's, in seconds.
    private let distance: Mutex<Rational>

    init(_ core: PlayerCore, distance: Rational) {
      self.core = core
      self.distance = Mutex(distance)
    }

    fileprivate func shift(by seconds: Rational) { distance.withLock { $0 = $0 + seconds } }

    /// The present state of the leader.
    fileprivate var state: PlayerModel.LeaderState {
      core.perform(wakes: false) { model, _ in model.leaderState }
    }

    fileprivate func lead(_ model: inout PlayerModel, _ state: PlayerModel.LeaderState?) {
      if let state { model.follow(state, shiftedBy: distance.withLock { $0 }) }
    }
  }

  private let model: Mutex<PlayerModel>
  private let sink: (any AudioSink)?
  /// The player that this player follows; nil if it follows none.
  private let leader: Leader?
  private let audio: Mutex<PlayerAudio>
  private let decoder = Mutex(OpenDecoders())
  private let synthesizer = Mutex(FrameSynthesizer())
  /// Whether slow playback shows synthesized frames.
  private let synthesizes: Bool
  private let work = DispatchSemaphore(value: 0)
  private let synthesisWork = DispatchSemaphore(value: 0)
  private let watchWork = DispatchSemaphore(value: 0)
  private let isClosed = Atomic<Bool>(false)
  private let threads = Mutex<[BlockingThread]>([])

  /// The greatest number of samples that are rendered at once.
  private static let blockLength = 4_096

  init(
    _ model: PlayerModel, _ clock: any HostClock, _ sink: (any AudioSink)?,
    _ format: PlayerAudioFormat, following leader: Leader? = nil
  ) {
    synthesizes = model.synthesizesFrames
    self.model = Mutex(model)
    (self.clock, self.sink, self.leader) = (clock, sink, leader)
    audio = Mutex(PlayerAudio(format))
  }

  /// Runs a command on the model at the current time, and reports its events.
  ///
  /// `wakes` is false for a query, which gives the threads nothing to do.
  @discardableResult
  func perform<Value: Sendable, Failure: Error>(
    wakes: Bool = true,
    _ body: (_ model: inout PlayerModel, _ now: MediaTime) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let timing = sink?.timing
    let (now, state) = (clock.now, leader?.state)
    defer {
      if wakes {
        work.signal()
        if synthesizes { synthesisWork.signal() }
        if sink == nil { watchWork.signal() }
      }
    }
    return try model.withLock { (model) throws(Failure) in
      if let timing { model.follow(timing) }
      leader?.lead(&model, state)
      model.advance(to: now)
      defer { for event in model.takeEvents() { events.send(event) } }
      return try body(&model, now)
    }
  }

  /// Moves the composition of a follower against that of its leader.
  func shift(by seconds: Rational) {
    leader?.shift(by: seconds)
    perform { _, _ in }
  }

  // MARK: Threads

  /// Starts the threads.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot create a thread.
  func start() throws(MediaError) {
    do throws(CallFailure) {
      var started = [try BlockingThread { self.decodeUntilClosed() }]
      if synthesizes { started.append(try BlockingThread { self.synthesizeUntilClosed() }) }
      if sink != nil {
        started.append(try BlockingThread(urgency: .realTime) { self.renderUntilClosed() })
      } else {
        started.append(try BlockingThread { self.watchUntilClosed() })
      }
      threads.withLock { [started] in $0 = started }
    } catch {
      throw MediaError(
        error, at: .resources, message: "the player cannot start a thread: \(error)")
    }
  }

  /// Ends the threads and closes the output.
  func close() {
    guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
    perform { $0.close($1) }
    work.signal()
    synthesisWork.signal()
    for thread in threads.withLock({ $0 }) { thread.join() }
    sink?.close()
    events.finish()
  }

  private var isOpen: Bool { !isClosed.load(ordering: .acquiring) }

  private func decodeUntilClosed() {
    while isOpen {
      work.wait()
      // Takes all pending signals, because one pass serves them all.
      while work.wait(timeout: .now()) == .success {}
      while isOpen, decodeNext() {}
    }
  }

  private func synthesizeUntilClosed() {
    while isOpen {
      synthesisWork.wait()
      while synthesisWork.wait(timeout: .now()) == .success {}
      while isOpen, synthesizeNext() {}
    }
  }

  /// Without an output, polls for the end of the composition while the position moves.
  private func watchUntilClosed() {
    while isOpen {
      while watchWork.wait(timeout: .now()) == .success {}
      if (leader?.core ?? self).isStill {
        // A command to the leader of a follower gives no signal here, so the wait is short.
        _ = watchWork.wait(timeout: .now() + .milliseconds(100))
      } else {
        let next = MediaTime(exactly: clock.now.seconds + Rational(1, over: 100))
        clock.sleep(until: next ?? clock.now)
        watch()
      }
    }
  }

  /// Whether the position stays as it is until the next command.
  private var isStill: Bool { model.withLock { [.paused, .ended].contains($0.state) } }

  private func renderUntilClosed() {
    while isOpen {
      do throws(MediaError) {
        try sink?.waitUntilWritable()
        try renderOnce()
      } catch { return loseSink(error) }
    }
  }

  // MARK: Work

  /// Decodes the frames that are needed next, in one pass.
  ///
  /// - Returns: True if frames were needed, and false otherwise.
  func decodeNext() -> Bool {
    let (now, state) = (clock.now, leader?.state)
    let next = model.withLock { model in
      leader?.lead(&model, state)
      return model.nextJob(now)
    }
    guard let (job, asset) = next else {
      prepareDecoder()
      return false
    }
    decoder.withLock { decoder in
      var decoded: Set<Int> = []
      var isWhole = true
      do throws(MediaError) {
        let isNeeded = {
          isWhole = isWhole && self.perform(wakes: false) { $0.isNeeded(job, $1) }
          return isWhole
        }
        try decoder.run(job, of: asset, while: isNeeded) { index, image in
          decoded.insert(index)
          isWhole = insert(image, FrameKey(asset: job.asset, frame: index), job)
          return isWhole
        }
        let found = isWhole ? decoded : nil
        perform { [found] in $0.finish(job, decoded: found, $1) }
      } catch { perform { [error] in $0.fail(job, error, $1) } }
    }
    return true
  }

  /// Synthesizes the frame that is needed next.
  ///
  /// - Returns: True if a frame was needed, and false otherwise.
  func synthesizeNext() -> Bool {
    let (start, state) = (clock.now, leader?.state)
    let next = model.withLock { model in
      leader?.lead(&model, state)
      return model.nextSynthesis(start)
    }
    guard let next else { return false }
    let result = synthesizer.withLock { $0.result(of: next.job) }
    perform(wakes: false) { [result] model, now in
      model.add(result, at: next.instant, cost: now - start)
    }
    return true
  }

  /// Opens the multithreaded decoder of the asset on screen in advance.
  private func prepareDecoder() {
    guard let (index, asset) = model.withLock({ $0.shownAsset }) else { return }
    decoder.withLock { $0.prepare(index, asset) }
  }

  /// The number of packets sent to decoders; waits for the frame that is being decoded.
  var sentPacketCount: Int { decoder.withLock { $0.sentPacketCount } }
  /// The number of open decoders; waits for the frame that is being decoded.
  var openDecoderCount: Int { decoder.withLock { $0.openCount } }

  private func insert(_ image: MediaFrame, _ key: FrameKey, _ job: DecodeJob) -> Bool {
    perform { $0.insert(image, for: key, of: job, $1) }
  }

  /// Renders as many samples as the output has space for.
  func renderAll() {
    do throws(MediaError) {
      while let sink, sink.writableCount > 0, hasSink { try renderOnce() }
    } catch { loseSink(error) }
    watch()
  }

  private var hasSink: Bool { model.withLock { $0.isHeard } }

  private func watch() { perform { _, _ in } }

  private func renderOnce() throws(MediaError) {
    guard let sink else { return }
    let count = min(sink.writableCount, Self.blockLength)
    guard count > 0 else { return }
    let order = perform { model, _ in model.takeOrder(count) }
    let (samples, failure) = audio.withLock { audio in
      var samples: [[Float]] = []
      for part in order.parts {
        let rendered = audio.render(part.count, of: part.run, isMuted: order.isMuted)
        if samples.isEmpty {
          samples = rendered
        } else {
          for channel in samples.indices { samples[channel] += rendered[channel] }
        }
      }
      return (samples, audio.takeFailure())
    }
    let isContinuous = try sink.write(samples)
    guard !isContinuous || failure != nil else { return }
    perform { model, now in
      if !isContinuous { model.report(.underrun, now) }
      if let failure { model.report(.audioFailed(failure), now) }
    }
  }

  /// Continues without the audio output, which has failed.
  private func loseSink(_ error: MediaError) {
    perform { model, now in model.loseSink(error, now) }
  }
}

/// The open decoders of a player: one for playing and one for scrubbing per asset.
///
/// Only the decoding thread uses it.
final class OpenDecoders {
  private struct Kind: Hashable {
    let asset: Int
    let purpose: DecodeJob.Purpose
  }

  /// A reader in a class, because dictionaries cannot hold noncopyable values.
  private final class OpenReader {
    var reader: FrameReader
    var stamp = 0

    init(_ asset: Asset, _ purpose: DecodeJob.Purpose) throws(MediaError) {
      let reader = try FrameReader(
        asset, wanted: nil, threadCount: purpose == .scrubbing ? 1 : 0)
      self.reader = consume reader
    }
  }

  private var readers: [Kind: OpenReader] = [:]
  /// The assets whose decoder with several threads was opened in advance.
  private var prepared: Set<Int> = []
  private var stamp = 0
  /// The number of packets sent to decoders that are now closed.
  private var closedPacketCount = 0
  /// The greatest number of open decoders.
  private static let maximumReaders = 6

  /// Decodes a job, and passes each frame to `body`.
  ///
  /// - Parameters:
  ///   - job: The frames to decode.
  ///   - asset: The job's asset.
  ///   - shouldContinue: Asked after each decoded frame. Returns false to stop.
  ///   - body: Receives the frames in ascending order, preceded by the neighbors that were decoded
  ///     on the way. Returns true to continue and false to stop.
  /// - Throws: `MediaError` from opening or reading the file.
  func run(
    _ job: DecodeJob, of asset: Asset, while shouldContinue: () -> Bool,
    _ body: (_ index: Int, _ image: MediaFrame) -> Bool
  ) throws(MediaError) {
    let wanted = Set(job.frames)
    try reader(Kind(asset: job.asset, purpose: job.purpose), asset).reader.readFrames(
      in: job.range, wanted: wanted.contains, neighborCount: job.neighborCount,
      shouldContinue: shouldContinue, body)
  }

  /// Opens the multithreaded decoder in advance, so that the first seek far from a key frame does
  /// not wait for it.
  ///
  /// It tries only once for each asset. Errors are ignored here: the first job reports them.
  func prepare(_ index: Int, _ asset: Asset) {
    guard prepared.insert(index).inserted, readers.count < Self.maximumReaders else { return }
    _ = try? reader(Kind(asset: index, purpose: .playing), asset)
  }

  /// The number of decoders that are open.
  var openCount: Int { readers.count }

  /// The number of packets sent to decoders so far.
  var sentPacketCount: Int {
    readers.values.reduce(closedPacketCount) { $0 + $1.reader.sentPacketCount }
  }

  private func reader(_ kind: Kind, _ asset: Asset) throws(MediaError) -> OpenReader {
    stamp += 1
    if let open = readers[kind] {
      open.stamp = stamp
      return open
    }
    if readers.count >= Self.maximumReaders,
      let oldest = readers.min(by: { $0.value.stamp < $1.value.stamp })
    {
      closedPacketCount += oldest.value.reader.sentPacketCount
      readers[oldest.key] = nil
    }
    let open = try OpenReader(asset, kind.purpose)
    open.stamp = stamp
    readers[kind] = open
    return open
  }
}

/// A range of frames to decode in one pass.
struct DecodeJob: Sendable {
  /// The purpose of a decoder.
  enum Purpose: Hashable, Sendable {
    /// Decoding many frames in order, with several threads.
    case playing
    /// Decoding a single frame, with one thread: this has the least delay.
    case scrubbing
  }

  let purpose: Purpose
  let asset: Int
  /// The indices of the wanted frames of the asset, in ascending order; not empty.
  let frames: [Int]
  /// The number of frames before the first wanted frame that may be kept, if decoding passes them
  /// anyway.
  ///
  /// In reverse playback all of these frames are kept, otherwise at most
  /// a dozen.
  let neighborCount: Int
  /// The generation of the ``DecodeSchedule`` when the job was made.
  let generation: Int

  var range: ClosedRange<Int> { (frames.first ?? 0)...(frames.last ?? 0) }
  var keys: [FrameKey] { frames.map { FrameKey(asset: asset, frame: $0) } }
}
