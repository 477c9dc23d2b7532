// SPDX-License-Identifier: Apache-2.0
public import Capture
import FormatDiscovery
import LibAV
import MediaTiming
import Synchronization

/// Records what a session captures into a movie file.
///
/// While it grows the file is written in fragments of 250 ms, so that a kill loses no more than
/// the last of them; at the end it becomes a plain movie.
///
/// ```swift
/// let output = try MovieFileOutput(session: session, settings: RecordingSettings(path: "a.mov"))
/// let report = try output.record()
/// ```
public final class MovieFileOutput: Sendable {
  /// Where the frames come from.
  public let session: CaptureSession
  /// What the take is to become.
  public let settings: RecordingSettings
  private let plan: PicturePlan
  private let control = CaptureControl()

  /// What may be told while a take is recorded.
  public struct Progress: Hashable, Sendable {
    /// Frames stored so far.
    public var stored: Int64
    /// Frames missing so far, of any cause.
    public var missing: Int64
    /// Seconds of the take so far, for display.
    public var seconds: Double
    /// How full the queue to the writer is, from 0 to 1, for display.
    public var queueFill: Double
    /// Bytes written so far.
    public var bytes: Int64
  }

  /// Checks that the settings go with what the session delivers; no file is touched yet.
  ///
  /// - Throws: `RecordingError` with `.codecRefused` and what to choose instead.
  public init(session: CaptureSession, settings: RecordingSettings) throws(RecordingError) {
    self.session = session
    self.settings = settings
    plan = try PicturePlan(settings.codec, for: session.delivery)
  }

  /// Ends the take; may be called from any thread, also before it has begun.
  public func stop() { control.stop(.signal) }

  /// Records until a limit is reached, ``stop()`` is called or something fails; blocks till then.
  ///
  /// - Parameter progress: Called on this thread after each frame.
  /// - Returns: The report; its `problem` tells what went wrong after the take had begun.
  /// - Throws: `RecordingError` when the file cannot be created, `CaptureError` when the device
  ///   cannot be started and nothing was recorded.
  public func record(progress: (Progress) -> Void = { _ in }) throws -> RecordingReport {
    let queue = try FrameQueue(capacity: queueCapacity)
    var file: MovieFile
    do throws(MovieFile.CreationError) {
      file = try MovieFile(creating: settings.path, overwrites: settings.overwrites, grows: true)
    } catch { throw RecordingError(error) }
    let capture: RunningCapture
    var proof: FrameRateProof?
    do throws(CaptureError) {
      if settings.provesFrameRate, session.device.kind == .v4l2 {
        proof = try session.proveFrameRate { control.requestedStop != nil }
      }
      capture = try RunningCapture(
        session: session, limit: settings.limit, queue: queue, control: control)
    } catch {
      file.discard()
      throw error
    }
    let startOfWriting = CaptureCost.threadNanoseconds()
    var writer = makeWriter(path: file.writtenPath)
    var failure: LibAVError?
    while let error = queue.withNextFrame({ frame -> LibAVError? in
      guard failure == nil else {
        writer.refuse(frame)
        return nil
      }
      do throws(LibAVError) {
        try writer.store(frame)
        return nil
      } catch { return error }
    }) {
      if let error, failure == nil {
        failure = error
        control.stop(error.isDiskFull ? .diskFull : .error)
      }
      if writer.storedCount > 0 { file.dropReplaced() }
      progress(
        Progress(
          stored: writer.storedCount, missing: writer.account.ledger.dropped,
          seconds: Double(writer.endMicroseconds) / 1_000_000, queueFill: queue.fillLevel,
          bytes: writer.byteCount))
    }
    var end = capture.end()
    end.cost.writerThread = CaptureCost.threadNanoseconds() - startOfWriting
    writer.close(end)
    do throws(LibAVError) { try writer.finish() } catch { failure = failure ?? error }
    if writer.storedCount > 0 {
      let report = report(writer, end, failure, proof)
      if report.ledger.stored > 0 { return report }
    }
    file.discard()
    if let error = end.error { throw error }
    throw failure.map(RecordingError.init)
      ?? RecordingError(
        .nothingStored, "\(session.deviceName) delivered no frame that could be stored",
        hint: "check the camera, or record for longer")
  }

  /// Two seconds of frames, within reason: a stalled writer loses nothing before that.
  private var queueCapacity: Int {
    let frame = Double(session.maximumByteCount)
    let seconds = 2 * frame * session.negotiatedFrameRate.doubleValue
    // A frame of more than half the queue may never fit, so there is room for four.
    return Int(max(min(max(seconds, 32e6), 512e6), 4 * (frame + 4_096)))
  }

  private func makeWriter(path: String) -> TakeWriter {
    let (session, control) = (session, control)
    return TakeWriter(
      path: path, plan: plan, delivery: session.delivery,
      frameRate: session.negotiatedFrameRate,
      sound: settings.recordsSound ? session.sound : nil,
      soundCodec: settings.soundCodec ?? (plan.isLossless ? .pcm : .aac),
      account: FrameAccount(
        frameRate: session.negotiatedFrameRate, trustsCounter: session.driver.countsExactly
      ) { control.switchedOn.load(ordering: .relaxed) }
    ) { first in
      RecordingTags.metadata(
        frameRate: session.negotiatedFrameRate, recording: Self.tag(session, first, gaps: nil))
    }
  }

  private static func tag(
    _ session: CaptureSession, _ first: FrameObservation, gaps: [FrameGap]?
  ) -> RecordingTags.Recording {
    RecordingTags.Recording(
      device: session.deviceName, mode: session.modeName,
      firstCaptureNs: first.microseconds &* 1_000, firstSequence: Int64(first.stamp.sequence),
      gaps: gaps?.filter { $0.afterIndex >= 0 }.map {
        RecordingTags.Recording.Gap(afterIndex: $0.afterIndex, count: $0.count)
      })
  }

  private func report(
    _ writer: borrowing TakeWriter, _ end: CaptureEnd, _ failure: LibAVError?,
    _ proof: FrameRateProof?
  ) -> RecordingReport {
    var report = RecordingReport(
      requestedFrameRate: session.requestedFrameRate,
      negotiatedFrameRate: session.negotiatedFrameRate)
    report.path = settings.path
    report.mode = session.modeName
    report.ledger = writer.account.ledger
    report.gaps = writer.account.gaps
    report.intervals = FrameIntervals(microseconds: writer.storedMicroseconds)
    report.durationNanoseconds = writer.endMicroseconds.saturatingMultiplied(by: 1_000)
    report.startupNanoseconds = writer.account.startupNanoseconds
    report.stoppedBy = end.stopReason
    report.cost = end.cost
    report.codec = plan.codecName
    report.measuredFrameRate = writer.account.measuredFrameRate
    report.proof = proof
    if session.device.kind == .v4l2 { judgeRate(&report, writer.account) }
    // Of what the writer took, not all may have come out of its encoder and into the file.
    report.keep(first: writer.storedCount, of: writer.storedMicroseconds)
    if let error = end.error {
      report.problem = RecordingError(
        RecordingError.Code(rawValue: error.code.rawValue), error.message, hint: error.hint)
    } else if let failure {
      report.problem = RecordingError(failure)
      if report.stoppedBy != .diskFull { report.stoppedBy = .error }
    }
    finishFile(&report, writer)
    return report
  }

  /// Says why the take's rate is not the one asked for, if it is not, and which controls the
  /// camera would not take back.
  private func judgeRate(_ report: inout RecordingReport, _ account: FrameAccount) {
    var measurement = RateMeasurement()
    measurement.frameRate = account.measuredFrameRate
    measurement.ledger = account.ledger
    if account.ledger.expected > 10 { report.rateCause = session.judge(measurement).cause }
    let names = session.unrestoredControls
    guard !names.isEmpty else { return }
    report.warnings.append(
      "\(session.deviceName) did not take back what was set for the take: "
        + "\(names.joined(separator: ", ")); set it again with: slowmo controls "
        + session.deviceName)
  }

  /// Makes the file plain, and learns by reading it whether it can be played.
  private func finishFile(_ report: inout RecordingReport, _ writer: borrowing TakeWriter) {
    guard let first = writer.first else { return }
    if report.problem?.code == .diskFull || report.problem?.code == .writeFailed {
      // What was handed over and what reached the disk may differ: only the file knows.
      report.keep(
        first: PlainMovie.readablePictures(settings.path), of: writer.storedMicroseconds)
    }
    let rate = taggedRate(&report)
    do {
      let pictures = try PlainMovie.rewrite(
        settings.path, pictureEnd: report.durationNanoseconds / 1_000,
        soundEnd: writer.soundSampleCount,
        metadata: RecordingTags.metadata(
          frameRate: rate,
          recording: Self.tag(session, first, gaps: report.gaps)))
      report.isPlayable = pictures == report.ledger.stored
      if !report.isPlayable {
        report.warnings.append(
          "only \(pictures) of \(report.ledger.stored) stored frames could be read back")
      }
    } catch {
      // The file in fragments is still there under its name, with all that reached the disk.
      report.warnings.append("the file stays in fragments: \(error)")
      let readable = PlainMovie.readablePictures(settings.path)
      report.isPlayable = readable > 0
      report.keep(first: readable, of: writer.storedMicroseconds)
    }
  }

  /// The rate the file is to carry: the granted one, unless the device did not keep it.
  private func taggedRate(_ report: inout RecordingReport) -> FrameRate {
    let granted = session.negotiatedFrameRate
    guard let measured = report.measuredFrameRate, report.ledger.expected > 10,
      abs(measured.doubleValue / granted.doubleValue - 1) > 0.01,
      let rate = Self.storable(measured)
    else { return granted }
    report.warnings.append(
      "the device granted \(granted) frames a second and delivered \(rate.doubleValue); the file "
        + "says what was delivered")
    return rate
  }

  /// The rate itself, or the nearest in whole millionths: a long take's fraction has numbers
  /// that no rate holds.
  private static func storable(_ rate: Rational) -> FrameRate? {
    if let exact = try? FrameRate(rate) { return exact }
    for unit in [1_000_000, 1_000, 1] as [Int64] {
      if let scaled = try? rate.multiplied(by: Rational(unit)).rounded(.halfAwayFromZero),
        let whole = Int64(exactly: scaled), let rate = try? FrameRate(whole, unit)
      {
        return rate
      }
    }
    return nil
  }
}
