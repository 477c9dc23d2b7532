// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// The file of an ``AssetWriter`` from creation to end.
///
/// Stores frames at once or on a background thread.
final class FrameStore: Sendable {
  /// State that each call reads, protected by the mutex `state`.
  ///
  /// The mutex is locked only briefly and never while a frame is written to the file. Readers of
  /// the status therefore do not wait for the disk.
  private struct State {
    var status = AssetWriter.Status.writing
    var error: MediaError?
    /// Whether the writer still accepts frames; false after it was finished or cancelled.
    var isOpen = true
    var start: MediaTime?
    var lastMicroseconds: Int64?
    var count: UInt32 = 0
    var storedCount: Int64 = 0
  }

  /// The movie file with its writer.
  private struct Writer: ~Copyable {
    var file: MovieFile?
    var writer: TakeWriter?
  }

  private let path: String
  private let delivery: FrameDelivery
  private let tags: @Sendable () -> [String: String]
  private let state = Mutex(State())
  /// Protects `output`.
  ///
  /// A `Mutex` that contains `output` would not compile: `withLock` passes the value as `sending`,
  /// so its body may not pass the caller's non-Sendable frame bytes to it.
  private let isStoring = Mutex(())
  private nonisolated(unsafe) var output = Writer()
  /// The queue to the background thread, or nil if the calling thread stores the frames itself.
  private let queue: FrameQueue?
  private let thread = Mutex<BlockingThread?>(nil)

  /// Creates the file.
  ///
  /// - Throws: `MediaError` if the file cannot be created or the queue's memory is unavailable.
  init(
    creating path: String, overwrites: Bool, metadata: [String: String],
    for input: AssetWriterInput
  ) throws(MediaError) {
    self.path = path
    let (delivery, rate) = (input.delivery, input.frameRate)
    self.delivery = delivery
    let tags: @Sendable () -> [String: String] = {
      RecordingTags.metadata(frameRate: rate, recording: nil).merging(metadata) { $1 }
    }
    self.tags = tags
    let plan = try VideoPipelinePlan(input.video, for: delivery, in: path)
    queue = input.expectsMediaDataInRealTime ? try Self.makeQueue(input) : nil
    let file: MovieFile
    do throws(MovieFile.CreationError) {
      file = try MovieFile(creating: path, overwrites: overwrites)
    } catch { throw MediaError(error) }
    output.writer = TakeWriter(
      into: file.file, plan: plan, delivery: delivery, frameRate: rate, audio: nil,
      audioCodec: .pcm,
      account: FrameAccount(frameRate: rate, trustsCounter: true, beginsWithStream: false) { 0 }
    ) { _, _ in tags() }
    output.file = consume file
    try startThread()
  }

  /// Creates a queue for the largest possible frames.
  private static func makeQueue(_ input: AssetWriterInput) throws(MediaError) -> FrameQueue {
    let format = input.formatDescription
    // The queue must hold the largest possible frame. No pixel format has more than 8 bytes per
    // pixel, and compressed frames are smaller. The input has already checked the size, so the
    // product cannot overflow.
    let image = max(4_096, max(format.width * 8, format.bytesPerRow) * format.height)
    return try FrameQueue(
      capacity: RecordingMemory.queueBytes(largestFrame: image, frameRate: input.frameRate),
      largestFrame: image)
  }

  private func startThread() throws(MediaError) {
    guard let queue else { return }
    do throws(MediaError) {
      let started = try BlockingThread.started { [self] in
        while queue.withNextFrame({ store($0.observation, $0.bytes) }) != nil {}
      }
      thread.withLock { $0 = started }
    } catch {
      discard()
      throw error
    }
  }

  var status: AssetWriter.Status { state.withLock { $0.status } }
  var error: MediaError? { state.withLock { $0.error } }
  var storedCount: Int64 { state.withLock { $0.storedCount } }

  /// Whether a frame may be appended now.
  var isReady: Bool {
    guard state.withLock({ $0.isOpen && $0.start != nil && $0.error == nil }) else { return false }
    return (queue?.fillLevel ?? 0) < 0.9
  }

  /// Sets the start of the session.
  ///
  /// Returns true if the start was set, and false if it was already set or writing has ended.
  func start(at time: MediaTime) -> Bool {
    state.withLock { state in
      guard state.isOpen, state.start == nil else { return false }
      state.start = time
      return true
    }
  }

  /// Appends a frame to the queue or the file.
  ///
  /// - Throws: `MediaError` as ``AssetWriterInput/append(bytes:at:)`` does.
  func append(_ bytes: UnsafeRawBufferPointer, at time: MediaTime) throws(MediaError) {
    guard delivery.integrityCheck.holds(bytes) else { throw damage }
    if let queue {
      // The time check and the push share one lock, so that two threads cannot queue their frames
      // in the wrong order.
      try state.withLock { (state) throws(MediaError) in
        guard let observation = try observe(at: time, &state) else { return }
        guard queue.push(QueuedFrame(observation: observation, bytes: bytes)) else {
          throw MediaError(
            .notReady, "the queue to \(path) is full",
            recovery: "check isReadyForMoreMediaData, or leave out frames")
        }
        state.lastMicroseconds = observation.microseconds
      }
    } else {
      let observation = try state.withLock { (state) throws(MediaError) in
        let observation = try observe(at: time, &state)
        if let observation { state.lastMicroseconds = observation.microseconds }
        return observation
      }
      if let refusal = observation.flatMap({ store($0, bytes) }) { throw refusal }
    }
  }

  /// Creates the frame's record for the ledger, or returns nil if the frame's time is before the
  /// start of the session.
  private func observe(
    at time: MediaTime, _ state: inout State
  ) throws(MediaError) -> FrameObservation? {
    if let error = state.error { throw error }
    guard state.isOpen, let start = state.start else {
      throw .wrongState("\(path) is not being written, or its session has not begun")
    }
    guard time >= start else { return nil }
    guard
      let microseconds = try? time.converted(to: 1_000_000, rounding: .halfAwayFromZero).value,
      state.lastMicroseconds.map({ microseconds > $0 }) ?? true
    else {
      throw MediaError(
        .invalidData, "the time of a frame of \(path) does not increase",
        recovery: "append frames in the order of their times, at least 1 µs apart")
    }
    // A movie fragment stores the duration of a frame in 32 bits, which limits the distance to the
    // next frame.
    if let last = state.lastMicroseconds,
      microseconds.subtractingReportingOverflow(last).overflow
        || microseconds - last > Int64(Int32.max)
    {
      throw MediaError(
        .invalidData, "a frame of \(path) is more than 35 minutes after the one before",
        recovery: "write such a recording to several files")
    }
    defer { state.count &+= 1 }
    return FrameObservation(sequence: state.count, microseconds: microseconds)
  }

  private var damage: MediaError {
    MediaError(
      .invalidData, "a frame for \(path) is damaged",
      recovery: "leave it out, and append the next")
  }

  /// Stores a frame, and returns nil or the error.
  ///
  /// A damaged frame is left out: its error is returned, but the writer continues.
  @discardableResult
  private func store(
    _ observation: FrameObservation, _ bytes: UnsafeRawBufferPointer
  ) -> MediaError? {
    if let error { return error }
    let result = isStoring.withLock { _ in
      Result { () throws(LibAVError) in
        let outcome = try output.writer?.store(
          QueuedFrame(observation: observation, bytes: bytes))
        if outcome == .taken { output.file?.dropReplaced() }
        return (outcome, output.writer?.storedCount ?? 0)
      }
    }
    switch result {
    case .success((.taken, let count)):
      state.withLock { $0.storedCount = count }
      return nil
    case .success: return damage
    case .failure(let failure):
      let error = MediaError(recording: failure)
      state.withLock { ($0.status, $0.error) = (.failed, error) }
      return error
    }
  }

  /// Rejects further frames and stores the queued ones.
  ///
  /// Returns true for the first call and false for later ones.
  private func close() -> Bool {
    let wasOpen = state.withLock { state in
      defer { state.isOpen = false }
      return state.isOpen
    }
    guard wasOpen else { return false }
    queue?.close()
    thread.withLock { $0.take() }?.join()
    return true
  }

  /// Stores the queued frames and finishes the file.
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
    writer.close(CaptureEnd())
    do throws(LibAVError) {
      try writer.finish()
      let count = writer.storedCount
      state.withLock { $0.storedCount = count }
      guard count > 0 else {
        file.discard()
        return MediaError(
          .nothingStored, "no frame was appended to \(path)", recovery: "append frames first")
      }
      file.prepareToFinish()
      let readable = try MovieFinalizer.finish(
        file.file, videoEnd: writer.endMicroseconds, audioEnd: .sample(0), metadata: tags())
      guard file.hasItsName else { return MediaError(replacing: file.file) }
      guard readable == count else {
        return MediaError(
          .writeFailed, "only \(readable) of \(count) frames of \(path) could be read back",
          recovery: "check the disk, and write the file again")
      }
      return nil
    } catch {
      // The file stays fragmented. It is not removed, because it contains the frames stored so far.
      return MediaError(recording: error)
    }
  }

  /// Cancels writing and removes the file.
  ///
  /// Does nothing if writing has ended.
  ///
  /// If an error has stopped the writer, the file is finished with the stored frames instead.
  func cancel() {
    guard error == nil else { return (try? finish()) ?? () }
    guard close() else { return }
    state.withLock { $0.status = .cancelled }
    discard()
  }

  private func discard() {
    isStoring.withLock { _ in
      _ = output.writer.take()
      if let file = output.file.take() { file.discard() }
    }
  }
}
