// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// `slowmo frames FILE`: writes frames as image files or raw pixels, by index or by time.
struct FramesCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write frames as images or raw pixels, and their times as CSV or JSON.",
    discussion: """
      EXAMPLES
        slowmo frames take.mov --at 1 -o 'frame_{index:06}.png'
        slowmo frames take.mov --range 0.5..0.52 -o 'hit_{index}.png' --csv hit.csv
        slowmo frames take.mov --at 120f --at 1.25 -o '{name}_{us}.jpg'
        slowmo frames take.mov --csv times.csv
        slowmo frames take.mov --at 1 -o - > second.png
        slowmo frames take.mov --raw gray8 -o - | wc -c

      A template of -o has {index} (the index of the frame; the first is 0), {us} and {ms} (its
      time), and {name} (the name of the movie). {index:06} has at least six digits. The name - is
      standard output.

      Images are rotated upright, as players show the movie. --at end is the last frame, and --at
      @hit the frame of a mark.

      MANUAL
        slowmo frames take.mov --csv - | head -n 3
        slowmo frames take.mov --range 0..0.5 --step 8 -o 'every8th_{index:04}.jpg'
        slowmo frames take.mov --raw gray8 -o - --meta-fd 3 3>times.ndjson | wc -c
        slowmo frames take.mov --raw yuv420p -o - --splice | sha256sum
        slowmo frames take.mov --at 1.2 -o hit.png --keep-index

      A .jpg file has Exif with the date of the frame, and with the camera and the place from the
      tags of the movie.

      --raw writes pixels row by row, without a header. With --meta-fd, a JSON line with the times
      of each frame precedes its pixels. If the reader closes its end, the command stops with exit
      code 0.

      --splice puts the memory of the frames into the pipe without a copy. The reader must copy what
      it reads, as read(2) does. It must not move it into another pipe, as pv may do.

      --keep-index stores the times of all packets in a file next to the movie, such as
      take.mov.frameindex. A later run then need not read the whole movie, as it must for H.264 with
      B-frames. The file is not used if the movie has another size, modification time or content.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    parsing: .unconditional, help: "Write the frames of this range, such as 1.2..1.5.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Option(
    parsing: .unconditionalSingleValue,
    help: "Write the frame shown at this time; may be repeated.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var at: [TimeExpression] = []

  @Option(help: "Write only every nth of these frames.")
  var step = 1

  @Option(
    name: .shortAndLong, help: "File name template, such as 'dir/{index:06}.png'.",
    completion: .file())
  var output: String?

  @Option(help: "Write raw pixels: gray8, gray16le, rgb24 or yuv420p.")
  var raw: RawFrameFormat?

  @Option(help: "Range of yuv420p: limited (luma 16 to 235) or full.")
  var rawRange = RawFrameRange.limited

  @Flag(help: "With --raw: pass frames to the pipe without a copy; see the manual.")
  var splice = false

  @Option(
    help: ArgumentHelp(
      "Write a JSON line per frame to this file descriptor, in step with -o.", valueName: "n"))
  var metaFd: Int32?

  @Option(
    help: "Write one CSV line per selected frame: index, times, sequence number, losses.",
    completion: .file())
  var csv: String?

  @Option(help: "Apply the movie's rotation, or keep images as stored: apply or keep.")
  var rotation = RotationPolicy.apply

  @Option(help: .onError) var onError = UndecodableFramePolicy.stop

  @Flag(help: "Use the index next to the movie; write a new one if none fits.")
  var keepIndex = false

  @OptionGroup var writing: WritingOptions
  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if range != nil && !at.isEmpty { throw ValidationError("--range and --at exclude each other") }
    guard step > 0 else { throw ValidationError("--step \(step) is not 1 or more") }
    if step > 1 && !at.isEmpty { throw ValidationError("--step and --at exclude each other") }
    for (name, isGiven) in [("--raw", raw != nil), ("--meta-fd", metaFd != nil)]
    where isGiven && output == nil { throw ValidationError("\(name) needs -o") }
    if splice, raw == nil || output != standardOutput {
      throw ValidationError("--splice needs --raw and -o -")
    }
    if let metaFd,
      metaFd < 1
        || metaFd == 1 && (output == standardOutput || csv == standardOutput || common.json)
    {
      throw ValidationError("--meta-fd \(metaFd) is used for something else")
    }
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
    /// If the policy is `skip`, no file is written for these frames.
    let undecodableFrames: [Int]
    /// The index file next to the movie; nil without `--keep-index`.
    let keptIndex: KeptIndex?
    let clock: CaptureClock.Choice
    /// Nil if the capture times are unknown.
    let timeSource: CaptureClock.Source?
    let timeScale: Rational?
    let timeAssumption: CaptureClock.Assumption?
    /// The faults of the file that did not prevent reading it.
    let notes: [String]
    let dryRun: Bool

    struct KeptIndex: Encodable {
      let file: String
      let used: Bool
      let written: Bool
      let refusal: String?
    }

    enum CodingKeys: CodingKey {
      case schema, file, csv, frames, undecodableFrames, keptIndex, notes, dryRun
      case clock, timeSource, timeScale, timeAssumption
    }
  }

  func perform() throws -> ExitStatus {
    var names = OutputNames(inputs: [file])
    if let csv { try names.add(csv) }
    if output == standardOutput { try names.add(standardOutput) }
    let asset = try openAsset(
      file, onError, trackChoice, keepsIndex: keepIndex && !writing.dryRun)
    Output.notes(of: asset)
    if output != nil, raw == nil { Output.noteMissingToneMapping(of: asset) }
    guard let table = asset.videoTrack?.frames else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) has no video", hint: "see slowmo info \(file)"
      )
    }
    let clock = csv == nil && metaFd == nil ? nil : timing.knownClock(of: asset)
    // A file that states no capture rate has no capture times, unless the user chose its own.
    let lines = asset.frameTimingRows(clock?.assumption == .fileTimesAreReal ? nil : clock)
    let indices = try chosenFrames(asset, table)
    let planned = try plan(indices, lines, &names)
    var undecodable: [Int] = []
    if !writing.dryRun {
      if let csv {
        try FrameTableText.write(
          indices.map { lines[$0] }, of: asset, to: csv, overwrites: writing.overwrite)
      }
      undecodable = try writeFrames(asset, planned, lines)
    }
    for index in undecodable {
      noteUndecodable(file, index, try table.time(ofFrame: Int64(index)), onError)
    }
    let written = onError == .skip ? planned.filter { !undecodable.contains($0.index) } : planned
    if common.json {
      try Output.document(
        Document(
          file: file, csv: csv, frames: written, undecodableFrames: undecodable,
          keptIndex: asset.keptIndex.map {
            Document.KeptIndex(
              file: $0.path, used: $0.isUsed, written: $0.isWritten, refusal: $0.refusal?.rawValue)
          }, clock: timing.clock, timeSource: clock?.source, timeScale: clock?.timeScale,
          timeAssumption: clock?.assumption, notes: asset.notes, dryRun: writing.dryRun))
    } else if output != standardOutput && csv != standardOutput && metaFd != 1 {
      for frame in written { Output.line(frame.path) }
      if let csv { Output.line(csv) }
    }
    return .done
  }

  /// Returns the indices of the frames to write, in the order in which the options name them.
  ///
  /// Without such an option, returns all frames.
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
      // A range selects the frame that is shown at its start, and all frames that begin before its
      // end.
      for index in stride(from: first, to: table.entries.count, by: step)
      where try index == first || table.time(ofFrame: Int64(index)) < resolved.end {
        indices.append(index)
      }
      return indices
    }
    guard !at.isEmpty else { return Array(stride(from: 0, to: table.entries.count, by: step)) }
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
          "\(output) gives several frames one name, such as \(path)",
          hint: "add the frame index: {index:06}")
      }
      try names.add(path)
      try Files.refuseExisting(path, overwrites: writing.overwrite)
      return Document.Frame(index: index, ptsNs: nanoseconds, path: path)
    }
  }

  /// Writes the frames and returns the indices of those that could not be decoded.
  private func writeFrames(
    _ asset: Asset, _ frames: [Document.Frame], _ lines: [Asset.FrameTimingRow]
  ) throws -> [Int] {
    guard !frames.isEmpty else { return [] }
    let metadata = try metaFd.map { try FrameMetadataWriter($0, asset) }
    if output == standardOutput { PipeCapacity.raise(1) }
    let progress = ProgressReporter(writing.progress)
    progress.start(file: file)
    let appliesRotation = rotation == .apply
    if appliesRotation, asset.videoTrack?.rotatesByRightAngles == false {
      Output.note(
        "slowmo: \(file): images are not rotated: the rotation is not a multiple of 90 degrees")
    }
    var source = try FrameImages(
      asset, frames.map { ($0.index, $0.path) }, raw: raw, rawRange: rawRange,
      appliesRotation: appliesRotation, onError)
    var pipe = splice ? FramePipe() : nil
    for (count, frame) in frames.enumerated() {
      if Interrupt.isRequested {
        throw CommandError(
          Interrupt.status, code: "cancelled", "interrupted after \(count) images",
          hint: "run again with --overwrite for the rest")
      }
      if let image = try source.next() {
        try metadata?.write(lines[frame.index], image)
        if frame.path == standardOutput {
          try image.print(to: &pipe)
        } else {
          try Files.write(frame.path, Data(try image.bytes), overwrites: writing.overwrite)
        }
      }
      progress.update(
        ProgressReporter.State(
          frame: Int64(count + 1), totalFrames: Int64(frames.count),
          seconds: Double(frame.ptsNs) / 1e9))
    }
    progress.end(file: nil)
    return source.undecodable
  }
}

/// Encodes frames of a movie in the order of a list of indices.
struct FrameImages: ~Copyable {
  private let frames: [(index: Int, path: String)]
  private let rawFormat: RawFrameFormat?
  private let skips: Bool
  private var raw: RawFrameSequence?
  private var reader: FrameReader
  private var writer: FrameImageWriter
  private var position = 0
  /// The indices of the frames that could not be decoded, in the order of the list.
  private(set) var undecodable: [Int] = []

  init(
    _ asset: Asset, _ frames: [(Int, String)], raw rawFormat: RawFrameFormat?,
    rawRange: RawFrameRange, appliesRotation: Bool, _ policy: UndecodableFramePolicy
  ) throws {
    let reader = try FrameReader(asset, undecodable: policy)
    var raw: RawFrameSequence?
    if let rawFormat {
      raw = try RawFrameSequence(
        asset, frames: frames.map(\.0), as: rawFormat.pixelFormat,
        isFullRange: rawRange == .full, appliesRotation: appliesRotation, undecodable: policy)
    }
    self.frames = frames.map { (index: $0.0, path: $0.1) }
    self.rawFormat = rawFormat
    skips = policy == .skip
    self.reader = consume reader
    self.raw = consume raw
    writer = FrameImageWriter(asset, appliesRotation: appliesRotation)
  }

  /// Encodes the next frame in the list.
  ///
  /// Returns nil for a frame that cannot be decoded if the policy is `skip`.
  mutating func next() throws -> EncodedFrame? {
    let (index, path) = frames[position]
    position += 1
    if let rawFormat {
      guard let frame = try raw?.nextFrame() else { return nil }
      if frame.isUndecodable, !undecodable.contains(index) { undecodable.append(index) }
      guard frame.byteCount > 0 else { return nil }
      return EncodedFrame(
        content: .raw(frame), format: rawFormat.rawValue, width: frame.width, height: frame.height)
    }
    defer { undecodable = reader.undecodableFrames }
    do { return try writer.frame(index, from: &reader, for: path) } catch {
      guard skips, reader.undecodableFrames.contains(index) else { throw error }
      return nil
    }
  }
}
