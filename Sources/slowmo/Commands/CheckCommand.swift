// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// `slowmo check FILE`: audits the timing of a movie.
struct CheckCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Audit the timing of a movie: gaps, repeated frames and false rates.",
    discussion: """
      EXAMPLES
        slowmo check take.mov
        slowmo check take.mov --expect-fps 240 --json
        slowmo check take.mov --times-only --plot timing.svg

      The exit code is 10 if the timing has a fault. Faults are gaps, repeated frames, and a capture
      rate that differs from --expect-fps by more than one percent. Flicker of the lighting is
      reported, but is not a fault.

      MANUAL
      A movie with a time map is audited in the time of the capture, so that a changed speed is no
      fault. Other movies, and any with --clock file, are audited in their own time.

      Gaps are found in the times of frames alone. Repeated frames are found in the images: single
      ones are duplicates, and ten or more in a row are a frozen stretch. Where nothing moves, no
      repeated frame is reported.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    help: "The capture rate that the movie should have, such as 240.",
    transform: FrameRate.init(parsing:))
  var expectFps: FrameRate?

  @Option(help: "Write a chart of the intervals: .svg or .png.", completion: .file())
  var plot: String?

  @Flag(help: "Audit only the times, and decode no frame.")
  var timesOnly = false

  @OptionGroup var writing: WritingOptions
  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if let plot, plot != standardOutput, !["svg", "png"].contains(plot.fileExtension) {
      throw ValidationError("a chart is a .svg or a .png file, not \(plot)")
    }
    try common.check(standardOutputFor: "--plot", plot)
  }

  func perform() throws -> ExitStatus {
    var names = OutputNames(inputs: [file])
    if let plot {
      try names.add(plot)
      if !writing.dryRun { try Files.refuseExisting(plot, overwrites: writing.overwrite) }
    }
    let asset = try trackChoice.open(file, allowsTruncation: true)
    Output.notes(of: asset)
    guard let frames = asset.videoTrack?.frames else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) has no video", hint: "see slowmo info \(file)")
    }
    let clock = timing.knownClock(of: asset)
    let progress = ProgressReporter(writing.progress)
    progress.start(file: file)
    let audit = try TimingAudit(
      of: asset, expecting: expectFps, comparesImages: !timesOnly, clock: clock
    ) {
      progress.update(
        ProgressReporter.State(
          frame: Int64($0), totalFrames: Int64(frames.entries.count),
          seconds: Double(frames.entries[$0 - 1].ticks) / Double(frames.timescale)))
    }
    if let plot, !writing.dryRun {
      let name = file.lastPathComponent
      let chart = TimingChart(audit, frames: frames, title: name)
      let isPNG = plot.fileExtension == "png"
      if isPNG { Output.noteMissingFonts(for: [name]) }
      let bytes = isPNG ? try chart.png() : [UInt8](chart.svg().utf8)
      try Files.write(plot, Data(bytes), overwrites: writing.overwrite)
    }
    progress.end(file: writing.dryRun ? nil : plot)
    let document = CheckDocument(
      file: file, plot: plot, dryRun: writing.dryRun, audit: audit,
      time: try MeasuredTime(timing, clock ?? asset.captureClock(.file)),
      framesSynthesized: Output.warnOfSynthesizedFrames(frames.entries.indices, of: asset),
      timesCorrected: frames.correctedTimeCount, notes: asset.notes)
    if common.json {
      try Output.document(document)
    } else if plot != standardOutput {
      for line in document.lines { Output.line(line) }
    }
    return BrokenLimit.report(document.limits)
  }
}

/// The JSON document of `check`: the audit, the file and the chart.
struct CheckDocument: Encodable, TextDocument {
  private enum CodingKeys: CodingKey {
    case schema, file, plot, ok, dryRun, framesSynthesized, timesCorrected, notes, limits
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
    try time.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(schemaName("check"), forKey: .schema)
    try container.encode(file, forKey: .file)
    try container.encodeIfPresent(plot, forKey: .plot)
    try container.encode(audit.isOK, forKey: .ok)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encode(framesSynthesized, forKey: .framesSynthesized)
    try container.encode(timesCorrected, forKey: .timesCorrected)
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
