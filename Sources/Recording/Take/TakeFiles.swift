// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// The files of a take, one after another, and the frame account of the whole take.
///
/// A frame that is missing between two files is counted in the frame account of the earlier file.
/// Only the thread that writes the take uses this object.
final class TakeFiles {
  /// The next file of a take, which is still empty.
  struct Next: ~Copyable {
    let take: MovieTake
    let path: String
    let file: MovieFile
    /// The reason why the take's previous file ended, for the report of that file.
    let reason: StopReason
  }

  let inbox: TakeInbox
  /// The result of the frame rate verification before the take, or nil.
  let verification: FrameRateVerification?
  /// The reports of the finished files.
  private(set) var reports: [RecordingReport] = []
  private let segments: SegmentSettings?
  /// The number of the take's current file, from 1.
  private var number = 1
  /// The number of the current segment, from 0.
  ///
  /// `boundary` is the time in the take at which the next segment begins, in microseconds.
  private var (segment, boundary): (Int64, Int64) = (0, .max)
  /// The time in the take at which the current file begins, in microseconds.
  private var fileStart: Int64 = 0
  /// The totals of the finished files, which are added to the progress of the current file.
  private var earlier = (
    stored: Int64(0), missing: Int64(0), microseconds: Int64(0), bytes: Int64(0)
  )
  /// The frame account of the whole take.
  ///
  /// Nil for a take without segment settings.
  private var account: FrameAccount?
  /// Whether the camera has returned after a loss, but no frame has arrived since then.
  private var isReconnecting = false
  /// Errors of files that could not be created or have no frames.
  private(set) var warnings: [String] = []

  init(
    _ segments: SegmentSettings?, of take: MovieTake, inbox: TakeInbox,
    verification: FrameRateVerification?
  ) {
    self.segments = segments
    self.inbox = inbox
    self.verification = verification
    if segments != nil {
      let control = take.control
      account = FrameAccount(
        frameRate: take.input.negotiatedFrameRate, trustsCounter: take.input.driver.countsExactly,
        beginsWithStream: take.beginsWithStream
      ) { control.switchedOn.load(ordering: .relaxed) }
    }
    if segments?.duration != nil { setBoundary(after: 0) }
  }

  /// Whether the next frame may begin another file.
  var mayDivide: Bool { boundary != .max || inbox.hasPaths }

  /// Whether the take may continue after a loss of its camera.
  var mayContinue: Bool { segments?.reconnectTimeout != nil }

  /// The path of the take's next file.
  private var nextPath: String { segments?.filePath(number + 1) ?? "" }

  /// Sets `boundary` to the end of the segment that contains a time of the take.
  private func setBoundary(after time: Int64) {
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
  func next(
    before frame: QueuedFrame, _ movie: borrowing TakeRecorder, of take: MovieTake,
    _ notify: (SegmentEvent) -> Void
  ) -> Next? {
    let time = fileStart &+ movie.time(of: frame)
    guard time >= boundary || inbox.hasPaths, movie.canEnd(before: frame) else { return nil }
    let requested = inbox.takePath()
    let path = requested ?? nextPath
    if time >= boundary { setBoundary(after: time) }
    do throws(MediaError) {
      let next = try makeFile(path, of: take, requested == nil ? .duration : .stopped, notify)
      number += 1
      fileStart = time
      return next
    } catch {
      failed(path, error, notify)
      return nil
    }
  }

  /// Creates the file for the frames after a lost camera has returned.
  func next(
    of take: MovieTake, _ notify: (SegmentEvent) -> Void
  ) throws(MediaError) -> Next {
    let next = try makeFile(nextPath, of: take, .deviceLost, notify)
    number += 1
    isReconnecting = true
    return next
  }

  private func makeFile(
    _ path: String, of take: MovieTake, _ reason: StopReason,
    _ notify: (SegmentEvent) -> Void
  ) throws(MediaError) -> Next {
    var take = take
    take.settings.path = path
    take.beginsWithStream = false
    _ = try take.settings.plan(for: take.input.delivery)
    do throws(MovieFile.CreationError) {
      let file = try MovieFile(creating: path, overwrites: take.settings.overwrites)
      notify(.didStart(path: path))
      return Next(take: take, path: path, file: file, reason: reason)
    } catch { throw MediaError(error) }
  }

  /// Closes a file before the first frame of the next file.
  func close(_ movie: inout TakeRecorder, before frame: FrameObservation, _ reason: StopReason) {
    var end = CaptureEnd(stopReason: reason)
    end.frames.next = frame
    movie.close(end, before: frame)
    let progress = movie.progress(queueFill: 0)
    earlier.stored += progress.stored
    earlier.missing += progress.missing
    earlier.microseconds &+= progress.duration.wholeMicroseconds
    earlier.bytes += progress.bytes
  }

  /// Records the outcome of a frame in the frame account of the take.
  func note(_ frame: FrameObservation, _ outcome: FrameOutcome?) {
    guard account != nil, let outcome else { return }
    var frame = frame
    frame.outcome = outcome
    if isReconnecting {
      isReconnecting = false
      account?.reconnect(atMicroseconds: frame.microseconds)
      if let time = account?.clock.time(ofMicroseconds: frame.microseconds) {
        fileStart = time
        if segments?.duration != nil { setBoundary(after: time) }
      }
    }
    account?.record(frame)
  }

  /// The final state of the capture at the end of a stream, for the report of the stream's last
  /// file.
  func end(of sink: TakeSink) -> CaptureEnd {
    var end = sink.end ?? CaptureEnd()
    // The frame periods after the last frame are lost if the camera returns, otherwise their
    // outcome is unknown. The frame account of the file therefore omits these periods. Only the
    // frame account of the take counts them.
    if mayContinue, end.stopReason == .deviceLost { end.frames.silence = nil }
    return end
  }

  /// Adds the report of a finished file.
  func finished(_ report: RecordingReport, _ notify: (SegmentEvent) -> Void) {
    reports.append(report)
    notify(.didFinish(report))
  }

  /// Adds the report of the take's last file; the caller sends this report as an event.
  func ended(_ report: RecordingReport) { reports.append(report) }

  /// Records that a file of the take was not written.
  func failed(_ path: String, _ error: MediaError, _ notify: (SegmentEvent) -> Void) {
    warnings.append("\(path) was not written: \(error.message)")
    notify(.didFail(path: path, error))
  }

  /// The progress of the take, given the progress of the current file.
  func progress(_ file: MovieFileOutput.Progress) -> MovieFileOutput.Progress {
    guard earlier.stored > 0 else { return file }
    var all = file
    all.stored += earlier.stored
    all.missing += earlier.missing
    all.duration = MediaTime(
      microseconds: earlier.microseconds &+ file.duration.wholeMicroseconds)
    all.bytes += earlier.bytes
    return all
  }

  /// The report of the whole take, with its files.
  ///
  /// - Parameters:
  ///   - end: The end of the last stream.
  ///   - path: The path of the take.
  ///   - values: The metadata values whose frames are not stored yet.
  ///   - isReported: Whether the end of the last file was already sent as an event.
  ///   - reason: The reason for a stop that was requested after the last file, or nil.
  ///   - problem: The error after the last file, or nil.
  /// - Returns: The report.
  /// - Throws: `MediaError` with `.nothingStored` if no file has frames.
  func report(
    _ end: CaptureEnd, path: String, _ values: PendingValues?, isReported: Bool = false,
    stoppedBy reason: StopReason? = nil, problem: MediaError? = nil
  ) throws(MediaError) -> MovieFileOutput.Written {
    if let warning = values?.warning {
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
    whole.stoppedBy = reason ?? (problem == nil ? last.stoppedBy : .error)
    whole.problem = problem ?? (reason == nil ? last.problem : nil)
    whole.isPlayable = reports.allSatisfy(\.isPlayable)
    whole.cost = last.cost
    whole.warnings = warnings + reports.flatMap(\.warnings)
    (whole.intervals, whole.audio, whole.video, whole.trigger) = (nil, nil, nil, nil)
    if var account {
      account.close(end.frames)
      (whole.ledger, whole.gaps) = (account.ledger, account.gaps)
      whole.measuredFrameRate = account.measuredFrameRate
      whole.timestampQuantum = account.timestampQuantum
      whole.startupDuration = account.startupDuration
      // A writer may have accepted frames that its file does not contain.
      let lost = min(whole.ledger.stored, reports.reduce(0) { $0 + $1.ledger.lostWriter })
      whole.ledger.stored -= lost
      whole.ledger.lostWriter += lost
    }
    return MovieFileOutput.Written(
      report: SegmentedReport(take: whole, files: reports), isReported: isReported)
  }
}
