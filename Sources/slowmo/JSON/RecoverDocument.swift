// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `recover`.
struct RecoverDocument: Encodable {
  private enum CodingKeys: CodingKey { case schema, intervals, output }

  private let report: RecoveryReport
  /// The file to which the readable frames of a truncated movie were copied.
  private var output: String?

  init(_ report: RecoveryReport) { self.report = report }

  /// Creates the document for the copy of a truncated movie.
  init(
    _ file: String, _ track: VideoTrack, _ truncation: Asset.Truncation, _ report: ExportReport
  ) {
    var recovery = RecoveryReport(path: file, wasIntact: false)
    recovery.isPlayable = true
    recovery.frameCount = report.framesCopied
    recovery.frameCountBefore = Int64(truncation.readableFrameCount)
    let stated = truncation.statedFrameCount ?? truncation.readableFrameCount
    let missing = Int64(stated - truncation.readableFrameCount)
    recovery.lostFrameCount = missing
    // The durations of the missing frames are unknown, so each is counted with the nominal frame
    // duration.
    let lost = track.nominalFrameRate.map { $0.frameDuration * Rational(missing) }
    recovery.lostDuration = lost.flatMap(MediaTime.init(exactly:)) ?? .zero
    recovery.duration = report.duration
    self.report = recovery
    output = report.path
  }

  func encode(to encoder: any Encoder) throws {
    try report.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("recover"), forKey: .schema)
    if report.intervals == nil {
      try container.encode(RecordDocument.NoIntervals(), forKey: .intervals)
    }
    try container.encodeIfPresent(output, forKey: .output)
  }
}

/// The recovery report as text lines.
enum RecoverText {
  static func lines(_ report: RecoveryReport) -> [String] {
    let seconds = decimal(report.duration.doubleValue, 3)
    let length = "\(report.frameCount) frames in \(seconds) s"
    guard !report.wasIntact else {
      return ["\(report.path): already intact, \(length); not changed"]
    }
    var lines = [
      "\(report.path): recovered \(report.frameCount) frames (\(seconds) s), "
        + "\(report.frameCount - report.frameCountBefore) of them not visible to players before",
      "lost: \(report.lostFrameCount) frames, "
        + "\(decimal(report.lostDuration.doubleValue * 1e3, 3)) ms, and any data not yet written",
    ]
    if let ledger = report.ledger { lines.append(RecordText.ledgerLine(ledger)) }
    return lines + RecordText.gapLines(report.gaps)
  }
}
