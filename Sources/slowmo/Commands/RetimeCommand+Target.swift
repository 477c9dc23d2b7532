// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// A kind of program that an export is optimized for.
enum ExportTarget: String, CaseIterable, ExpressibleByArgument {
  /// OpenCV, which seeks by frame number and finds the right frame only at a constant rate.
  case opencv
}

extension RetimeCommand {
  /// Checks the options of an export with `--for`.
  func checkTarget() throws {
    guard target != nil else {
      if csv != nil {
        throw ValidationError("--csv needs --for opencv; or see slowmo frames --csv")
      }
      return
    }
    let others: [(String, Bool)] = [
      ("--copy", exporting.copy), ("--speed", !speed.isEmpty), ("--range", !range.isEmpty),
      ("--ramp", ramp != nil), ("--preset", preset != nil), ("--playback-fps", playbackRate != nil),
      ("--sidecar", sidecar != nil), ("--trim", !trim.isEmpty), ("--shard", exporting.shard != nil),
      ("--join", exporting.join), ("--shutter", exporting.shutter != nil),
      ("--sampling", exporting.sampling.map { $0 != .hold } ?? false),
      ("--on-error skip", exporting.onError == .skip), ("--no-time-map", exporting.noTimeMap),
    ]
    if let name = others.first(where: \.1)?.0 {
      throw ValidationError(
        "--for and \(name) exclude each other: --for keeps all frames and times")
    }
    if try batch.isUsed(files, output) { throw ValidationError("--for exports a single file") }
    if exporting.isProject(output) {
      throw ValidationError("--for writes a movie: name a .mp4 file")
    }
    try common.check(standardOutputFor: "--csv", csv)
  }

  /// Exports the whole clip at the camera's constant rate; repeated frames fill the gaps.
  func exportForSeeking() throws -> ExitStatus {
    if let csv {
      try OutputNames.check([output, csv], inputs: [files[0]])
      if !writing.dryRun { try Files.refuseExisting(csv, overwrites: writing.overwrite) }
    }
    var prepared = try prepared(files[0], output)
    let asset = prepared.assets[0]
    let rate = exporting.fps ?? TimingAudit.constantFrameRate(of: asset)
    guard let rate else {
      throw CommandError(
        .usage, code: "frame_rate_needed", "the frame rate of \(files[0]) is not constant",
        hint: "choose a rate with --fps; see slowmo check \(files[0])")
    }
    prepared.frameRate = rate
    return try exporting.export(
      prepared, to: output, verb: "retime", writing, common, prints: csv != standardOutput
    ) {
      guard let csv else { return }
      let made = try Asset(path: output)
      let rows = made.frameTimingRows(copiedFrom: asset.frameTimingRows())
      try FrameTableText.write(rows, of: made, to: csv, overwrites: writing.overwrite)
    }
  }
}
