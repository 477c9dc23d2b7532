// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// What `recover` says of a file.
struct RecoverDocument: Encodable {
  let schema = schemaName("recover")
  let file: String
  /// Whether there was nothing to do.
  let wasPlain: Bool
  let playable: Bool
  @Nullable var device: String?
  @Nullable var mode: String?
  let frameCount: Int64
  let frameCountBefore: Int64
  let framesLost: Int64
  let lostNs: Int64
  let durationNs: Int64
  @Nullable var measuredFps: String?
  @Nullable var measuredFpsValue: Double?
  @Nullable var ledger: RecordDocument.Ledger?
  let gaps: [RecordDocument.Gap]
  let intervals: RecordDocument.Intervals
  /// The file to which was copied what is there of one that is cut off.
  @Nullable var output: String?

  enum CodingKeys: CodingKey {
    case schema, file, wasPlain, playable, device, mode, frameCount, frameCountBefore, framesLost
    case lostNs, durationNs, measuredFps, measuredFpsValue, ledger, gaps, intervals, output
  }

  init(_ report: RecoveryReport) {
    file = report.path
    wasPlain = report.wasIntact
    playable = report.isPlayable
    device = report.device
    mode = report.mode
    frameCount = report.frameCount
    frameCountBefore = report.frameCountBefore
    framesLost = report.lostFrameCount
    lostNs = report.lostNanoseconds
    durationNs = report.durationNanoseconds
    measuredFps = report.measuredFrameRate?.description
    measuredFpsValue = report.measuredFrameRate?.doubleValue
    ledger = report.ledger.map(RecordDocument.Ledger.init)
    gaps = report.gaps.map(RecordDocument.Gap.init)
    intervals = RecordDocument.Intervals(report.intervals)
  }

  /// What was copied of a file that is cut off.
  init(
    _ file: String, _ track: VideoTrack, _ truncation: Asset.Truncation, _ report: ExportReport
  ) {
    self.file = file
    wasPlain = false
    playable = true
    frameCount = report.framesCopied
    frameCountBefore = Int64(truncation.readableFrameCount)
    let missing = Int64(truncation.statedFrameCount - truncation.readableFrameCount)
    framesLost = missing
    // As long as frames of the track last.
    let lost = track.nominalFrameRate.map { $0.frameDuration * Rational(missing) }
    lostNs = lost.map(nanoseconds) ?? 0
    durationNs = nanoseconds(report.duration.seconds)
    gaps = []
    intervals = RecordDocument.Intervals(nil)
    output = report.path
  }
}

/// The same for people.
enum RecoverText {
  static func lines(_ report: RecoveryReport) -> [String] {
    let seconds = decimal(Double(report.durationNanoseconds) / 1e9, 3)
    let length = "\(report.frameCount) frames in \(seconds) s"
    guard !report.wasIntact else {
      return ["\(report.path): a whole movie already, \(length); nothing was changed"]
    }
    var lines = [
      "\(report.path): mended, \(length), \(report.frameCount - report.frameCountBefore) of them "
        + "found that no player showed",
      "lost: \(report.lostFrameCount) frames, "
        + "\(decimal(Double(report.lostNanoseconds) / 1e6, 3)) ms, besides what never left memory",
    ]
    if let ledger = report.ledger { lines.append(RecordText.ledgerLine(ledger)) }
    return lines + RecordText.gapLines(report.gaps)
  }
}
