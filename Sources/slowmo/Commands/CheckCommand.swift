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
      let chart = TimingChart(audit, frames: frames, title: file.lastPathComponent)
      let isPNG = plot.fileExtension == "png"
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
