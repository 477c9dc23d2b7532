// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// A take while its file grows: takes frames one by one, and tells at the end what became of them.
struct TakeRecorder: ~Copyable {
  private let take: MovieTake
  private var file: MovieFile
  private var writer: TakeWriter
  private let startOfWriting = CaptureStatistics.threadTime()
  /// What the disk or the encoder refused; nothing is stored after it.
  private(set) var failure: LibAVError?
  private var limits: FileLimits
  /// Why the take was over before its capture, and the first frame that is no part of it.
  private(set) var limit: (reason: StopReason, next: FrameObservation)?

  /// Opens the account of a take whose file exists and is empty.
  ///
  /// - Parameters:
  ///   - take: What is recorded.
  ///   - file: The file.
  ///   - unsettledFrames: Frames that may be lost in a kill until ``settle()`` is called.
  init(_ take: MovieTake, into file: consuming MovieFile, unsettledFrames: Int = 0) {
    self.take = take
    limits = FileLimits(take.settings, audio: take.audio?.rates(take.audioCodec))
    writer = take.makeWriter(into: file.file, unsettledFrames: unsettledFrames)
    self.file = file
  }

  /// The account so far.
  var account: FrameAccount { writer.account }

  /// Stores a frame, or enters a note of one that did not get this far; asks for the end of the
  /// capture where nothing can be stored any more.
  ///
  /// - Returns: What became of it; nil where the take was over before it.
  @discardableResult
  mutating func enter(_ frame: QueuedFrame) -> FrameOutcome? {
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
    do throws(LibAVError) { return try writer.store(frame) } catch {
      fail(error)
      return .taken
    }
  }

  private mutating func fail(_ error: LibAVError) {
    failure = error
    take.control.stop(Self.reason(to: error))
  }

  /// Has the file tell of all that was stored until now, if the program is killed.
  mutating func settle() {
    do throws(LibAVError) { try writer.settle() } catch {
      // What failed first is the cause of the rest.
      if failure == nil { fail(error) }
    }
  }

  /// The reason to end a capture when this has failed.
  static func reason(to failure: LibAVError) -> StopReason {
    failure.isDiskFull ? .diskFull : .error
  }

  /// Stores what must be decoded before the first frame of the take.
  mutating func lead(in frames: [QueuedFrame], to first: FrameObservation) {
    do throws(LibAVError) { try writer.lead(in: frames, to: first) } catch { fail(error) }
  }

  /// What may be told now.
  func progress(queueFill: Double) -> MovieFileOutput.Progress {
    MovieFileOutput.Progress(
      stored: writer.storedCount, missing: writer.account.ledger.dropped,
      duration: MediaTime(microseconds: writer.endMicroseconds), queueFill: queueFill,
      bytes: writer.byteCount, levels: take.audio?.feed.levels ?? [])
  }

  /// Frames that are in the file so far, if that one can be kept.
  var storedCount: Int64 { writer.storedCount }

  /// Closes the account and the file.
  ///
  /// - Throws: `MediaError` when there was nothing to store; there is no file
  ///   then.
  consuming func finish(_ end: CaptureEnd, _ proof: FrameRateVerification?) throws(MediaError)
    -> RecordingReport
  {
    var end = end
    if let limit {
      end = CaptureEnd(stopReason: limit.reason)
      end.frames.next = limit.next
    }
    end.cost.writerThread = CaptureStatistics.threadTime() - startOfWriting
    writer.close(end)
    do throws(LibAVError) { try writer.finish() } catch { failure = failure ?? error }
    if writer.storedCount > 0 {
      let report = take.report(writer, end, failure, proof, of: &file)
      // What cannot be looked at now may be read later, so only what holds nothing is no take.
      if report.ledger.stored > 0 { return report }
    }
    let (take, failure, limit) = (take, failure, limit)
    file.discard()
    if let error = end.error { throw error }
    if let limit { throw MediaError(take.settings, limit.reason) }
    if failure == nil, end.stopReason == .signal {
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
  /// A limit leaves no room for a single frame.
  fileprivate init(_ settings: RecordingSettings, _ reason: StopReason) {
    self.init(
      .nothingStored,
      reason == .maxSize
        ? "not one frame fits into the \(settings.maxRecordedFileSize ?? 0) bytes allowed to "
          + settings.path
        : "the disk of \(settings.path) has less free space than it is to keep",
      recovery: reason == .maxSize
        ? Recovery("allow a larger file", .change(.maximumFileSize))
        : Recovery("free some space, or require less", .change(.minimumFreeSpace)))
  }
}

/// Whether a queue was full, until it is half empty again.
struct PressureGauge {
  private(set) var isPressed = false
  private var refusedCount: Int64 = 0

  /// The new state where it has changed.
  mutating func change(refused: Int64, _ queue: FrameQueue) -> Bool? {
    let was = isPressed
    if refused > refusedCount {
      isPressed = true
    } else if queue.fillLevel < 0.5 {
      isPressed = false
    }
    refusedCount = refused
    return isPressed == was ? nil : isPressed
  }
}
