// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// Writes the files of one take, one after another, and joins their frame accounts.
///
/// A frame that is missing between two files is counted in the frame account of the earlier file.
/// Only the thread that writes the take uses this value.
struct Take: ~Copyable {
  /// A state change of a take.
  enum Event {
    /// A file began, grew or ended, or the take waits for its camera.
    case file(SegmentEvent)
    /// The last file of a camera's stream is finished.
    case didEndStream(RecordingReport)
    /// The queue to the file became full, or has free space again.
    case queue(isFull: Bool, path: String)
    /// A pause began or ended.
    case pause(Bool, path: String)
  }

  /// The report of a take, and whether the end of the take's last file was already sent as an
  /// event.
  struct Written {
    var report: SegmentedReport
    var isReported = false
  }

  /// The next file of a take, which is still empty.
  private struct Next: ~Copyable {
    let configuration: TakeConfiguration
    let file: MovieFile
    /// The reason why the take's previous file ended, for the report of that file.
    let reason: StopReason
  }

  /// The options of the current file.
  private var configuration: TakeConfiguration
  /// The path of the take.
  private let path: String
  private let inbox: TakeInbox
  /// The result of the frame rate verification before the take, or nil.
  private let verification: FrameRateVerification?
  private let segments: SegmentSettings?
  /// The reports of the finished files.
  private var reports: [RecordingReport] = []
  /// The audio and metadata values that continue in the next file, or nil in the first file.
  private var remainder: TakeFileWriter.Remainder?
  /// The number of the take's current file, from 1.
  private var number = 1
  /// The number of the current segment, from 0.
  ///
  /// `boundary` is the time in the take at which the next segment begins, in microseconds.
  private var (segment, boundary): (Int64, Int64) = (0, .max)
  /// The time in the take at which the current file begins, in microseconds.
  private var fileStart: Int64 = 0
  /// The progress of the take at the end of the last finished file; nil in the first file.
  private var earlier: MovieFileOutput.Progress?
  /// The frame account of the finished files and of the time between them; nil in the first file.
  private var account: FrameAccount?
  /// Whether the camera has returned after a loss, but no frame has arrived since then.
  private var isReconnecting = false
  /// Errors of files that could not be created or have no frames.
  private var warnings: [String] = []

  init(
    _ configuration: TakeConfiguration, in segments: SegmentSettings? = nil,
    inbox: TakeInbox = TakeInbox(), verification: FrameRateVerification? = nil
  ) {
    self.configuration = configuration
    path = configuration.settings.path
    self.segments = segments
    self.inbox = inbox
    self.verification = verification
    if segments?.duration != nil { setBoundary(after: 0) }
  }

  // MARK: Streams

  /// Writes the files of the camera's stream, and of the new streams that begin when a lost camera
  /// returns.
  ///
  /// Blocks.
  ///
  /// - Parameters:
  ///   - stream: The sink of the camera's frames, and its queue.
  ///   - file: The empty file for the first frames.
  ///   - reconnection: The sinks of the new streams. Nil if the take ends when the camera is lost.
  ///   - notify: Called with each event, and with the progress whenever the queued frames have been
  ///     stored.
  /// - Returns: The report. Its `problem` is an error that occurred after the start of the take.
  /// - Throws: `MediaError` if no frame was stored. The file is then removed.
  consuming func write(
    from stream: Reconnection.Stream, into file: consuming MovieFile,
    reconnection: Reconnection? = nil, _ notify: (Event) -> Void
  ) throws(MediaError) -> Written {
    var stream = stream
    var file = file
    while true {
      var report: RecordingReport?
      var failure: MediaError?
      do throws(MediaError) {
        let ended = try writeStream(&stream, into: file, reconnection, notify)
        notify(.didEndStream(ended))
        report = ended
      } catch {
        guard !reports.isEmpty else { throw error }
        failed(configuration.settings.path, error, notify)
        failure = error
      }
      let end = stream.sink.end ?? CaptureEnd()
      guard let timeout = segments?.reconnectTimeout, let reconnection,
        [.deviceLost, .reconfigured].contains(end.stopReason),
        configuration.control.requestedStop == nil
      else {
        if let report { reports.append(report) }
        return try written(end, isReported: report == nil, problem: failure)
      }
      if let report { finished(report, notify) }
      notify(.file(.waitingForDevice))
      guard let next = reconnection.next(after: stream, timeout: timeout) else {
        return try written(
          end, isReported: true, stoppedBy: configuration.control.requestedStop)
      }
      stream = next
      do throws(MediaError) {
        let next = try makeFile(nextPath, .deviceLost, notify)
        number += 1
        isReconnecting = true
        configuration = next.configuration
        file = next.file
      } catch {
        configuration.control.stop(.error)
        return try written(end, isReported: true, problem: error)
      }
      configuration.controls = configuration.input.controlValues()
      // The time without a camera is in no file, so the audio is aligned anew at the start of the
      // next file. An assignment to `remainder?.audio` would leak the old audio: Swift 6.3 does not
      // release a field that is replaced inside an optional of a noncopyable type.
      if var kept = remainder {
        kept.audio = nil
        remainder = kept
      }
    }
  }

  /// Writes frames until the queue of a stream is closed and empty.
  ///
  /// If the session sets the camera to another rate meanwhile, the frames of the next stream follow in
  /// the same file.
  ///
  /// - Returns: The report of the last file.
  /// - Throws: `MediaError` if no frame was stored in the last file. The file is then removed.
  private mutating func writeStream(
    _ stream: inout Reconnection.Stream, into file: consuming MovieFile,
    _ reconnection: Reconnection?, _ notify: (Event) -> Void
  ) throws(MediaError) -> RecordingReport {
    let maximumUnflushedFrames = maximumUnflushedFrames
    var writer = TakeFileWriter(
      configuration, into: file, unflushedFrames: maximumUnflushedFrames, after: remainder)
    var gauge = QueueGauge()
    if configuration.settings.isBurst { waitForBurst(in: stream.queue, notify) }
    var isPaused = false
    var unflushedCount = 0
    while let frame = nextFrame(of: &stream, reconnection, &writer) {
      let queue = stream.queue
      if mayDivide, let next = nextFile(before: frame, writer, notify) {
        close(&writer, before: frame.observation, next.reason)
        do throws(MediaError) { finished(try writer.finish(verification), notify) } catch {
          failed(configuration.settings.path, error, notify)
        }
        configuration = next.configuration
        writer = TakeFileWriter(
          configuration, into: next.file, unflushedFrames: maximumUnflushedFrames,
          after: remainder)
      }
      let outcome = writer.store(frame)
      if isReconnecting, outcome != nil { reconnect(at: frame.observation) }
      queue.release(before: queue.startNumber + 1)
      if let outcome, (outcome == .paused) != isPaused {
        isPaused.toggle()
        notify(.pause(isPaused, path: configuration.settings.path))
      }
      if let reason = writer.limitReason { configuration.control.stop(reason) }
      if queue.isClosed, !mayContinue, reconnection?.mayContinue(stream) != true {
        configuration.audio?.end(behind: queue)
      }
      unflushedCount += 1
      // Each update of the progress, and each write of journal records, has a fixed cost. Frames
      // that are queued together therefore share one update.
      guard queue.isEmpty || unflushedCount >= maximumUnflushedFrames else { continue }
      unflushedCount = 0
      if inbox.hasValues { writer.add(inbox.takeValues()) }
      writer.flush()
      if let change = gauge.change(refused: writer.refusedCount, queue) {
        notify(.queue(isFull: change, path: configuration.settings.path))
      }
      notify(.file(.progress(progress(writer.progress(queueFill: queue.fillLevel)))))
    }
    if gauge.isFull { notify(.queue(isFull: false, path: configuration.settings.path)) }
    if inbox.hasValues { writer.add(inbox.takeValues()) }
    writer.close(end(of: stream.sink))
    didClose(writer)
    return try writer.finish(verification)
  }

  /// Waits for the next frame of a stream, or of the stream that continues it in the same file.
  ///
  /// - Returns: The frame, or nil at the end.
  private func nextFrame(
    of stream: inout Reconnection.Stream, _ reconnection: Reconnection?,
    _ writer: inout TakeFileWriter
  ) -> QueuedFrame? {
    while !stream.queue.waitForFrame(at: stream.queue.startNumber) {
      guard let next = reconnection?.continuation(of: stream) else { return nil }
      writer.startStream(frameRate: next.frameRate)
      stream = next
    }
    return stream.queue[stream.queue.startNumber]
  }

  /// The number of frames after which their journal records are written: the frames of 20 ms, but
  /// at most 8.
  ///
  /// The number is rounded up, so that records are written only once each time the queue wakes the
  /// writer. If the process is killed, at most this many stored frames are lost.
  private var maximumUnflushedFrames: Int {
    max(
      1,
      min(8, Int((configuration.input.negotiatedFrameRate.doubleValue / 50).rounded(.up))))
  }

  /// Waits until all frames of a burst are in the queue, because they are written only after the
  /// end of the burst.
  private func waitForBurst(in queue: FrameQueue, _ notify: (Event) -> Void) {
    let period = configuration.input.negotiatedFrameRate.frameDuration
    while !queue.isClosed {
      queue.pause(at: queue.endNumber)
      let count = Int64(queue.endNumber)
      notify(
        .file(
          .progress(
            MovieFileOutput.Progress(
              stored: count, missing: 0,
              duration: MediaTime(exactly: period * Rational(count)) ?? .zero,
              queueFill: queue.fillLevel, bytes: 0,
              levels: configuration.audio?.feed.levels ?? []))))
    }
  }

  // MARK: Files

  /// Whether the next frame may begin another file.
  private var mayDivide: Bool { boundary != .max || inbox.hasPaths }

  /// Whether the take may continue after a loss of its camera.
  private var mayContinue: Bool { segments?.reconnectTimeout != nil }

  /// The path of the take's next file.
  private var nextPath: String { segments?.filePath(number + 1) ?? "" }

  /// Sets `boundary` to the end of the segment that contains a time of the take.
  private mutating func setBoundary(after time: Int64) {
    guard let duration = segments?.duration?.seconds, duration > .zero else { return }
    // A segment starts at the first whole microsecond at or after its exact start time.
    func start(_ segment: Int64) -> Int64 {
      (try? (duration * Rational(segment) * 1_000_000).rounded(.towardPositiveInfinity))
        .flatMap { Int64(exactly: $0) } ?? .max
    }
    let passed = try? (Rational(time) / (duration * 1_000_000)).rounded(.towardNegativeInfinity)
    segment = max(segment, passed.flatMap { Int64(exactly: $0) } ?? segment)
    if start(segment + 1) <= time { segment += 1 }
    boundary = start(segment + 1)
  }

  /// Creates the next file if it begins with this frame, and returns it.
  ///
  /// Returns nil if the current file continues.
  ///
  /// If the next file cannot be created, the current file continues, so that no frame is lost.
  private mutating func nextFile(
    before frame: QueuedFrame, _ writer: borrowing TakeFileWriter, _ notify: (Event) -> Void
  ) -> Next? {
    let time = fileStart &+ writer.time(of: frame)
    guard time >= boundary || inbox.hasPaths, writer.canEnd(before: frame) else { return nil }
    let requested = inbox.takePath()
    let path = requested ?? nextPath
    if time >= boundary { setBoundary(after: time) }
    do throws(MediaError) {
      let next = try makeFile(path, requested == nil ? .duration : .stopped, notify)
      number += 1
      fileStart = time
      return next
    } catch {
      failed(path, error, notify)
      return nil
    }
  }

  private func makeFile(
    _ path: String, _ reason: StopReason, _ notify: (Event) -> Void
  ) throws(MediaError) -> Next {
    var configuration = configuration
    configuration.settings.path = path
    configuration.beginsWithStream = false
    _ = try configuration.settings.plan(for: configuration.input.delivery)
    let file = try configuration.settings.makeFile()
    notify(.file(.didStart(path: path)))
    return Next(configuration: configuration, file: file, reason: reason)
  }

  /// Closes a file before the first frame of the next file.
  private mutating func close(
    _ writer: inout TakeFileWriter, before frame: FrameObservation, _ reason: StopReason
  ) {
    var end = CaptureEnd(stopReason: reason)
    end.frames.next = frame
    writer.close(end, before: frame)
    didClose(writer)
  }

  /// Adds a closed file to the account and the progress of the take, and keeps what continues in the
  /// next file.
  private mutating func didClose(_ writer: borrowing TakeFileWriter) {
    if account == nil { account = writer.account } else { account?.append(writer.account) }
    earlier = progress(writer.progress(queueFill: 0))
    remainder = writer.remainder
  }

  /// The final state of the capture at the end of a stream, for the report of the stream's last
  /// file.
  private func end(of sink: TakeSink) -> CaptureEnd {
    var end = sink.end ?? CaptureEnd()
    // The frame periods after the last frame are lost if the camera returns, otherwise their
    // outcome is unknown. The frame account of the file therefore omits these periods. Only the
    // frame account of the take counts them.
    if mayContinue, end.stopReason == .deviceLost { end.frames.silence = nil }
    return end
  }

  /// Adds the report of a finished file.
  private mutating func finished(_ report: RecordingReport, _ notify: (Event) -> Void) {
    reports.append(report)
    notify(.file(.didFinish(report)))
  }

  /// Records that a file of the take was not written.
  private mutating func failed(_ path: String, _ error: MediaError, _ notify: (Event) -> Void) {
    warnings.append("\(path) was not written: \(error.message)")
    notify(.file(.didFail(path: path, error)))
  }

  // MARK: The whole take

  /// Adds the time without a camera to the frame account, up to the first frame of the returned
  /// camera.
  private mutating func reconnect(at frame: FrameObservation) {
    isReconnecting = false
    account?.reconnect(atMicroseconds: frame.microseconds)
    fileStart = account?.clock.time(ofMicroseconds: frame.microseconds) ?? 0
    if segments?.duration != nil { setBoundary(after: fileStart) }
  }

  /// The progress of the take, given the progress of the current file.
  private func progress(_ file: MovieFileOutput.Progress) -> MovieFileOutput.Progress {
    guard let earlier else { return file }
    var all = file
    all.stored += earlier.stored
    all.missing += earlier.missing
    all.duration = MediaTime(
      microseconds: earlier.duration.wholeMicroseconds &+ file.duration.wholeMicroseconds)
    all.bytes += earlier.bytes
    return all
  }

  /// The report of the whole take, with its files.
  ///
  /// - Parameters:
  ///   - end: The end of the last stream.
  ///   - isReported: Whether the end of the last file was already sent as an event.
  ///   - reason: The reason for a stop that was requested after the last file, or nil.
  ///   - problem: The error after the last file, or nil.
  /// - Returns: The report.
  /// - Throws: `MediaError` with `.nothingStored` if no file has frames.
  private mutating func written(
    _ end: CaptureEnd, isReported: Bool = false, stoppedBy reason: StopReason? = nil,
    problem: MediaError? = nil
  ) throws(MediaError) -> Written {
    if let warning = remainder?.values.warning {
      if segments == nil, !reports.isEmpty { reports[0].warnings.append(warning) }
      warnings.append(warning)
    }
    guard var whole = reports.first, let last = reports.last else {
      throw MediaError(.nothingStored, "no frame of \(path) was stored")
    }
    whole.path = path
    whole.duration = MediaTime(
      microseconds: reports.reduce(0) { $0 &+ $1.duration.wholeMicroseconds })
    whole.pauses = reports.flatMap(\.pauses)
    whole.stoppedBy =
      reason
      ?? problem.map { $0.code == .diskFull ? .diskFull : .error } ?? last.stoppedBy
    whole.problem = problem ?? (reason == nil ? last.problem : nil)
    whole.isPlayable = reports.allSatisfy(\.isPlayable)
    whole.cost = last.cost
    whole.warnings = warnings + reports.flatMap(\.warnings)
    (whole.intervals, whole.audio, whole.video, whole.trigger) = (nil, nil, nil, nil)
    if segments != nil, var account {
      if mayContinue, end.stopReason == .deviceLost { account.addSilence(end.frames) }
      (whole.ledger, whole.gaps) = (account.ledger, account.gaps)
      whole.measuredFrameRate = account.measuredFrameRate
      whole.timestampQuantum = account.timestampQuantum
      whole.startupDuration = account.startupDuration
      // A writer may have accepted frames that its file does not contain.
      let lost = min(whole.ledger.stored, reports.reduce(0) { $0 + $1.ledger.lostWriter })
      whole.ledger.stored -= lost
      whole.ledger.lostWriter += lost
    }
    return Written(report: SegmentedReport(take: whole, files: reports), isReported: isReported)
  }
}

/// Tracks whether a queue of frames counts as full.
///
/// The queue counts as full from the time at which it rejects a frame until it is less than half
/// full.
private struct QueueGauge {
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
