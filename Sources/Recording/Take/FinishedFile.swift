// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// A file of a take after its last frame, which is still fragmented.
///
/// Converts the file to a plain movie, and creates its report.
struct FinishedFile {
  let configuration: TakeConfiguration
  /// The camera's mode at the start of the file.
  let mode: TakeConfiguration.Mode
  let timeline: TakeTimeline
  let video: RecordedVideo?
  let audio: RecordedAudio?
  /// The number of audio samples per channel in the file.
  let audioSampleCount: Int64
  /// The number of hidden frames in the file before the first shown frame.
  let leadInCount: Int64
  /// The part of each copied frame that players should show, or nil for the whole frame.
  let cleanAperture: CleanAperture?
  /// Whether the zoom changed after the first of the copied frames.
  let hasOtherZoom: Bool
  /// The triggers that the file marks with chapters.
  let markedTriggers: [CaptureTrigger]

  private var account: FrameAccount { timeline.account }
  private var input: DeviceInput { configuration.input }
  private var path: String { configuration.settings.path }

  /// Finishes the file, and creates the report of the take.
  func report(
    _ end: CaptureEnd, _ failure: CallFailure?, _ verification: FrameRateVerification?,
    of file: inout MovieFile
  ) -> RecordingReport {
    var report = RecordingReport(
      requestedFrameRate: mode.requestedFrameRate,
      negotiatedFrameRate: mode.negotiatedFrameRate)
    report.path = path
    report.mode = mode.name
    report.ledger = account.ledger
    report.gaps = account.gaps
    report.pauses = timeline.pauses
    report.intervals = FrameIntervals(microseconds: timeline.storedMicroseconds)
    report.duration = MediaTime(microseconds: timeline.endMicroseconds)
    report.startupDuration = account.startupDuration
    report.stoppedBy = end.stopReason
    report.cost = end.cost
    report.codec = configuration.plan.codec
    report.video = video
    report.measuredFrameRate = account.measuredFrameRate
    report.timestampQuantum = account.timestampQuantum
    report.frameRateVerification = verification
    report.audio = audio
    noteZoom(&report)
    for change in timeline.rateChanges {
      report.warnings.append(
        "the camera was set to \(change.frameRate.doubleValue) fps at \(change.time.displayText) s; the "
          + "file states the first rate")
    }
    if input.device.kind == .v4l2 { judgeRate(&report) }
    // The writer may have accepted frames that the encoder or the file never stored.
    report.keep(first: timeline.storedCount, of: timeline.storedMicroseconds)
    if let error = end.error {
      report.problem = error
    } else if let failure {
      report.problem = MediaError(recording: failure)
      report.stoppedBy = failure.stopReason
    }
    report.trigger = mark
    finishFile(&file, &report)
    if !file.hasItsName {
      report.problem = MediaError(replacing: file.file)
      report.isPlayable = false
    } else if !report.isPlayable, report.problem == nil {
      report.problem = MediaError(
        .writeFailed, "\(path) cannot be played to its end",
        recovery: "check the disk, and record again")
    } else {
      return report
    }
    if report.stoppedBy != .diskFull { report.stoppedBy = .error }
    return report
  }

  /// The position of the trigger in the file, or nil for a take without a trigger.
  private var mark: TriggerMark? {
    guard let trigger = configuration.trigger, let first = timeline.first else { return nil }
    let time = trigger.microseconds &- first.microseconds
    return TriggerMark(
      source: trigger.source, captureTime: trigger.time,
      frameIndex: timeline.storedMicroseconds.lastIndex { $0 <= time }.map(Int64.init),
      time: MediaTime(microseconds: time))
  }

  /// Adds a warning if copied frames contain more of the image than the zoom shows.
  private func noteZoom(_ report: inout RecordingReport) {
    report.cleanAperture = cleanAperture
    if let aperture = cleanAperture {
      let (width, height) = (aperture.width.doubleValue, aperture.height.doubleValue)
      report.warnings.append(
        "copied frames keep the whole image; the file asks players to show \(width)x\(height) of it "
          + "(clap)")
    }
    if hasOtherZoom {
      report.warnings.append(
        "the zoom changed during the take, which copied frames do not show; the factor of each frame "
          + "is stored as \(RecordingTags.zoomFactor)")
    }
  }

  /// Sets the reason for a frame rate that differs from the requested one, and adds a warning about
  /// controls that could not be restored.
  private func judgeRate(_ report: inout RecordingReport) {
    var measurement = RateMeasurement()
    measurement.frameRate = account.measuredFrameRate
    measurement.ledger = account.ledger
    measurement.timestampQuantum = account.timestampQuantum
    // The camera may have been set to another mode since then.
    if account.ledger.expected > 10, input.modeName == mode.name, timeline.rateChanges.isEmpty {
      report.rateCause = input.judge(measurement).cause
    }
    let names = input.unrestoredControls
    guard !names.isEmpty else { return }
    report.warnings.append(
      "could not restore these controls of \(input.device.address): "
        + names.joined(separator: ", "))
  }

  /// Converts the file to a plain (unfragmented) movie, and checks that the movie is readable.
  private func finishFile(_ file: inout MovieFile, _ report: inout RecordingReport) {
    guard let first = timeline.first else { return }
    file.prepareToFinish()
    let rate = taggedRate(&report)
    do throws(CallFailure) {
      let movie = try RecordedMovie(file.file)
      if report.problem?.code == .diskFull || report.problem?.code == .writeFailed {
        // After a write error, the file may lack frames that were counted as stored.
        report.keep(first: shown(movie.frameCount), of: timeline.storedMicroseconds)
      }
      let counts = try movie.finish(
        ends: [.at(report.duration.wholeMicroseconds), .at(audioSampleCount)],
        metadata: configuration.tags(
          first, leadIn: Int(leadInCount), frameRate: rate, gaps: report.gaps),
        chapters: RecordingTags.chapters(
          ofTriggersAt: markedTriggers.map { $0.microseconds &- first.microseconds },
          frameRate: rate, end: report.duration.wholeMicroseconds))
      let images = counts.first ?? 0
      if configuration.settings.isOptimizedForNetworkUse { moveIndex(of: &file, &report) }
      if shown(images) != report.ledger.stored {
        report.warnings.append(
          "only \(shown(images)) of \(report.ledger.stored) stored frames could be read back")
      } else if !RecordedMovie.canOpen(file.file) {
        report.warnings.append("\(path) could not be opened again")
      } else {
        report.isPlayable = true
      }
    } catch {
      // The fragmented file still exists and contains all data that reached the disk, so the take
      // counts as playable if it can be read.
      let cause = MediaError(recording: error)
      report.problem =
        report.problem
        ?? MediaError(
          cause.code, "\(path) could not be finalized: \(cause.message)",
          recovery: Recovery("recover what was recorded", .recover(file: path)))
      if report.stoppedBy != .diskFull { report.stoppedBy = .error }
      let readable = RecordedMovie.readableFrames(file.file).map(shown)
      report.isPlayable = readable ?? 0 > 0
      if let readable { report.keep(first: readable, of: timeline.storedMicroseconds) }
    }
  }

  /// Moves the index to the start of the file if the settings request it.
  private func moveIndex(of file: inout MovieFile, _ report: inout RecordingReport) {
    do throws(CallFailure) { try FastStart.apply(to: &file) } catch {
      report.warnings.append("the index stays at the end of the file: \(error)")
    }
  }

  /// The number of shown frames among the first frames of the file.
  private func shown(_ frames: Int64) -> Int64 { max(0, frames - leadInCount) }

  /// The capture rate for the file's tags: the negotiated rate, or the measured rate if the device
  /// missed the negotiated one.
  private func taggedRate(_ report: inout RecordingReport) -> FrameRate {
    let granted = mode.negotiatedFrameRate
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
