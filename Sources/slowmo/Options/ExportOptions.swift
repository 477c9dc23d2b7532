// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// Export options shared by `retime` and `edit`.
struct ExportOptions: ParsableArguments, Sendable {
  @Flag(help: "Copy the video packets and change only their times.")
  var copy = false

  @Option(help: "Render at this constant rate, such as 30.", transform: FrameRate.init(parsing:))
  var fps: FrameRate?

  @Option(
    help: """
      Audio of retimed parts: spectral, time-domain, varispeed, low-quality or mute; \
      low-quality:snap uses the nearest speed that low-quality supports.
      """)
  var pitch = PitchOption(.spectral)

  @Option(help: "Sampling with --fps: hold (the default), nearest, blend, flow or flow-fast.")
  var sampling: FrameSampling?

  @Option(
    help: """
      With --sampling flow, where motion cannot be followed: flow (synthesize anyway), hold (repeat \
      the last frame) or blend (mix both).
      """)
  var lowConfidence: LowConfidencePolicy?

  @Option(
    help: """
      With --fps: average the frames that a camera with this shutter angle would expose, such as \
      180 for half of each output period. Needs --sampling blend (then the default), flow or \
      flow-fast.
      """, transform: ShutterAngle.init(parsing:))
  var shutter: ShutterAngle?

  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var encoding: EncodingOptions

  @Option(
    help: "With --fps: scale to fill this size, such as 1280x720, and crop the rest.",
    transform: videoSize)
  var box: VideoSize?

  @Flag(help: "With --fps: even out the flicker of lights on the mains.")
  var deflicker = false

  @Option(
    help: """
      With --fps: draw into the frames any of time, frame, speed, mark, mark=T and logo=FILE, \
      separated by commas; font=NAME is the font of the text.
      """)
  var burnIn: BurnInOption?

  @Option(help: "Rotation with --fps: keep it as metadata, or apply it to the frames.")
  var rotation = RotationPolicy.keep

  @Option(
    help: """
      With --fps: encode only this shard, such as 3/8, into a file next to the output, such as \
      film.shard-3-of-8.mov.
      """, transform: exportShard)
  var shard: ExportShard?

  @Flag(help: "With --fps: join the shards next to the output, and add the audio.")
  var join = false

  @Option(help: .onError) var onError = UndecodableFramePolicy.stop

  @Option(help: "Codec of rendered audio: auto, aac or pcm.")
  var audioCodec = RenderedAudio.auto

  @Option(
    help: """
      Cuts between key frames with --copy: squeeze (copy the needed frames and hide them), render \
      (encode up to the next key frame), auto (render H.264 and HEVC, else squeeze), keyframe (refuse).
      """)
  var boundary = CutPolicy.auto

  @Flag(help: "Store no times of the capture in the movie.")
  var noTimeMap = false

  func validate() throws {
    if shard != nil && join { throw ValidationError("--shard and --join exclude each other") }
    if part != .whole {
      let name = join ? "--join" : "--shard"
      guard !copy else {
        throw ValidationError("\(name) needs --fps: only a constant rate has shards")
      }
      guard onError != .skip else {
        throw ValidationError("\(name) excludes --on-error skip: use hold")
      }
      guard encoding.maxSize == nil else {
        throw ValidationError("\(name) excludes --max-size: the size is known after the join")
      }
    }
    // `hold` and `nearest` show single frames, so a shutter would have no effect.
    if shutter != nil, sampling == .hold || sampling == .nearest {
      throw ValidationError("--shutter needs --sampling blend, flow or flow-fast")
    }
    if lowConfidence != nil, sampling?.synthesizesFrames != true {
      throw ValidationError("--low-confidence needs --sampling flow")
    }
    if part != .whole, let sampling, sampling.synthesizesFrames {
      throw ValidationError(
        "--sampling \(sampling.rawValue) has no shards: choose another sampling")
    }
    if copy && fps != nil { throw ValidationError("--copy and --fps exclude each other") }
    let needsRendering = [
      ("--box", box != nil), ("--rotation apply", rotation == .apply),
      ("--shutter", shutter != nil),
      ("--sampling", sampling.map { $0 != .hold } ?? false), ("--deflicker", deflicker),
      ("--burn-in", burnIn != nil),
    ]
    if copy, let name = encoding.firstGiven ?? needsRendering.first(where: \.1)?.0 {
      throw ValidationError("\(name) needs --fps: --copy encodes nothing")
    }
  }

  /// Throws if neither `--copy` nor `--fps` is given, unless the output is a project file.
  ///
  /// `hasOwnRate` is true if another option chooses the rate.
  func check(output: String, hasOwnRate: Bool = false) throws {
    if output == standardOutput, copy || fps != nil {
      throw ValidationError(
        "a movie cannot be written to standard output: name a file, or leave out --copy and --fps "
          + "to print the project")
    }
    guard !copy && fps == nil && !hasOwnRate else { return }
    guard part == .whole else {
      throw ValidationError(
        "\(join ? "--join" : "--shard") needs --fps: only a constant rate has shards")
    }
    guard isProject(output) else {
      throw ValidationError("choose how to export: --copy or --fps RATE")
    }
  }

  /// The part of the export to write: one of several shards, the joined shards, or the whole
  /// export.
  private var part: ExportPart { shard.map(ExportPart.shard) ?? (join ? .joined : .whole) }

  private func mode(
    _ rate: FrameRate?, _ asset: Asset?, _ output: String
  ) throws(MediaError) -> ExportMode {
    guard let fps = rate ?? fps else { return .passthrough(boundary: boundary) }
    var rendering = RenderSettings(
      encoding: encoding.encoding(for: output),
      sampling: sampling ?? (shutter == nil ? .hold : .blend), box: box,
      appliesRotation: rotation == .apply)
    rendering.shutterAngle = shutter
    rendering.lowConfidence = lowConfidence ?? .flow
    rendering.removesFlicker = deflicker
    if let burnIn { rendering.burnIn = try burnIn.burnIn(asset) }
    return .constant(fps, rendering)
  }

  /// Opens a movie with the policy that `--on-error` selects.
  func asset(_ path: String) throws(MediaError) -> Asset {
    try openAsset(path, onError, trackChoice)
  }

  /// Returns the settings of an export.
  func settings(
    for prepared: PreparedExport, to output: String, overwrites: Bool
  ) throws(MediaError) -> ExportSettings {
    var settings = ExportSettings(
      path: output, mode: try mode(prepared.frameRate, prepared.assets.first, output))
    settings.audioTimePitchAlgorithm = pitch.algorithm
    settings.otherAudioSpeeds = pitch.otherSpeeds
    settings.audioCodec = audioCodec.codec
    settings.undecodableFrames = onError
    settings.part = part
    settings.captureFrameRate = prepared.captureFrameRate
    settings.writesTimeMap = !noTimeMap
    settings.fileLengthLimit = encoding.maxSize
    settings.overwrites = overwrites
    return settings
  }

  /// Exports a composition, prints the plan of the export, or writes a project file.
  ///
  /// Calls `finishing` after an export, then prints the result unless `prints` is false.
  func export(
    _ prepared: PreparedExport, to output: String, verb: String, _ writing: WritingOptions,
    _ common: CommonOptions, prints: Bool = true, finishing: () throws -> Void = {}
  ) throws -> ExitStatus {
    let composition = prepared.composition
    if isProject(output) {
      return try writeProject(composition, output, verb: verb, writing, common)
    }
    let session = try prepared.session()
    var settings = try settings(for: prepared, to: output, overwrites: writing.overwrite)
    if part != .whole, let kept = try keptPart(&settings, session, writing) {
      return try emit(RetimeDocument(verb, kept: kept), common)
    }
    if writing.dryRun {
      let plan = try session.plan(settings)
      note(plan.sparse, output)
      for warning in plan.warnings { Output.warning(warning) }
      return try emit(RetimeDocument(verb, plan: plan, composition), common)
    }
    let report = try ProgressReporter(writing.progress)
      .export(session, settings, composition.duration)
    note(report.sparse, output)
    for frame in report.undecodable {
      noteUndecodable(frame.path, frame.index, frame.time, onError)
    }
    try finishing()
    return try prints ? emit(RetimeDocument(verb, report), common) : .done
  }

  /// Prepares the export of one shard of the output, or the join of all shards.
  ///
  /// Returns the plan if the output is already finished, and nil if it must still be made.
  private func keptPart(
    _ settings: inout ExportSettings, _ session: ExportSession, _ writing: WritingOptions
  ) throws -> ExportReport? {
    settings.digest = try session.digest(settings, version: OvercrankVersion.number)
    let path = shard?.path(besides: settings.path) ?? settings.path
    if !writing.dryRun { _ = TemporaryName.removeAbandoned(of: [path]) }
    guard session.isFinished(settings) else { return nil }
    var known = settings
    // The plan of a finished join of shards is made as the plan of a whole export, because the
    // shards may have been deleted after the join.
    if join { known.part = .whole }
    return try session.plan(known)
  }

  func note(_ sparse: [ExportReport.LowRateRange], _ output: String) {
    for range in sparse { Output.note("\(output): \(range.summary)") }
  }

  func isProject(_ output: String) -> Bool {
    output == standardOutput || output.lowercased().hasSuffix(".otio")
  }

  /// Writes a project file.
  ///
  /// If a movie is in or below the project's directory, the stored path of the movie is relative.
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
    return try emit(
      RetimeDocument(
        verb, output, composition, isDryRun: writing.dryRun), common)
  }

  func emit(
    _ document: some Encodable & TextDocument, _ common: CommonOptions
  ) throws -> ExitStatus {
    try Output.print(document, asJSON: common.json)
    return .done
  }
}

/// The treatment of a movie's display rotation.
enum RotationPolicy: String, CaseIterable, ExpressibleByArgument {
  /// The rotation is written to the output's metadata, so players rotate the frames.
  case keep
  /// The frames themselves are rotated.
  case apply
}

/// Parses a size such as `1280x720`.
private func videoSize(_ text: String) throws -> VideoSize {
  let sides = text.lowercased().split(separator: "x", omittingEmptySubsequences: false)
    .map { Int($0) }
  guard sides.count == 2, let width = sides[0], let height = sides[1], width > 0, height > 0 else {
    throw ValidationError("\(text) is not a size; write it as 1280x720")
  }
  return VideoSize(width: width, height: height)
}

/// Parses a shard such as `3/8`.
private func exportShard(_ text: String) throws -> ExportShard {
  let numbers = text.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
  guard numbers.count == 2, let number = numbers[0], let count = numbers[1],
    let shard = ExportShard(exactly: number, of: count)
  else { throw ValidationError("\(text) is not a shard; write it as 3/8") }
  return shard
}

extension ArgumentHelp {
  /// The help text of `--on-error`, for all commands that decode video.
  static let onError: ArgumentHelp =
    "If a frame cannot be decoded: stop, hold (repeat the previous frame) or skip. A truncated file needs hold or skip."
}

/// Opens a movie, and prints a note if it is truncated.
///
/// If the policy is `stop`, a truncated movie is an error instead. Another note is printed if an
/// index file next to the movie cannot be used or written.
func openAsset(
  _ path: String, _ policy: UndecodableFramePolicy, _ trackChoice: TrackOptions,
  keepsIndex: Bool = false
) throws(MediaError) -> Asset {
  let asset = try Asset(path: path, allowsTruncation: policy != .stop, keepsIndex: keepsIndex)
  if let index = asset.keptIndex {
    if let refusal = index.refusal {
      Output.note("\(index.path) is not used: \(refusal.summary)")
    }
    if let failure = index.writeFailure {
      Output.note("\(index.path) cannot be written: \(failure)")
    }
  }
  if let truncation = asset.truncation {
    Output.note("\(path) is truncated: \(truncation.summary)")
  }
  return try trackChoice.select(asset)
}

/// Prints a note about each frame that could not be decoded.
func noteUndecodable(
  _ path: String, _ index: Int, _ time: MediaTime, _ policy: UndecodableFramePolicy
) {
  Output.note(
    "\(path): frame \(index) at \(time.displayText) s cannot be decoded and is "
      + (policy == .skip ? "skipped" : "replaced by the previous frame"))
}

extension UndecodableFramePolicy: ExpressibleByArgument {}
extension CutPolicy: ExpressibleByArgument {}
extension FrameSampling: ExpressibleByArgument {}
extension LowConfidencePolicy: ExpressibleByArgument {}

/// Options for the encoder of an export with `--fps`.
struct EncodingOptions: ParsableArguments, Sendable {
  @Option(help: "The codec with --fps: h264, hevc, ffv1 or mjpeg.")
  var codec = RenderedVideo.h264

  @Option(
    help: "Quality of h264 and hevc with --fps: 0 (lossless) to 51; 18 is visually lossless.")
  var crf: Int?

  @Option(
    help: """
      With --fps: the file is no larger than this, such as 8MB; the quality is lowered below \
      --crf until it fits. A .gif or .webp also gets smaller frames.
      """, transform: byteCount)
  var maxSize: Int64?

  @Option(help: "Encoder preset of h264 and hevc with --fps: ultrafast to placebo, or medium.")
  var encoderPreset: String?

  @Option(help: "The profile of h264 or hevc with --fps, such as baseline or high10.")
  var profile: String?

  func validate() throws {
    if let crf, !(0...51).contains(crf) { throw ValidationError("--crf \(crf) is not 0 to 51") }
    if let encoderPreset, !EncoderSettings.presets.contains(encoderPreset) {
      throw ValidationError(
        "--encoder-preset \(encoderPreset) is unknown; choose one of "
          + EncoderSettings.presets.joined(separator: ", "))
    }
    if maxSize != nil, codec != .h264, codec != .hevc {
      throw ValidationError("--max-size needs --codec h264 or hevc")
    }
  }

  /// The first given option among those without a default value; nil if none is given.
  var firstGiven: String? {
    [
      ("--crf", crf != nil), ("--max-size", maxSize != nil),
      ("--encoder-preset", encoderPreset != nil), ("--profile", profile != nil),
    ].first(where: \.1)?.0
  }

  /// Returns the codec with its settings.
  ///
  /// For an animated image, the extension of the file decides the codec, unless an option names
  /// another codec.
  func encoding(for output: String) -> VideoEncoding {
    if let image = VideoEncoding(animatedImageAt: output), codec == .h264,
      crf == nil && encoderPreset == nil && profile == nil
    {
      return image
    }
    var encoder = EncoderSettings()
    encoder.crf = crf ?? encoder.crf
    encoder.preset = encoderPreset ?? encoder.preset
    encoder.profile = profile
    return codec.encoding(encoder)
  }
}

/// A composition and its open movies, ready to export.
struct PreparedExport {
  let composition: Composition
  let assets: [Asset]
  /// The movie of a Live Photo, which must stay open while it is read; nil for other sources.
  var openMovie: LivePhotoMovieFile?
  /// The capture frame rate to write if the source states none.
  var captureFrameRate: FrameRate?

  /// The constant frame rate of the output; nil to use the rate from the options.
  var frameRate: FrameRate?

  /// Returns the session of the export.
  func session() throws -> ExportSession { try ExportSession(composition, of: assets) }
}
