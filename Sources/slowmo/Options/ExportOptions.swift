// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// How a composition is exported: what `retime` and `edit` have in common.
struct ExportOptions: ParsableArguments {
  @Flag(help: "Copy the picture's packets and give them new times.")
  var copy = false

  @Option(help: "Render at this constant rate, such as 30.", transform: FrameRate.init(parsing:))
  var fps: FrameRate?

  @Option(
    help: """
      The audio of retimed parts: spectral, time-domain, varispeed, low-quality or mute; \
      low-quality:snap plays it at the nearest speed that low-quality has.
      """)
  var pitch = PitchOption(.spectral)

  @Option(
    help: "How --fps picks frames: hold (the last one due), nearest, blend (all that are on).")
  var sampling = FrameSampling.hold

  @Option(help: "The codec with --fps: h264, hevc, ffv1 or mjpeg.")
  var codec = RenderedVideo.h264

  @Option(
    help: "The quality of h264 and hevc with --fps, from 0 (lossless) to 51; 18 looks the same.")
  var crf: Int?

  @Option(help: "How long h264 and hevc may take with --fps: ultrafast to placebo, or medium.")
  var encoderPreset: String?

  @Option(help: "The profile of h264 or hevc with --fps, such as baseline or high10.")
  var profile: String?

  @Option(
    help: "Fill a picture of this size with --fps, such as 1280x720, and cut off what juts out.",
    transform: pictureSize)
  var box: VideoSize?

  @Option(help: "With --fps keep the turn of the picture as a tag, or apply it: keep or apply.")
  var rotation = RotationPolicy.keep

  @Option(help: .onError) var onError = UndecodableFramePolicy.stop

  @Option(help: "How rendered sound is stored: auto, aac or pcm.")
  var audioCodec = RenderedAudio.auto

  @Option(
    help: """
      Cuts of --copy off a key frame: squeeze (copy and hide what is needed), render (encode up \
      to the next key frame), auto (squeeze if short, else render), or keyframe (refuse).
      """)
  var boundary = CutPolicy.auto

  func validate() throws {
    if copy && fps != nil { throw ValidationError("--copy and --fps exclude each other") }
    if let crf, !(0...51).contains(crf) { throw ValidationError("--crf \(crf) is not 0 to 51") }
    if let encoderPreset, !EncoderSettings.presets.contains(encoderPreset) {
      throw ValidationError(
        "--encoder-preset \(encoderPreset) is none of "
          + EncoderSettings.presets.joined(separator: ", "))
    }
    let needsRendering = [
      ("--crf", crf != nil), ("--encoder-preset", encoderPreset != nil),
      ("--profile", profile != nil), ("--box", box != nil),
      ("--rotation apply", rotation == .apply), ("--sampling", sampling != .hold),
    ]
    if copy, let name = needsRendering.first(where: { $0.1 })?.0 {
      throw ValidationError("\(name) needs --fps: --copy encodes nothing")
    }
  }

  /// Throws unless one of the ways is chosen; a project file needs none.
  func check(output: String) throws {
    if output == standardOutput, copy || fps != nil {
      throw ValidationError(
        "a movie cannot be written to standard output: name a file, or leave out --copy and --fps "
          + "to print the project")
    }
    if !copy && fps == nil && !isProject(output) {
      throw ValidationError("choose how to export: --copy or --fps RATE")
    }
  }

  private var mode: ExportMode {
    guard let fps else { return .passthrough(boundary: boundary) }
    var encoder = EncoderSettings()
    encoder.crf = crf ?? encoder.crf
    encoder.preset = encoderPreset ?? encoder.preset
    encoder.profile = profile
    return .constant(
      fps,
      RenderSettings(
        encoding: codec.encoding(encoder), sampling: sampling, box: box,
        appliesRotation: rotation == .apply))
  }

  /// Opens a movie as `--on-error` has it.
  func asset(_ path: String) throws(MediaError) -> Asset { try openAsset(path, onError) }

  /// Exports a composition and tells of it, or tells the plan, or writes it as a project.
  func export(
    _ composition: Composition, of assets: [Asset], to output: String, verb: String,
    _ writing: WritingOptions, _ common: CommonOptions,
    change: (inout ExportSettings) -> Void = { _ in }
  ) throws -> ExitStatus {
    if isProject(output) {
      return try writeProject(composition, output, verb: verb, writing, common)
    }
    let session = try ExportSession(composition, of: assets)
    var settings = ExportSettings(path: output, mode: mode)
    settings.audioTimePitchAlgorithm = pitch.algorithm
    settings.otherAudioSpeeds = pitch.otherSpeeds
    settings.audioCodec = audioCodec.codec
    settings.undecodableFrames = onError
    settings.overwrites = writing.overwrite
    change(&settings)
    if writing.dryRun {
      let plan = try session.plan(settings)
      note(plan.sparse, output)
      for warning in plan.warnings { Output.warning(warning) }
      return try tell(RetimeDocument(verb, plan: plan, composition), common)
    }
    let progress = ProgressReporter(writing.progress)
    progress.start(file: output)
    let seconds = composition.duration.doubleValue
    let report = try session.export(settings, isCancelled: { Interrupt.isRequested }) {
      done, total in
      progress.update(
        ProgressReporter.State(
          frame: done, totalFrames: total,
          seconds: total > 0 ? seconds * Double(done) / Double(total) : 0))
    }
    for warning in report.warnings { progress.warning(warning) }
    progress.end(file: output)
    note(report.sparse, output)
    for frame in report.undecodable {
      noteUndecodable(frame.path, frame.index, frame.time, onError)
    }
    return try tell(RetimeDocument(verb, report), common)
  }

  private func note(_ sparse: [ExportReport.LowRateRange], _ output: String) {
    for range in sparse { Output.note("\(output): \(range.words)") }
  }

  private func isProject(_ output: String) -> Bool {
    output == standardOutput || output.lowercased().hasSuffix(".otio")
  }

  /// Writes a project, its files named as seen from its folder.
  private func writeProject(
    _ composition: Composition, _ output: String, verb: String, _ writing: WritingOptions,
    _ common: CommonOptions
  ) throws -> ExitStatus {
    let name = output.lastPathComponent
    let project = OpenTimelineDocument(
      try composition.replacingSourcePaths { ProjectPaths.path($0, seenFrom: output) }, name: name)
    if !writing.dryRun {
      try Files.write(output, Data(try project.text().utf8), overwrites: writing.overwrite)
      if output == standardOutput { return .done }
    }
    return try tell(
      RetimeDocument(
        verb, output, composition, isDryRun: writing.dryRun), common)
  }

  private func tell(
    _ document: some Encodable & TextDocument, _ common: CommonOptions
  ) throws -> ExitStatus {
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return .done
  }
}

/// Paths of the movies that a project names, which are seen from the project's folder.
enum ProjectPaths {
  /// The folder of a file, with its slash; nothing for the current one.
  static func folder(of file: String) -> String {
    file.lastIndex(of: "/").map { String(file[...$0]) } ?? ""
  }

  /// A path that a project in a file names, seen from here.
  static func resolved(_ path: String, in project: String) -> String {
    path.hasPrefix("/") ? path : folder(of: project) + path
  }

  /// The file that a project means by a path: the one of that name, or the only one beside the
  /// project whose name without its folder, or without its suffix, is the same.
  ///
  /// Lists of edits name tapes and clips rather than files, and projects come from other systems.
  static func found(_ path: String, in project: String) -> String {
    let plain = resolved(path, in: project)
    if Files.exists(plain) { return plain }
    // Projects also come from Windows.
    let name = path.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? path
    let folder = folder(of: project)
    if Files.exists(folder + name) { return folder + name }
    let found = Files.names(in: folder.isEmpty ? "." : folder).filter { other in
      let stem = other.lastIndex(of: ".").map { String(other[..<$0]) } ?? other
      return stem == name
        && ["mov", "mp4", "m4v", "mkv", "avi", "mts", "mxf"].contains(
          other.dropFirst(stem.count + 1).lowercased())
    }
    return found.count == 1 ? folder + found[0] : plain
  }

  /// A path seen from here as a project in a file names it: relative where it is below the
  /// project's folder, else from the root.
  static func path(_ path: String, seenFrom project: String) -> String {
    let folder = folder(of: project)
    if folder.isEmpty { return path }
    if path.hasPrefix(folder) { return String(path.dropFirst(folder.count)) }
    return Files.absolutePath(path)
  }
}

/// What becomes of a picture that players are told to turn.
enum RotationPolicy: String, CaseIterable, ExpressibleByArgument {
  /// They are told so again.
  case keep
  /// It is turned.
  case apply
}

/// Reads a size such as `1280x720`.
private func pictureSize(_ text: String) throws -> VideoSize {
  let sides = text.lowercased().split(separator: "x", omittingEmptySubsequences: false)
    .map { Int($0) }
  guard sides.count == 2, let width = sides[0], let height = sides[1], width > 0, height > 0 else {
    throw ValidationError("\(text) is no size; write it as 1280x720")
  }
  return VideoSize(width: width, height: height)
}

extension ArgumentHelp {
  /// Of `--on-error`, in each verb that decodes.
  static let onError: ArgumentHelp =
    "For a frame that cannot be decoded: stop, hold (show the one before), skip. A file that is cut off needs one of the latter two."
}

/// Opens a movie; unless errors are to stop the work, what is there of one that is cut off.
func openAsset(
  _ path: String, _ policy: UndecodableFramePolicy
) throws(MediaError) -> Asset {
  let asset = try Asset(path: path, allowsTruncation: policy != .stop)
  if let truncation = asset.truncation {
    Output.note("\(path) is cut off: \(truncation.words)")
  }
  return asset
}

/// Names a frame that could not be decoded.
func noteUndecodable(
  _ path: String, _ index: Int, _ time: MediaTime, _ policy: UndecodableFramePolicy
) {
  Output.note(
    "\(path): frame \(index) at \(time.displayText) s cannot be decoded and is "
      + (policy == .skip ? "left out" : "replaced by the one before"))
}

extension UndecodableFramePolicy: ExpressibleByArgument {}
extension CutPolicy: ExpressibleByArgument {}
extension FrameSampling: ExpressibleByArgument {}
