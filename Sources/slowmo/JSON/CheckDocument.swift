// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `check`: the audit, the file and the chart.
struct CheckDocument: Encodable, TextDocument {
  private enum CodingKeys: CodingKey {
    case schema, file, plot, ok, dryRun, framesSynthesized, timesCorrected, notes, limits
    case clock, timeSource, timeScale, timeAssumption
  }

  let file: String
  let plot: String?
  let dryRun: Bool
  let audit: TimingAudit
  let time: MeasuredTime
  /// The number of frames that were synthesized and not captured.
  let framesSynthesized: Int
  /// The number of frames whose stored time contradicts the order of the frames, so that it was
  /// corrected.
  let timesCorrected: Int
  /// The faults of the file that did not prevent reading it.
  let notes: [String]
  /// The limits that the timing does not keep.
  var limits: [BrokenLimit] { BrokenLimit.all(of: audit, file: file) }

  func encode(to encoder: any Encoder) throws {
    try audit.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("check"), forKey: .schema)
    try container.encode(file, forKey: .file)
    try container.encodeIfPresent(plot, forKey: .plot)
    try container.encode(audit.isOK, forKey: .ok)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encode(framesSynthesized, forKey: .framesSynthesized)
    try container.encode(timesCorrected, forKey: .timesCorrected)
    try container.encode(time.clock, forKey: .clock)
    try container.encode(time.timeSource, forKey: .timeSource)
    try container.encodeIfPresent(time.timeScale, forKey: .timeScale)
    try container.encodeIfPresent(time.timeAssumption, forKey: .timeAssumption)
    try container.encode(notes, forKey: .notes)
    try container.encode(limits, forKey: .limits)
  }

  /// The audit as text lines.
  var lines: [String] {
    func seconds(_ time: MediaTime) -> String { "\(decimal(time.doubleValue, 6)) s" }
    func milliseconds(_ time: MediaTime) -> String { decimal(time.doubleValue * 1_000, 3) }
    var lines = ["\(file): \(audit.frameCount) frames, \(rate(audit.measuredFrameRate))"]
    if let intervals = audit.intervals {
      lines.append(
        "intervals in ms: shortest \(milliseconds(intervals.min)), "
          + "median \(milliseconds(intervals.p50)), 99% \(milliseconds(intervals.p99)), "
          + "longest \(milliseconds(intervals.max))")
    }
    if let stated = audit.captureFrameRate {
      let isFalse = audit.captureFrameRateAgrees == false
      lines.append(
        "capture rate: \(stated) fps, from \(audit.captureFrameRateSource ?? "")"
          + (isFalse ? ": contradicts the frames" : ""))
    } else {
      lines.append("capture rate: unknown, the file does not state it")
    }
    if let distinct = audit.distinctFrameRate {
      lines.append("each image is repeated: \(rate(distinct)) of different images")
    }
    if audit.segments.count > 1 {
      lines += audit.segments.prefix(10).map {
        "rate: \(rate($0.frameRate)) from frame \($0.firstIndex) to \($0.lastIndex)"
      }
    }
    lines += Self.shortened(audit.gaps, "gap") {
      "\($0.count) after frame \($0.afterIndex) at \(seconds($0.time))"
    }
    lines += Self.shortened(audit.duplicates, "duplicate") {
      "frame \($0.index) repeats frame \($0.ofIndex) at \(seconds($0.time))"
    }
    lines += Self.shortened(audit.frozen, "frozen") {
      "frames \($0.firstIndex) to \($0.lastIndex), \(seconds($0.start)) to \(seconds($0.end))"
    }
    if let count = audit.undecodableFrames.first.map({ _ in audit.undecodableFrames.count }) {
      lines.append("undecodable: \(count) frames")
    }
    if timesCorrected > 0 { lines.append(correctedTimesLine(timesCorrected)) }
    if audit.isCoarse {
      lines.append("note: the file's times are too coarse to show every gap of one frame")
    }
    if let flicker = audit.flicker {
      lines.append(
        "note: the light flickers by \(decimal(flicker.depth * 100, 1))%, "
          + "with mains of \(flicker.mainsFrequency) Hz")
    }
    if let plot, !dryRun { lines.append("chart: \(plot)") }
    let problems = audit.problems.map { $0.rawValue.replacing("_", with: " ") }
    return lines + [problems.isEmpty ? "ok" : "not ok: " + problems.joined(separator: ", ")]
  }

  private func rate(_ rate: Rational?) -> String {
    rate.map { "\(decimal($0.doubleValue, 3)) fps" } ?? "unknown rate"
  }

  /// Returns the first ten lines of a list, and a line with the number of lines left out.
  private static func shortened<Element>(
    _ elements: [Element], _ name: String, _ line: (Element) -> String
  ) -> [String] {
    let lines = elements.prefix(10).map { "\(name): \(line($0))" }
    return elements.count > 10 ? lines + ["\(name): and \(elements.count - 10) more"] : lines
  }
}
