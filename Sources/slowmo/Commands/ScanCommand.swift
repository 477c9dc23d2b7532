// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// `slowmo scan FILE|DEVICE`: finds machine-readable codes and faces in frames.
struct ScanCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "scan",
    abstract: "Find bar codes, QR codes and faces in the frames of a movie or a camera.",
    discussion: """
      EXAMPLES
        slowmo scan take.mov
        slowmo scan take.mov --types qr,ean13 --range 1..1.5
        slowmo scan take.mov --types faces -t 0.5
        slowmo scan synthetic:640x480@60 -t 0.5

      Prints one JSON object per line for each code and face in each frame. --json prints one
      document instead. Needs slowmo-full.

      Types are upca, upce, ean8, ean13, code39, code93, code128, itf, codabar, qr, microqr, aztec,
      pdf417, datamatrix, codes (all of these, the default) and faces.

      MANUAL
        slowmo scan take.mov --range 0..0.5 --json
        slowmo scan take.mov --range 0..0.5 --overlay marked
        slowmo scan take.mov --types faces --face-model heads.svm -t 0.5

      The keys of a line are type, text, bytes, frame_index, pts_ns, bounds and corners (from 0 to
      1), and face_id.

      A file has no deadline: each of its frames is searched for codes, on all processors. New faces
      are searched for in a whole frame at least every 50 ms and every twelve frames, and in the
      frames between wherever the image changes suddenly; they are followed from there in both
      directions. --passes is the number of frames per second that are searched as a whole; the
      others are searched only around known objects. --passes 240 searches each frame of a 240 fps
      movie for new faces as a whole. For a camera, the default is 12.

      One frame may be misread, so --agreement N asks for N frames that show the same text. The
      first of them is printed too if the source is a file. The default for a camera is 2. For a
      file it is 1 if the code has a checksum, or if the code looks the same when it is enlarged;
      else 2. A movie of one frame is searched with more effort.

      At most 10 faces of a frame are printed, the largest first. A face keeps its face_id from
      frame to frame. roll_degrees is its rotation, clockwise. yaw_degrees is 45 for a face that is
      turned to the right of the image, -45 for one to the left, 0 for one that looks at the camera,
      and null if that is not clear. --face-model names another detector: a file that dlib wrote, such as
      train_simple_object_detector of its Python module.

      --processor-share 25% bounds the processor time of the search. A file then takes longer, and of a
      camera fewer frames are searched.

      Frames of a camera that arrive during a search are not searched. The document of --json has
      the number of all frames (frame_count), of those that were looked at (examined_count), and of
      those that were searched for new objects of each type (searched_count).

      --overlay writes the outlines in each frame to an SVG image, such as frame_000120.svg. The
      outline of a face is rotated by its roll.
      """)

  @Argument(help: "The movie file, or a device as in record.", completion: .file())
  var source: String

  @Option(help: ArgumentHelp("Find only these types.", valueName: "qr,ean13"))
  var types: ObjectTypes?

  @Option(
    parsing: .unconditional, help: "Search the frames of this range, such as 1.2..1.5.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional,
    help: "Stop after this duration.", transform: positiveDuration)
  var duration: MediaTime?

  @Option(help: "The number of frames that must agree on a text. Default: 2; fewer for a file.")
  var agreement: Int?

  @Option(
    help: ArgumentHelp(
      "Search at most this many frames per second. Default: 12 of a camera, all of a file.",
      valueName: "rate"),
    transform: FrameRate.init(parsing:))
  var passes: FrameRate?

  @Option(
    help: ArgumentHelp(
      "Use at most this share of one processor. Default: 20% for a camera, no limit for a file.",
      valueName: "percent"),
    transform: shareOfProcessor)
  var processorShare: Double?

  @Option(
    help: "The mode of a device, as [WxH][@rate][/fourcc]; the fastest match is used.",
    completion: Completions.mode, transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(
    help: ArgumentHelp("Write SVG images to this directory.", valueName: "dir"),
    completion: .directory)
  var overlay: String?

  @OptionGroup var faces: FaceModelOptions
  @OptionGroup var writing: WritingOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if let agreement, !(1...100).contains(agreement) {
      throw ValidationError("--agreement \(agreement) is not from 1 to 100")
    }
    try faces.check(types, of: "--types")
    if isDevice, range != nil { throw ValidationError("--range needs a movie file") }
    if !isDevice, mode != nil { throw ValidationError("--mode needs a device") }
    if range != nil, duration != nil {
      throw ValidationError("--range and -t exclude each other")
    }
  }

  /// Whether the source is a device and not a file.
  var isDevice: Bool {
    if SystemFiles.kind(of: source) == .regular { return false }
    if source.hasPrefix("/dev/") || source.hasPrefix("synthetic") || source.hasPrefix("file:") {
      return true
    }
    return !SystemFiles.isEntry(source) && source.fileExtension == nil
  }

  /// The objects to find.
  private var selection: ObjectSelection {
    ObjectSelection(
      types: types?.names ?? [], agreement: agreement, maximumPassRate: passes,
      processorShare: processorShare, faceModel: faces.faceModel)
  }

  var endsAtOnce: Bool { !isDevice }

  func perform() throws -> ExitStatus {
    let recognition = try FullProgram.recognition(alternative: "search on another machine")
    if let overlay, !writing.dryRun { try ScanReport.makeDirectory(overlay) }
    return isDevice ? try scanDevice(recognition) : try scanFile(recognition)
  }

  private func scanFile(_ recognition: any ObjectRecognition) throws -> ExitStatus {
    let asset = try trackChoice.open(source)
    Output.notes(of: asset)
    guard let track = asset.videoTrack else {
      throw CommandError(
        .badData, code: "invalid_data", "\(source) has no video", hint: "see slowmo info \(source)")
    }
    let indices = try chosenFrames(asset, track.frames)
    let reader = try recognition.reader(of: asset, selection, frames: indices)
    if writing.dryRun { return try plan(Int64(indices.count), asset.notes) }
    let report = ScanReport(
      self, width: track.width, height: track.height, notes: asset.notes)
    let progress = ProgressReporter(writing.progress)
    progress.start(file: source)
    var (examined, searched): (Int64, Int64) = (0, 0)
    // After an interruption, the frames that are already searched are still reported.
    while let frame = try reader.next(isCancelled: { Interrupt.isRequested }) {
      try report.add(frame.objects)
      examined += 1
      if frame.isSearched { searched += 1 }
      progress.update(
        ProgressReporter.State(
          frame: examined, totalFrames: Int64(indices.count),
          seconds: try track.frames.time(ofFrame: Int64(frame.index)).doubleValue))
    }
    progress.end(file: nil)
    report.count(examined: examined, searched: searched)
    try report.finish(frameCount: Int64(indices.count))
    return Interrupt.isRequested ? Interrupt.status : .done
  }

  /// The indices of the frames shown in the range; all frames without a range.
  private func chosenFrames(_ asset: Asset, _ table: FrameTable) throws -> Range<Int> {
    let all = table.entries.indices
    let chosen: TimeRange
    if let range {
      chosen = try asset.resolve(range)
    } else if let duration {
      chosen = try TimeRange(duration: duration)
    } else {
      return all
    }
    guard let first = table.index(at: chosen.start) else {
      throw CommandError.usage(
        "the range is outside \(source), which lasts \(decimal(asset.duration.doubleValue, 6)) s",
        hint: "choose a time from 0 to the duration")
    }
    // A range selects the frame that is shown at its start, and all frames that begin before its
    // end.
    let end = try all.first { index in
      try index > first && table.time(ofFrame: Int64(index)) >= chosen.end
    }
    return first..<(end ?? all.endIndex)
  }

  private func scanDevice(_ recognition: any ObjectRecognition) throws -> ExitStatus {
    let device = try CaptureDevice.named(source)
    let format = try device.usableFormat(matching: mode, where: \.isDecoded)
    if writing.dryRun {
      try recognition.check(selection)
      return try plan(nil)
    }
    let session = try CaptureSession(device: device, format: format)
    let found = Mutex<[[RecognizedObject]]>([])
    let search = try recognition.search(session, selection) { objects in
      found.withLock { $0.append(objects) }
    }
    let report = ScanReport(self, width: format.width, height: format.height)
    let failure = SessionFailure(session.events)
    try session.startRunning()
    defer { session.stopRunning() }
    let limit = duration.map { MonotonicHostClock().now.seconds + $0.seconds }
    while session.isRunning || session.isInterrupted, !Interrupt.isRequested {
      if let limit, MonotonicHostClock().now.seconds >= limit { break }
      try report.add(taking: found)
      // Found objects are printed after at most 16 ms, which is a frame at 60 fps.
      usleep(16_000)
    }
    let hasEnded = !session.isRunning
    session.stopRunning()
    while search.isBusy { usleep(1_000) }
    try report.add(taking: found)
    report.count(examined: search.examinedCount, searched: search.searchedCount)
    let problem = hasEnded && !Interrupt.isRequested ? failure.waitForEnd() : nil
    try report.finish(frameCount: search.offeredCount)
    // The document was already printed, so the error is printed as a line of text.
    if let problem {
      let error = CommandError(problem, in: Self._commandName)
      Output.error(error)
      return error.status
    }
    return Interrupt.isRequested && duration != nil ? Interrupt.status : .done
  }

  private func plan(_ frameCount: Int64?, _ notes: [String] = []) throws -> ExitStatus {
    if common.json {
      try Output.document(
        ScanDocument(
          source: source, frameCount: frameCount, examinedCount: 0, searchedCount: 0, objects: [],
          overlays: [], notes: notes, dryRun: true))
    } else {
      Output.line("would search \(frameCount.map { "\($0) frames of " } ?? "")\(source)")
    }
    return .done
  }
}
