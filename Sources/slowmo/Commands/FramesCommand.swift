// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// `slowmo frames FILE`: writes single frames as PNG or JPEG files, by index or by time.
struct FramesCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write single frames as PNG or JPEG files, and the times of all frames as CSV.",
    discussion: """
      EXAMPLES
        slowmo frames take.mov --at 1 -o 'frame_{index:06}.png'
        slowmo frames take.mov --at 120f --at 1.25 -o 'frame_{index:06}_{us}.png'
        slowmo frames take.mov --range 0.5..0.52 -o 'hit_{index}.png' --csv hit.csv
        slowmo frames take.mov --csv times.csv
        slowmo frames take.mov --csv - | head -n 3
        slowmo frames take.mov --at 1 -o - > second.png
        slowmo frames take.mov --at 1 -o second.jpg

      Images are rotated upright, as players show the movie; --rotation keep leaves them as
      stored. --at end is the last frame, and --at @hit the frame of a mark. In the file name,
      {index} is the frame index from 0, {us} and {ms} its time and {name} the movie's name;
      {index:06} has at least six digits.
      The name - is standard output. The extension .jpg selects JPEG with Exif: the frame's date,
      and what the movie's tags say of camera and place.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    parsing: .unconditional, help: "The frames of this range, such as 1.2..1.5.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Option(
    parsing: .unconditionalSingleValue, help: "The frame shown at this time; may be repeated.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var at: [TimeExpression] = []

  @Option(
    name: .shortAndLong, help: "File name template, such as 'dir/{index:06}.png'.",
    completion: .file())
  var output: String?

  @Option(
    help: "Write one CSV line per frame: index, times, sequence number, lost frames.",
    completion: .file())
  var csv: String?

  @Option(help: "Apply the movie's rotation, or keep images as stored: apply or keep.")
  var rotation = RotationPolicy.apply

  @Option(help: .onError) var onError = UndecodableFramePolicy.stop

  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if range != nil && !at.isEmpty { throw ValidationError("--range and --at exclude each other") }
    if output == nil && csv == nil {
      throw ValidationError("nothing to write: give -o 'dir/{index:06}.png' or --csv FILE")
    }
    try common.check(standardOutputFor: "-o", output)
    try common.check(standardOutputFor: "--csv", csv)
  }

  struct Document: Encodable {
    struct Frame: Encodable {
      let index: Int
      let ptsNs: Int64
      let path: String
    }
    let schema = schemaName("frames")
    let file: String
    let csv: String?
    let frames: [Frame]
    /// The indices of frames that could not be decoded.
    ///
    /// If the policy is `skip`, they have no file.
    let undecodableFrames: [Int]
    let dryRun: Bool

    enum CodingKeys: CodingKey { case schema, file, csv, frames, undecodableFrames, dryRun }
  }

  func perform() throws -> ExitStatus {
    var names = OutputNames(inputs: [file])
    if let csv { try names.add(csv) }
    if output == standardOutput { try names.add(standardOutput) }
    let asset = try openAsset(file, onError)
    guard let table = asset.videoTrack?.frames else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) has no video", hint: "see slowmo info \(file)"
      )
    }
    let lines = asset.frameTimingRows()
    let indices = try chosenFrames(asset, table)
    let planned = try plan(indices, lines, &names)
    var undecodable: [Int] = []
    if !writing.dryRun {
      if let csv {
        try FrameTableText.write(lines, of: asset, to: csv, overwrites: writing.overwrite)
      }
      undecodable = try writeFrames(asset, planned)
    }
    for index in undecodable {
      noteUndecodable(file, index, try table.time(ofFrame: Int64(index)), onError)
    }
    let written = onError == .skip ? planned.filter { !undecodable.contains($0.index) } : planned
    if common.json {
      try Output.document(
        Document(
          file: file, csv: csv, frames: written, undecodableFrames: undecodable,
          dryRun: writing.dryRun))
    } else if output != standardOutput && csv != standardOutput {
      for frame in written { Output.line(frame.path) }
      if let csv { Output.line(csv) }
    }
    return .done
  }

  /// Returns the frames to write, in the order of the options.
  ///
  /// Without an option, returns all frames.
  private func chosenFrames(_ asset: Asset, _ table: FrameTable) throws -> [Int] {
    func outside(_ what: String) -> CommandError {
      .usage(
        "\(what) is outside \(file), which lasts "
          + "\(decimal(asset.duration.doubleValue, 6)) s and has \(table.entries.count) frames",
        hint: "choose a time from 0 to the duration")
    }
    if let range {
      let resolved = try asset.resolve(range)
      guard resolved.end <= asset.duration, let first = table.index(at: resolved.start) else {
        throw outside("the range \(range)")
      }
      var indices: [Int] = []
      // A range selects the frame that is shown at its start, and all frames that begin in it.
      for index in first..<table.entries.count
      where try index == first || table.time(ofFrame: Int64(index)) < resolved.end {
        indices.append(index)
      }
      return indices
    }
    guard !at.isEmpty else { return Array(table.entries.indices) }
    return try at.map { expression in
      // At the end of the movie no frame begins, and the last frame is still shown. `end` therefore
      // selects the last frame.
      if expression == .end, let last = table.entries.indices.last { return last }
      let time = try asset.resolve(expression)
      guard let index = table.index(at: time) else { throw outside("the time \(expression)") }
      return index
    }
  }

  /// Determines all file names before the first file is written.
  private func plan(
    _ indices: [Int], _ lines: [Asset.FrameTimingRow], _ names: inout OutputNames
  ) throws -> [Document.Frame] {
    guard let output else { return [] }
    guard output != standardOutput else {
      return indices.map {
        Document.Frame(index: $0, ptsNs: lines[$0].time.wholeNanoseconds, path: output)
      }
    }
    let template = try NameTemplate(output, fields: ["index", "us", "ms", "name"])
    var seen: Set<String> = []
    return try indices.map { index in
      let nanoseconds = lines[index].time.wholeNanoseconds
      let path = template.name([
        "index": .number(Int64(index)), "name": .text(file.fileStem),
        // Times in file names are rounded down to whole microseconds or milliseconds.
        "us": .number(nanoseconds / 1_000), "ms": .number(nanoseconds / 1_000_000),
      ])
      guard seen.insert(path).inserted else {
        throw CommandError.usage(
          "the name \(output) is the same for several frames, such as \(path)",
          hint: "add the frame index: {index:06}")
      }
      try names.add(path)
      try Files.refuseExisting(path, overwrites: writing.overwrite)
      return Document.Frame(index: index, ptsNs: nanoseconds, path: path)
    }
  }

  /// Writes the frames and returns the indices of those that could not be decoded.
  private func writeFrames(_ asset: Asset, _ frames: [Document.Frame]) throws -> [Int] {
    guard !frames.isEmpty else { return [] }
    let progress = ProgressReporter(writing.progress)
    progress.start(file: file)
    var reader = try FrameReader(asset, undecodable: onError)
    let appliesRotation = rotation == .apply
    if appliesRotation, asset.videoTrack?.rotatesByRightAngles == false {
      Output.note(
        "slowmo: \(file): images are not rotated: the rotation is no multiple of 90 degrees")
    }
    var writer = FrameImageWriter(asset, appliesRotation: appliesRotation)
    for (count, frame) in frames.enumerated() {
      if Interrupt.isRequested {
        throw CommandError(
          Interrupt.status, code: "cancelled", "interrupted after \(count) images",
          hint: "run again with --overwrite for the rest")
      }
      do {
        let bytes = try writer.data(of: frame.index, from: &reader, for: frame.path)
        try Files.write(frame.path, Data(bytes), overwrites: writing.overwrite)
      } catch {
        guard onError == .skip, reader.undecodableFrames.contains(frame.index) else { throw error }
      }
      progress.update(
        ProgressReporter.State(
          frame: Int64(count + 1), totalFrames: Int64(frames.count),
          seconds: Double(frame.ptsNs) / 1e9))
    }
    progress.end(file: nil)
    return reader.undecodableFrames
  }
}
