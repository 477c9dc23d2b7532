// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Writes the growing file of a take.
///
/// Stores frames one by one and creates the report at the end.
struct TakeRecorder: ~Copyable {
  private var take: MovieTake
  private var file: MovieFile
  private var writer: TakeWriter
  private let startOfWriting = CaptureStatistics.threadTime()
  /// The first error of the disk or the encoder, after which nothing is stored.
  private(set) var failure: CallFailure?
  private var limits: FileLimits
  /// The reason why a limit ended the take, and the first frame after the limit.
  private(set) var limit: (reason: StopReason, next: FrameObservation)?
  /// The final state of the capture when the file was closed, or nil while the file is open.
  private var end: CaptureEnd?

  /// Starts a take in an empty file.
  ///
  /// - Parameters:
  ///   - take: The take.
  ///   - file: The empty file.
  ///   - unflushedFrames: The greatest number of stored frames whose journal records are written
  ///     only when ``flush()`` is called. If the process is killed, these frames are lost.
  ///   - earlier: The remainder of the take's previous file. Nil for the first file.
  init(
    _ take: MovieTake, into file: consuming MovieFile, unflushedFrames: Int = 0,
    after earlier: Remainder? = nil
  ) {
    self.take = take
    limits = FileLimits(take.settings, audio: take.audio?.rates(take.audioCodec))
    writer = take.makeWriter(
      into: file.file, unflushedFrames: unflushedFrames, after: earlier)
    self.file = file
  }

  /// The audio and the metadata values of a finished file that continue in the next file of the
  /// take.
  struct Remainder {
    var audio: AudioTrack.Continuation?
    var values: PendingValues
  }

  /// Whether the next file of the take could begin with this frame.
  func canEnd(before frame: QueuedFrame) -> Bool {
    frame.observation.outcome == .taken && account.ledger.stored > 0 && failure == nil
      && limit == nil && !account.clock.isPaused
      && (take.input.delivery.layout != .compressed(.h264) || frame.isKeyFrame)
  }

  /// The time in the file that the next frame would get, in microseconds.
  func time(of frame: QueuedFrame) -> Int64 { writer.time(of: frame.observation) }

  /// Adds metadata values, which are stored with their frames.
  mutating func add(_ values: [PendingValue]) { writer.add(values) }

  /// Marks a trigger with a chapter of the file.
  mutating func mark(_ trigger: CaptureTrigger) { take.markedTriggers.append(trigger) }

  /// The frame account so far, which contains the outcome of each frame.
  var account: FrameAccount { writer.account }

  /// Stores a frame.
  ///
  /// If the frame was dropped before it reached the writer, only records its outcome.
  ///
  /// After an error, requests the end of the capture.
  ///
  /// - Returns: The outcome of the frame. Nil if a limit ended the take before this frame.
  @discardableResult
  mutating func store(_ frame: QueuedFrame) -> FrameOutcome? {
    guard limit == nil else { return nil }
    guard failure == nil else { return writer.refuse(frame) }
    if let reason = limits.reason(
      against: frame, fileBytes: writer.byteCount,
      frames: writer.storedCount + writer.leadInCount, seconds: writer.seconds)
    {
      limit = (reason, frame.observation)
      return nil
    }
    defer { if writer.storedCount > 0 { file.dropReplaced() } }
    do throws(CallFailure) { return try writer.store(frame) } catch {
      fail(error)
      return .taken
    }
  }

  private mutating func fail(_ error: CallFailure) {
    failure = error
    take.control.stop(Self.reason(to: error))
  }

  /// Writes the journal records of all frames stored so far.
  ///
  /// If the process is killed later, a recovery finds these frames.
  mutating func flush() {
    do throws(CallFailure) { try writer.flush() } catch {
      // The first error is kept, since it causes the later ones.
      if failure == nil { fail(error) }
    }
  }

  /// The reason to end a capture after an error.
  static func reason(to failure: CallFailure) -> StopReason {
    failure.isDiskFull ? .diskFull : .error
  }

  /// Stores the hidden lead-in frames, on which the first frame of the take depends for decoding.
  mutating func lead(in frames: [QueuedFrame], to first: FrameObservation) {
    do throws(CallFailure) { try writer.lead(in: frames, to: first) } catch { fail(error) }
  }

  /// The current progress of the recording.
  func progress(queueFill: Double) -> MovieFileOutput.Progress {
    MovieFileOutput.Progress(
      stored: writer.storedCount, missing: writer.account.ledger.dropped,
      duration: MediaTime(microseconds: writer.endMicroseconds), queueFill: queueFill,
      bytes: writer.byteCount, levels: take.audio?.feed.levels ?? [])
  }

  /// The number of frames in the take's current file so far.
  var storedCount: Int64 { writer.storedCount }

  /// Closes the frame account, and stores the last samples.
  ///
  /// `next` is the first frame of the take's next file. Nil if this file is the last.
  mutating func close(_ end: CaptureEnd, before next: FrameObservation? = nil) {
    var end = end
    if let limit {
      end = CaptureEnd(stopReason: limit.reason)
      end.frames.next = limit.next
    }
    end.cost.writerThread = CaptureStatistics.threadTime() - startOfWriting
    writer.close(end, before: next)
    do throws(CallFailure) { try writer.finish() } catch { failure = failure ?? error }
    self.end = end
  }

  /// The audio and the metadata values of the closed file that continue in the next file.
  var remainder: Remainder {
    var values = writer.values
    values.begin(afterFrames: writer.storedCount)
    return Remainder(audio: writer.audioContinuation(), values: values)
  }

  /// Finishes the file; if it is still open, closes it first.
  ///
  /// - Throws: `MediaError` if no frame was stored. The file is then removed.
  consuming func finish(
    _ last: CaptureEnd, _ verification: FrameRateVerification?
  ) throws(MediaError)
    -> RecordingReport
  {
    if self.end == nil { close(last) }
    let end = self.end ?? last
    if writer.storedCount > 0 {
      let report = take.report(writer, end, failure, verification, of: &file)
      // A file with frames is kept even if it is unreadable now, because it may become readable
      // later. An empty file is removed.
      if report.ledger.stored > 0 { return report }
    }
    let (take, failure, limit) = (take, failure, limit)
    file.discard()
    if let error = end.error { throw error }
    if let limit { throw MediaError(take.settings, limit.reason) }
    if failure == nil, [.signal, .stopped, .reconfigured].contains(end.stopReason) {
      throw MediaError(
        .cancelled, "\(take.settings.path) was stopped before its first frame",
        recovery: "record for longer")
    }
    throw failure.map(MediaError.init)
      ?? MediaError(
        .nothingStored, "\(take.input.device.address) delivered no frame that could be stored",
        recovery: "check the camera, or record for longer")
  }
}

extension MediaError {
  /// Creates the error for a limit that allows not even a single frame.
  fileprivate init(_ settings: RecordingSettings, _ reason: StopReason) {
    self.init(
      .nothingStored,
      reason == .maxSize
        ? "the first frame of \(settings.path) does not fit in the maximum file size of "
          + "\(settings.maxRecordedFileSize ?? 0) bytes"
        : "the disk of \(settings.path) has less free space than required",
      recovery: reason == .maxSize
        ? Recovery("allow a larger file", .change(.maximumFileSize))
        : Recovery("free some space, or require less", .change(.minimumFreeSpace)))
  }
}

/// Tracks whether a queue of frames counts as full.
///
/// The queue counts as full from the time at which it rejects a frame until it is less than half
/// full.
struct QueueGauge {
  private(set) var isFull = false
  private var refusedCount: Int64 = 0

  /// Updates whether the queue counts as full, given the number of frames that it has rejected so
  /// far.
  ///
  /// Returns the new value of ``isFull`` if the value has changed, else nil.
  mutating func change(refused: Int64, _ queue: FrameQueue) -> Bool? {
    let was = isFull
    if refused > refusedCount {
      isFull = true
    } else if queue.fillLevel < 0.5 {
      isFull = false
    }
    refusedCount = refused
    return isFull == was ? nil : isFull
  }
}
