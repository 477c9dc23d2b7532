// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// Writes the file of an ``AssetWriter``, from its creation to its end.
///
/// Samples of real-time inputs are stored on a background thread, all other samples in the call
/// that appends them.
final class AssetStore: Sendable {
  /// The state of one input of the asset writer.
  private struct InputState {
    let waits: Bool
    var lastMicroseconds: Int64?
    var count: UInt32 = 0
    var isFinished = false
  }

  /// The state that is read for each sample, protected by a lock.
  ///
  /// The lock is never held while a sample is stored.
  private struct State {
    var status = AssetWriter.Status.writing
    var error: MediaError?
    /// Whether the asset writer still accepts samples.
    var isOpen = true
    var start: MediaTime?
    var startMicroseconds: Int64 = 0
    var inputs: [InputState]
    var storedCount: Int64 = 0
  }

  /// The movie file with its writer.
  private struct Writer: ~Copyable {
    var file: MovieFile?
    var writer: AssetMovieWriter?
  }

  private let path: String
  private let inputs: [AssetWriterInput]
  private let tags: @Sendable () -> [String: String]
  private let state: Mutex<State>
  /// Protects `output`.
  ///
  /// A `Mutex` that contains `output` could not store a frame that the caller borrowed.
  private let isStoring = Mutex(())
  private nonisolated(unsafe) var output = Writer()
  /// For each input, the queue from which the background thread takes its samples.
  ///
  /// Nil for an input whose samples are stored at once.
  private let queues: [FrameQueue?]
  private let thread = Mutex<BlockingThread?>(nil)

  /// The greatest time in microseconds by which an input's last sample may be later than that of
  /// another input.
  ///
  /// The limit keeps samples with nearly equal times close together in the file.
  private static let interleavingMicroseconds: Int64 = 250_000

  /// Creates the file.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - overwrites: Whether an existing file may be replaced.
  ///   - metadata: Tags of the file.
  ///   - inputs: The inputs in the order of their tracks, those of video first.
  ///   - frameRate: The frame rate of the first input; nil for audio alone.
  /// - Throws: `MediaError` if the file cannot be created or the queues' memory is unavailable.
  init(
    creating path: String, overwrites: Bool, metadata: [String: String],
    for inputs: [AssetWriterInput], frameRate: FrameRate?
  ) throws(MediaError) {
    self.path = path
    self.inputs = inputs
    let tags: @Sendable () -> [String: String] = {
      RecordingTags.metadata(frameRate: frameRate, recording: nil).merging(metadata) { $1 }
    }
    self.tags = tags
    state = Mutex(
      State(inputs: inputs.map { InputState(waits: !$0.expectsMediaDataInRealTime) }))
    var (tracks, queues): ([any AssetWriterTrack], [FrameQueue?]) = ([], [])
    for input in inputs {
      do throws(CallFailure) { tracks.append(try input.source.makeTrack()) } catch {
        throw MediaError(recording: error)
      }
      queues.append(input.expectsMediaDataInRealTime ? try input.source.makeQueue() : nil)
    }
    self.queues = queues
    let file: MovieFile
    do throws(CallFailure) {
      file = try MovieFile(creating: path, overwrites: overwrites)
    } catch { throw MediaError(creating: error) }
    output.writer = AssetMovieWriter(into: file.file, tracks: tracks, makeMetadata: tags)
    output.file = consume file
    try startThread()
  }

  private func startThread() throws(MediaError) {
    guard queues.contains(where: { $0 != nil }) else { return }
    do throws(MediaError) {
      let started = try BlockingThread.started { [self] in drainQueues() }
      thread.withLock { $0 = started }
    } catch {
      discard()
      throw error
    }
  }

  /// Stores the samples of the queues in the order of their times, until the queues are closed.
  private func drainQueues() {
    while true {
      var (next, waiting): (Int?, FrameQueue?)
      var time = Int64.max
      for (index, queue) in queues.enumerated() {
        guard let queue else { continue }
        // `isClosed` is read before the queue is searched. In the other order, a sample that is
        // pushed after the search, just before the queue is closed, would be missed.
        let isClosed = queue.isClosed
        if let first = queue[queue.startNumber], !queue.isEmpty {
          guard next == nil || first.observation.microseconds < time else { continue }
          (next, time) = (index, first.observation.microseconds)
        } else if !isClosed {
          waiting = queue
        }
      }
      if let next {
        _ = queues[next]?.withNextFrame { store($0.observation, $0.bytes, input: next) }
      } else if let waiting {
        // Sleeps at most 50 ms, because a sample may arrive in another queue meanwhile.
        waiting.pause(at: waiting.endNumber)
      } else {
        return
      }
    }
  }

  var status: AssetWriter.Status { state.withLock { $0.status } }
  var error: MediaError? { state.withLock { $0.error } }
  var storedCount: Int64 { state.withLock { $0.storedCount } }

  /// Whether a sample may be appended to an input now.
  func isReady(input: Int) -> Bool {
    let isReady = state.withLock { state in
      state.isOpen && state.start != nil && state.error == nil
        && !state.inputs[input].isFinished && !Self.isAhead(input, state)
    }
    return isReady && (queues[input]?.fillLevel ?? 0) < FrameQueue.nearlyFull
  }

  /// Whether an input is so far ahead of the others in time that it must wait for them.
  private static func isAhead(_ input: Int, _ state: borrowing State) -> Bool {
    guard state.inputs[input].waits, let last = state.inputs[input].lastMicroseconds else {
      return false
    }
    let limit = last &- interleavingMicroseconds
    return state.inputs.indices.contains { other in
      other != input && !state.inputs[other].isFinished
        && state.inputs[other].lastMicroseconds ?? state.startMicroseconds < limit
    }
  }

  /// Ends an input.
  func markAsFinished(input: Int) { state.withLock { $0.inputs[input].isFinished = true } }

  /// Sets the source time at which the session starts.
  ///
  /// Returns false if the start was already set, or writing has ended.
  func start(at time: MediaTime) -> Bool {
    let microseconds = time.wholeMicroseconds
    let isStarted = state.withLock { state in
      guard state.isOpen, state.start == nil else { return false }
      state.start = time
      state.startMicroseconds = microseconds
      return true
    }
    // The tracks of a file share one time axis. Its zero is the start of the session, not the first
    // sample.
    if isStarted, inputs.count > 1 {
      isStoring.withLock { _ in output.writer?.begin(atMicroseconds: microseconds) }
    }
    return isStarted
  }

  /// Appends a sample to the queue of its input or, if the input has no queue, to the file.
  ///
  /// - Throws: `MediaError` as ``AssetWriterInput/append(bytes:at:)`` does.
  func append(
    _ bytes: UnsafeRawBufferPointer, at time: MediaTime, input: Int
  ) throws(MediaError) {
    guard inputs[input].source.isWhole(bytes) else { throw damage }
    if let queue = queues[input] {
      // The lock is held until the sample is in the queue, so that concurrent calls queue samples
      // in the order of their times.
      try state.withLock { (state) throws(MediaError) in
        guard let observation = try observe(bytes, at: time, input, &state) else { return }
        guard queue.push(QueuedFrame(observation: observation, bytes: bytes)) else {
          throw MediaError(
            .notReady, "the queue to \(path) is full",
            recovery: "check isReadyForMoreMediaData, or leave out frames")
        }
        state.inputs[input].lastMicroseconds = observation.microseconds
      }
    } else {
      let observation = try state.withLock { (state) throws(MediaError) in
        let observation = try observe(bytes, at: time, input, &state)
        if let observation { state.inputs[input].lastMicroseconds = observation.microseconds }
        return observation
      }
      if let refusal = observation.flatMap({ store($0, bytes, input: input) }) { throw refusal }
    }
  }

  /// Creates the `FrameObservation` of an appended sample.
  ///
  /// Returns nil if the sample is before the start of the session.
  private func observe(
    _ bytes: UnsafeRawBufferPointer, at time: MediaTime, _ input: Int, _ state: inout State
  ) throws(MediaError) -> FrameObservation? {
    if let error = state.error { throw error }
    guard state.isOpen, let start = state.start, !state.inputs[input].isFinished else {
      throw .wrongState("\(path) is not being written, or its session has not begun")
    }
    let length = inputs[input].source.duration(of: bytes)
    guard time >= start || time.seconds + length > start.seconds else { return nil }
    guard
      let microseconds = try? time.converted(to: 1_000_000, rounding: .halfAwayFromZero).value,
      state.inputs[input].lastMicroseconds.map({ microseconds > $0 }) ?? true
    else {
      throw MediaError(
        .invalidData, "the time of a frame of \(path) does not increase",
        recovery: "append frames in the order of their times, at least 1 µs apart")
    }
    if let last = state.inputs[input].lastMicroseconds,
      microseconds.subtractingReportingOverflow(last).overflow
        || microseconds - last > FragmentedMovieWriter.maximumSampleTicks
    {
      throw MediaError(
        .invalidData, "a frame of \(path) is more than 35 minutes after the one before",
        recovery: "write such a recording to several files")
    }
    guard !Self.isAhead(input, state) else {
      throw MediaError(
        .notReady, "an input of \(path) is ahead of another",
        recovery: "check isReadyForMoreMediaData, or mark finished inputs")
    }
    defer { state.inputs[input].count &+= 1 }
    return FrameObservation(sequence: state.inputs[input].count, microseconds: microseconds)
  }

  private var damage: MediaError {
    MediaError(
      .invalidData, "a frame for \(path) is damaged",
      recovery: "leave it out, and append the next")
  }

  /// Stores a sample, and returns the error if this fails.
  ///
  /// A damaged sample is left out and does not stop the writer.
  @discardableResult
  private func store(
    _ observation: FrameObservation, _ bytes: UnsafeRawBufferPointer, input: Int
  ) -> MediaError? {
    if let error { return error }
    do throws(CallFailure) {
      let (outcome, count) = try isStoring.withLock { (_) throws(CallFailure) in
        let outcome = try output.writer?.store(bytes, observation, track: input)
        // Encoders keep the first samples for a while.
        if output.writer?.storedCounts.contains(where: { $0 > 0 }) == true {
          output.file?.dropReplaced()
        }
        return (outcome, output.writer?.storedCount(of: .video) ?? 0)
      }
      guard outcome == .taken else { return damage }
      state.withLock { $0.storedCount = count }
      return nil
    } catch {
      let error = MediaError(recording: error)
      state.withLock { ($0.status, $0.error) = (.failed, error) }
      return error
    }
  }
}

extension AssetStore {
  /// Rejects further samples and stores the queued ones.
  ///
  /// Returns false if this method was called before.
  private func close() -> Bool {
    let wasOpen = state.withLock { state in
      defer { state.isOpen = false }
      return state.isOpen
    }
    guard wasOpen else { return false }
    for queue in queues { queue?.close() }
    thread.withLock { $0.take() }?.join()
    return true
  }

  /// Stores the queued samples and finishes the file.
  ///
  /// - Throws: `MediaError` for this or an earlier failure.
  func finish() throws(MediaError) {
    guard close() else { throw .wrongState("\(path) is already finished or cancelled") }
    let failure = isStoring.withLock { _ in finishFile() }
    let error = state.withLock { state in
      // The first error is reported, since it causes the later ones.
      state.error = state.error ?? failure
      state.status = state.error == nil ? .completed : .failed
      return state.error
    }
    if let error { throw error }
  }

  private func finishFile() -> MediaError? {
    guard var writer = output.writer.take(), var file = output.file.take() else { return nil }
    do throws(CallFailure) {
      try writer.finish()
      let count = writer.storedCount(of: .video)
      state.withLock { $0.storedCount = count }
      // A movie needs a frame, and a file of audio alone a block of samples.
      let mediaType = inputs.first?.mediaType ?? .video
      guard writer.storedCount(of: mediaType) > 0 else {
        file.discard()
        return MediaError(
          .nothingStored, "nothing was appended to \(path)", recovery: "append samples first")
      }
      file.prepareToFinish()
      var readable = writer.storedCounts
      if AssetFileType(path: path) != .wave {
        readable = try RecordedMovie(file.file).finish(
          ends: writer.endTicks.map { .at($0) }, metadata: tags())
      }
      guard file.hasItsName else { return MediaError(replacing: file.file) }
      let (found, stored) = (readable.reduce(0, +), writer.storedCounts.reduce(0, +))
      let fault =
        readable != writer.storedCounts
        ? "only \(found) of \(stored) samples of \(path) could be read back"
        : RecordedMovie.canOpen(file.file) ? nil : "\(path) could not be opened again"
      return fault.map {
        MediaError(.writeFailed, $0, recovery: "check the disk, and write the file again")
      }
    } catch {
      // The file is kept. It is still fragmented and contains the frames stored so far.
      return MediaError(recording: error)
    }
  }

  /// Cancels writing and removes the file.
  ///
  /// Does nothing if writing has ended.
  ///
  /// After an error, the file is finished with the stored frames instead of being removed.
  func cancel() {
    guard error == nil else { return (try? finish()) ?? () }
    guard close() else { return }
    state.withLock { $0.status = .cancelled }
    discard()
  }

  /// Removes the file.
  private func discard() {
    isStoring.withLock { _ in
      _ = output.writer.take()
      if let file = output.file.take() { file.discard() }
    }
  }
}

/// Writes the samples of an ``AssetWriter``'s inputs to one fragmented movie, or a WAV file.
///
/// The file contains the samples in the order of their arrival.
struct AssetMovieWriter: ~Copyable {
  private let file: OpenFile
  private let tracks: [any AssetWriterTrack]
  private let makeMetadata: () -> [String: String]
  private let fileType: AssetFileType
  private var movie: FragmentedMovieWriter?
  private var wave: FormatWriter?
  /// The source time that becomes time zero of the file, in microseconds.
  ///
  /// Nil until it is set, at the latest by the first stored sample.
  private var zero: Int64?
  /// Frames of the first track that arrived before the header of the file was written.
  private var early: [FrameObservation] = []
  /// The number of samples of each track stored in the file so far.
  private(set) var storedCounts: [Int64]

  /// Creates a writer; video tracks must come first.
  init(
    into file: OpenFile, tracks: [any AssetWriterTrack],
    makeMetadata: @escaping () -> [String: String]
  ) {
    self.file = file
    self.tracks = tracks
    self.makeMetadata = makeMetadata
    fileType = AssetFileType(path: file.path)
    storedCounts = tracks.map { _ in 0 }
  }

  /// The number of video frames or audio packets stored in the file so far.
  func storedCount(of mediaType: MediaType) -> Int64 {
    tracks.indices.reduce(0) {
      $0 + ((tracks[$1] is VideoAssetTrack) == (mediaType == .video) ? storedCounts[$1] : 0)
    }
  }

  /// Sets the source time that becomes time zero of the file.
  mutating func begin(atMicroseconds time: Int64) { zero = time }

  /// Stores a sample that was appended to an input.
  ///
  /// - Returns: `.taken`, or `.corrupt` or `.unshowable` for a sample that cannot be stored.
  /// - Throws: `CallFailure` if the encoder or the file fails.
  mutating func store(
    _ bytes: UnsafeRawBufferPointer, _ observation: FrameObservation, track: Int
  ) throws(CallFailure) -> FrameOutcome {
    let zero = zero ?? observation.microseconds
    let ticks = tracks[track].ticks(atMicroseconds: observation.microseconds &- zero)
    let outcome = try tracks[track].take(bytes, at: ticks) {
      (bytes, ticks, duration, isKeyFrame) throws(CallFailure) in
      try write(bytes, track: track, ticks: ticks, duration: duration, isKeyFrame: isKeyFrame)
    }
    if outcome == .taken { self.zero = zero }
    if track == 0, tracks[0] is VideoAssetTrack {
      var frame = observation
      frame.outcome = outcome
      try note(frame)
    }
    return outcome
  }

  /// Records a frame of the first track in the journal, from which a recovery rebuilds the ledger.
  private mutating func note(_ frame: FrameObservation) throws(CallFailure) {
    guard movie != nil else { return early.append(frame) }
    try movie?.note(frame)
  }

  /// Stores the samples that are still in the encoders, and closes the fragmented file.
  ///
  /// - Throws: `CallFailure`. The samples stored before stay playable.
  mutating func finish() throws(CallFailure) {
    // After an error, the remaining tracks are still finished, to store as many samples as
    // possible.
    var failure: CallFailure?
    for track in tracks.indices {
      do throws(CallFailure) {
        try tracks[track].finish {
          (bytes, ticks, duration, isKeyFrame) throws(CallFailure) in
          try write(bytes, track: track, ticks: ticks, duration: duration, isKeyFrame: isKeyFrame)
        }
      } catch { failure = failure ?? error }
    }
    do throws(CallFailure) {
      try movie?.finish()
      if wave != nil {
        try wave?.finish()
        try RandomAccessFile(file).sync()
      }
    } catch { failure = failure ?? error }
    if let failure { throw failure }
  }

  /// The end of each track's last sample, in ticks of that track.
  var endTicks: [Int64] { tracks.map(\.endTicks) }

  private mutating func write(
    _ bytes: UnsafeRawBufferPointer, track: Int, ticks: Int64, duration: Int64, isKeyFrame: Bool
  ) throws(CallFailure) {
    if fileType == .wave, let samples = tracks[track] as? SampleAssetTrack {
      if wave == nil { wave = try samples.makeWave(file, metadata: makeMetadata()) }
      try wave?.write(
        Packet(
          copying: bytes, pts: ticks, dts: ticks, duration: duration, isKeyFrame: true),
        at: ticks, duration: duration)
    } else {
      if movie == nil { try writeHead(bytes, track: track) }
      try movie?.append(
        bytes, track: track, ticks: ticks, duration: duration, isKeyFrame: isKeyFrame)
    }
    storedCounts[track] += 1
  }

  /// Writes the header of the file, when the first sample has arrived.
  private mutating func writeHead(
    _ bytes: UnsafeRawBufferPointer, track: Int
  ) throws(CallFailure) {
    var head = MovieIndex(MovieContainer(recording: file.path), timescale: 1_000_000)
    head.tags = makeMetadata()
    head.isAudioFile = fileType == .audioMovie
    var heads: [FragmentedMovieWriter.Track] = []
    for index in tracks.indices {
      heads.append(try tracks[index].head(of: file.path, index == track ? bytes : nil))
    }
    // A fragment normally lasts 150 ms, but has space for the samples of 250 ms.
    let samples = tracks.reduce(0) { $0 + $1.samplesPerSecond / 4 + 8 }
    movie = try FragmentedMovieWriter(
      file, index: head, tracks: heads,
      layout: FragmentedMovieWriter.Layout(
        fragmentTicks: tracks[0].ticks(atMicroseconds: 150_000), samplesPerFragment: samples))
    for frame in early { try movie?.note(frame) }
    early = []
  }
}
