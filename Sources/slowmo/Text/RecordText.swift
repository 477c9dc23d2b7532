// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// Text lines about recordings and captures.
enum RecordText {
  static func lines(_ report: RecordingReport) -> [String] {
    let ledger = report.ledger
    let measured = report.measuredFrameRate.map { decimal($0.doubleValue, 3) } ?? "unknown"
    var lines = [
      "\(report.path): \(ledger.stored) frames in "
        + "\(decimal(report.duration.doubleValue, 3)) s, \(report.codec?.rawValue ?? "nothing"), "
        + "mode \(report.mode)",
      "rate: requested \(decimal(report.requestedFrameRate.doubleValue, 3)), "
        + "negotiated \(decimal(report.negotiatedFrameRate.doubleValue, 3)), measured \(measured)"
        + (report.rateCause.map { ": \($0.summary)" } ?? ""),
      ledgerLine(ledger),
    ]
    if let video = report.video { lines.append(line(video)) }
    lines += gapLines(report.gaps)
    if let intervals = report.intervals {
      func milliseconds(_ time: Duration) -> String { decimal(time.doubleValue * 1e3, 3) }
      lines.append(
        "intervals: median \(milliseconds(intervals.p50)) ms, p99 "
          + "\(milliseconds(intervals.p99)) ms, longest \(milliseconds(intervals.max)) ms")
    }
    if let mark = report.trigger {
      lines.append(
        "trigger: \(mark.source.rawValue) at \(decimal(mark.time.doubleValue, 6)) s, "
          + (mark.frameIndex.map { "frame \($0)" } ?? "before the first frame"))
    }
    lines += report.audio.map(self.lines) ?? ["audio: none"]
    lines.append(
      "stopped by \(report.stoppedBy.rawValue), \(report.isPlayable ? "playable" : "not playable")")
    return lines
  }

  /// Returns a line of text for each file, followed by the lines for the whole recording.
  static func lines(_ report: SegmentedReport) -> [String] {
    report.files.map { file in
      "\(file.path): \(file.ledger.stored) frames in \(decimal(file.duration.doubleValue, 3)) s, "
        + "\(file.ledger.dropped) lost, \(file.isPlayable ? "playable" : "not playable")"
    } + lines(report.take)
  }

  /// Returns the lines of text for each clip and for the whole triggered capture.
  static func lines(_ capture: TriggeredReport) -> [String] {
    let ledger = capture.ledger
    return capture.clips.flatMap(lines) + [
      "capture: \(ledger.expected) frames: \(ledger.stored) stored in \(capture.clips.count) "
        + "\(capture.clips.count == 1 ? "clip" : "clips"), \(ledger.evicted) evicted, "
        + "\(ledger.dropped) lost; ring peak "
        + "\(decimal(Double(capture.ringPeak) / 1_048_576, 1)) MiB"
        + (capture.ignoredTriggerCount == 0
          ? "" : "; \(capture.ignoredTriggerCount) triggers ignored")
    ]
  }

  static func ledgerLine(_ ledger: FrameLedger) -> String {
    "ledger: expected \(ledger.expected) = stored \(ledger.stored) + corrupt \(ledger.corrupt)"
      + " + lost (start \(ledger.lostStart), device \(ledger.lostDevice), "
      + "kernel \(ledger.lostKernel), queue \(ledger.lostQueue), writer \(ledger.lostWriter))"
      + " + evicted \(ledger.evicted) + unknown \(ledger.unknown)"
      + (ledger.isBalanced ? "" : "  DOES NOT ADD UP")
  }

  static func line(_ video: RecordedVideo) -> String {
    func megabits(_ value: Int64) -> String { "\(decimal(Double(value) / 1e6, 2)) Mbit/s" }
    return "video: \(video.codec)"
      + (video.profile.map { ", \($0) profile" } ?? "")
      + (video.level.map { ", level \($0)" } ?? "")
      + ", \(megabits(video.bitRate))"
      + (video.maximumBitRate.map { " of at most \(megabits($0))" } ?? "")
  }

  static func gapLines(_ gaps: [FrameGap]) -> [String] {
    var lines = gaps.prefix(10).map { gap in
      "gap: \(gap.count) after frame \(gap.afterIndex) at "
        + "\(decimal(gap.time.doubleValue, 6)) s, \(gap.cause.rawValue)"
    }
    if gaps.count > 10 { lines.append("gap: and \(gaps.count - 10) more") }
    return lines
  }
}

extension FrameRateMismatchReason {
  /// The reason for the wrong frame rate as text.
  ///
  /// If the user can solve the problem, the text says how.
  fileprivate var summary: String {
    switch self {
    case .driverClamp:
      "the driver does not support the requested rate; see slowmo modes for the supported rates"
    case .lowLight: "the camera extends the exposure in low light; add light"
    case .exposure: "the exposure is longer than a frame period; reduce exposure_time_absolute"
    case .bandwidth: "frames are lost on the bus; use a compressed mode or another port"
    case .falseReport: "the camera does not run at the rate that its driver reports"
    }
  }
}

/// Formats a number with a decimal point, independent of the locale.
func decimal(_ value: Double, _ digits: Int) -> String {
  guard value.isFinite, abs(value) < 1e12 else { return "\(value)" }
  var scale = 1.0
  for _ in 0..<digits { scale *= 10 }
  return Rational.decimals(Int128((value * scale).rounded()), count: digits)
}

extension RecordText {
  /// Returns the text lines about the audio of a recording.
  static func lines(_ audio: RecordedAudio) -> [String] {
    func milliseconds(_ time: Duration) -> String { decimal(time.doubleValue * 1e3, 3) }
    var parts = [
      "audio: \(audio.device), \(audio.codec), \(audio.sampleRate) Hz, \(audio.channelCount) ch"
    ]
    if let offset = audio.startOffset {
      parts.append("starts \(milliseconds(offset)) ms after the first frame")
    } else {
      parts.append("no samples received")
    }
    if let drift = audio.driftPPM { parts.append("drift \(decimal(drift, 2)) ppm, corrected") }
    if let error = audio.maxSyncError {
      parts.append("maximum sync error \(milliseconds(error)) ms")
    }
    var lines = [parts.joined(separator: ", ")]
    for gap in audio.gaps.prefix(10) {
      lines.append(
        "audio gap: \(gap.sampleCount) samples at "
          + "\(decimal(gap.time.doubleValue, 6)) s, \(gap.cause.rawValue)")
    }
    if audio.gaps.count > 10 { lines.append("audio gap: and \(audio.gaps.count - 10) more") }
    return lines
  }
}
