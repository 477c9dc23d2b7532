// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

extension MovieTake {
  /// Finishes the file and creates the report of the take.
  func report(
    _ writer: borrowing TakeWriter, _ end: CaptureEnd, _ failure: CallFailure?,
    _ verification: FrameRateVerification?, of file: inout MovieFile
  ) -> RecordingReport {
    var report = RecordingReport(
      requestedFrameRate: input.requestedFrameRate,
      negotiatedFrameRate: input.negotiatedFrameRate)
    report.path = settings.path
    report.mode = input.modeName
    report.ledger = writer.account.ledger
    report.gaps = writer.account.gaps
    report.pauses = writer.pauses
    report.intervals = FrameIntervals(microseconds: writer.storedMicroseconds)
    report.duration = MediaTime(microseconds: writer.endMicroseconds)
    report.startupDuration = writer.account.startupDuration
    report.stoppedBy = end.stopReason
    report.cost = end.cost
    report.codec = plan.codec
    report.video = writer.video
    report.measuredFrameRate = writer.account.measuredFrameRate
    report.timestampQuantum = writer.account.timestampQuantum
    report.frameRateVerification = verification
    report.audio = writer.audioAccount
    noteZoom(&report, writer)
    if input.device.kind == .v4l2 { judgeRate(&report, writer.account) }
    // The writer may have accepted frames that the encoder or the file never stored.
    report.keep(first: writer.storedCount, of: writer.storedMicroseconds)
    if let error = end.error {
      report.problem = error
    } else if let failure {
      report.problem = MediaError(recording: failure)
      report.stoppedBy = TakeRecorder.reason(to: failure)
    }
    report.trigger = mark(writer)
    finishFile(&file, &report, writer)
    if !file.hasItsName {
      report.problem = MediaError(replacing: file.file)
      report.isPlayable = false
    } else if !report.isPlayable, report.problem == nil {
      report.problem = MediaError(
        .writeFailed, "\(settings.path) cannot be played to its end",
        recovery: "check the disk, and record again")
    } else {
      return report
    }
    if report.stoppedBy != .diskFull { report.stoppedBy = .error }
    return report
  }

  /// The position of the trigger in the file, or nil for a take without a trigger.
  private func mark(_ writer: borrowing TakeWriter) -> TriggerMark? {
    guard let trigger, let first = writer.first else { return nil }
    let time = trigger.microseconds &- first.microseconds
    return TriggerMark(
      source: trigger.source, captureTime: trigger.time,
      frameIndex: writer.storedMicroseconds.lastIndex { $0 <= time }.map(Int64.init),
      time: MediaTime(microseconds: time))
  }

  /// Adds a warning if copied frames contain more of the image than the zoom shows.
  private func noteZoom(_ report: inout RecordingReport, _ writer: borrowing TakeWriter) {
    report.cleanAperture = writer.cleanAperture
    if let aperture = writer.cleanAperture {
      let (width, height) = (aperture.width.doubleValue, aperture.height.doubleValue)
      report.warnings.append(
        "copied frames keep the whole image; the file asks players to show \(width)x\(height) of it "
          + "(clap)")
    }
    if writer.hasOtherZoom {
      report.warnings.append("the zoom changed during the take, which copied frames do not show")
    }
  }

  /// Sets the reason for a frame rate that differs from the requested one, and adds a warning about
  /// controls that could not be restored.
  private func judgeRate(_ report: inout RecordingReport, _ account: FrameAccount) {
    var measurement = RateMeasurement()
    measurement.frameRate = account.measuredFrameRate
    measurement.ledger = account.ledger
    measurement.timestampQuantum = account.timestampQuantum
    if account.ledger.expected > 10 { report.rateCause = input.judge(measurement).cause }
    let names = input.unrestoredControls
    guard !names.isEmpty else { return }
    report.warnings.append(
      "could not restore these controls of \(input.device.address): "
        + names.joined(separator: ", "))
  }

  /// Converts the file to a plain (unfragmented) movie, and checks that the movie is readable.
  private func finishFile(
    _ file: inout MovieFile, _ report: inout RecordingReport, _ writer: borrowing TakeWriter
  ) {
    guard let first = writer.first else { return }
    file.prepareToFinish()
    if report.problem?.code == .diskFull || report.problem?.code == .writeFailed {
      // After a write error, the writer does not know which frames reached the disk, so the file is
      // read back.
      if let count = readable(file.file, writer) {
        report.keep(first: count, of: writer.storedMicroseconds)
      }
    }
    let rate = taggedRate(&report)
    do throws(CallFailure) {
      let counts = try RecordedMovie.finish(
        file.file,
        ends: [.at(report.duration.wholeMicroseconds), .at(writer.audioSampleCount)],
        metadata: tags(
          first, leadIn: Int(writer.leadInCount), frameRate: rate, gaps: report.gaps),
        chapters: RecordingTags.chapters(
          ofTriggersAt: markedTriggers.map { $0.microseconds &- first.microseconds },
          frameRate: rate, end: report.duration.wholeMicroseconds))
      let images = counts.first ?? 0
      if settings.isOptimizedForNetworkUse { moveIndex(of: &file, &report) }
      report.isPlayable =
        images == report.ledger.stored + writer.leadInCount && RecordedMovie.canOpen(file.file)
      if !report.isPlayable {
        report.warnings.append(
          "only \(images) of \(report.ledger.stored) stored frames could be read back")
      }
    } catch {
      // The fragmented file still exists and contains all data that reached the disk, so the take
      // counts as playable if it can be read.
      let cause = MediaError(recording: error)
      report.problem =
        report.problem
        ?? MediaError(
          cause.code, "\(settings.path) could not be finalized: \(cause.message)",
          recovery: Recovery("recover what was recorded", .recover(file: settings.path)))
      if report.stoppedBy != .diskFull { report.stoppedBy = .error }
      let readable = readable(file.file, writer)
      report.isPlayable = readable ?? 0 > 0
      if let readable { report.keep(first: readable, of: writer.storedMicroseconds) }
    }
  }

  /// Moves the index to the start of the file if the settings request it.
  private func moveIndex(of file: inout MovieFile, _ report: inout RecordingReport) {
    do throws(CallFailure) { try FastStart.apply(to: &file) } catch {
      report.warnings.append("the index stays at the end of the file: \(error)")
    }
  }

  /// The number of readable frames, without the hidden ones.
  ///
  /// Nil if the file cannot be opened.
  private func readable(_ file: OpenFile, _ writer: borrowing TakeWriter) -> Int64? {
    RecordedMovie.readableFrames(file).map { max(0, $0 - writer.leadInCount) }
  }

  /// The capture rate for the file's tags: the negotiated rate, or the measured rate if the device
  /// missed the negotiated one.
  private func taggedRate(_ report: inout RecordingReport) -> FrameRate {
    let granted = input.negotiatedFrameRate
    guard let measured = report.measuredFrameRate, report.ledger.expected > 10,
      abs(measured.doubleValue / granted.doubleValue - 1) > 0.01,
      let rate = Self.storable(measured)
    else { return granted }
    report.warnings.append(
      "the device accepted \(granted) fps but delivered \(rate.doubleValue); the file states the "
        + "delivered rate")
    return rate
  }

  /// The exact rate if its numerator and denominator fit 32 bits, else the rate rounded to a
  /// millionth.
  ///
  /// The measured rate of a long take may not fit.
  private static func storable(_ rate: Rational) -> FrameRate? {
    if let exact = FrameRate(exactly: rate) { return exact }
    for unit in [1_000_000, 1_000, 1] as [Int64] {
      if let scaled = try? (rate * Rational(unit)).rounded(.halfAwayFromZero),
        let rate = FrameRate(exactly: Rational(scaled) / Rational(unit))
      {
        return rate
      }
    }
    return nil
  }
}
