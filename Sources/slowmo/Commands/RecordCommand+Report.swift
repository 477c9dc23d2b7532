// SPDX-License-Identifier: Apache-2.0

import Overcrank

extension RecordCommand {
  func plan(
    _ device: CaptureDevice, _ format: CaptureFormat, _ audio: AudioSource
  ) throws -> ExitStatus {
    let document = RecordPlanDocument(
      file: output, device: device.address, mode: format.id,
      requestedFps: format.maxFrameRate, codec: codec.defaultValueDescription,
      audio: audio.microphone?.address)
    if common.json {
      try Output.document(document)
    } else {
      Output.line("would record \(document.device) in mode \(document.mode) to \(output)")
    }
    return .done
  }

  /// Returns the error of a triggered capture; nil if it succeeded.
  ///
  /// A capture without any trigger is an error too.
  func problem(_ result: TriggeredReport) -> CommandError? {
    if let problem = result.problem { return CommandError(problem) }
    guard result.triggerCount == 0 else { return nil }
    return CommandError(
      .gaveUpWaiting, code: "no_trigger",
      Interrupt.isRequested
        ? "the capture for \(output) stopped before a trigger arrived"
        : "no trigger arrived for \(output)",
      hint: "wait longer with -t, or check the trigger source")
  }

  /// Writes the frame table of a clip if requested.
  func writeFrameTable(_ clip: RecordingReport) throws {
    guard let framesCSV, clip.isPlayable else { return }
    let asset = try Asset(path: clip.path)
    try FrameTableText.write(
      asset.frameTimingRows(), of: asset, to: framesCSV, overwrites: writing.overwrite)
  }

  /// Prints and writes the report, then decides the exit status.
  func finish(
    _ document: RecordDocument, _ lines: [String], tableOf clip: RecordingReport?
  ) throws -> ExitStatus {
    var document = document
    if let maxDrops { document.limit(maxDrops: maxDrops) }
    // The recording exists even if its report file cannot be written, so the document is still
    // printed.
    do {
      if let clip { try writeFrameTable(clip) }
      if let report {
        // The signal that ended the recording must not cancel the writing of its report.
        try Files.write(
          report, Output.encode(document, isPretty: true), overwrites: writing.overwrite,
          isCancelled: { false })
      }
    } catch { document.fail(CommandError(error)) }
    let problem = document.problem
    if common.json {
      try Output.document(document)
      if let problem { ProgressEvents.fail(problem) }
    } else {
      for line in lines {
        if framesCSV == standardOutput { Output.plain(line) } else { Output.line(line) }
      }
      if let problem { Output.error(problem) }
    }
    let status = BrokenLimit.report(document.limits)
    return problem?.status ?? status
  }
}
