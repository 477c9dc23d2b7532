// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo recover FILE`: repairs a recording after a crash or a power cut.
struct RecoverCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Repair a recording after a crash or a power cut.",
    discussion: """
      EXAMPLES
        slowmo recover take.mov
        slowmo recover half-copied.mp4 -o there.mp4
        slowmo recover take.mov --json

      The file is repaired in place, without a copy. Incomplete data is skipped, not deleted. A file
      that is intact, or that cannot be repaired (exit code 65), is not changed.

      With -o, the readable frames of a truncated movie are copied to another file. A MOV or MP4 file
      needs its index for that. AVI, Matroska and FLV files cannot be repaired in place.

      MANUAL
      The ledger is rebuilt from the records in the file.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    name: .shortAndLong,
    help: "Copy the readable frames of a truncated movie to this file: .mov, .mp4 or .m4v.",
    completion: .file())
  var output: String?

  @Flag(name: [.customShort("y"), .long], help: "Replace files that exist.")
  var overwrite = false

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if output == standardOutput {
      throw ValidationError("a movie cannot be written to standard output: name a file")
    }
  }

  // Whether a signal cancels reading: false for a repair in place, which must be finished; true for
  // a copy to another file.
  var endsReading: Bool { output != nil }

  func perform() throws -> ExitStatus {
    let report: RecoveryReport
    if let output {
      try OutputNames.check([output], inputs: [file])
      return try copyReadable(to: output)
    }
    do throws(MediaError) {
      report = try MovieRecovery.recover(file)
    } catch {
      guard error.code == .invalidData, let asset = try? Asset(path: file, allowsTruncation: true),
        let truncation = asset.truncation
      else { throw error }
      throw CommandError(
        .badData, code: error.code.rawValue, "\(file) is truncated: \(truncation.summary)",
        hint: "copy them to another file with slowmo recover \(file) -o there.mov")
    }
    if common.json {
      try Output.document(RecoverDocument(report))
    } else {
      for line in RecoverText.lines(report) { Output.line(line) }
    }
    return .done
  }
  /// Copies the readable frames to another file.
  private func copyReadable(to output: String) throws -> ExitStatus {
    let asset = try Asset(path: file, allowsTruncation: true)
    guard let truncation = asset.truncation, let track = asset.videoTrack else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) is not truncated: all frames can be read",
        hint: "recover in place, without -o, or copy the file with slowmo retime")
    }
    var settings = ExportSettings(path: output, mode: .passthrough())
    settings.overwrites = overwrite
    let report = try ExportSession(Composition(asset), of: asset).export(
      settings, isCancelled: { Interrupt.isRequested })
    let document = RecoverDocument(file, track, truncation, report)
    if common.json {
      try Output.document(document)
    } else {
      Output.line("\(output): copied from \(file): \(truncation.summary)")
    }
    return .done
  }
}

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
    // A file without frames is one of audio alone.
    let unit = report.frameCount == 0 ? "packets" : "frames"
    var lines = [
      "\(report.path): recovered \(report.frameCount) frames (\(seconds) s), "
        + "\(report.frameCount - report.frameCountBefore) of them not visible to players before",
      "lost: \(report.lostFrameCount) \(unit), "
        + "\(decimal(report.lostDuration.doubleValue * 1e3, 3)) ms, and any data not yet written",
    ]
    if let ledger = report.ledger { lines.append(RecordText.ledgerLine(ledger)) }
    return lines + RecordText.gapLines(report.gaps)
  }
}
