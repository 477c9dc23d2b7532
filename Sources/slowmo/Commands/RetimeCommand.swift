// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import Overcrank

/// `slowmo retime FILE -o OUT`: plays parts of a clip at another speed.
struct RetimeCommand: ParsableCommand, Verb, Sendable {
  static let configuration = CommandConfiguration(
    commandName: "retime",
    abstract: "Trim a clip and play parts slower or faster, copied or at a constant rate.",
    discussion: """
      EXAMPLES
        slowmo retime take.mov -o slow.mov --range 0.5..1 --speed 1/8 --copy
        slowmo retime take.mov -o slow.mp4 --range 0.5..1 --speed 1/8 --fps 30
        slowmo retime take.mov -o part.mov --trim 0.5..1.5 --copy
        slowmo retime take.mov -o e.mov --preset impact --at 1 --copy
        slowmo retime take.mov -o f.mov --playback-fps 30 --copy
        slowmo retime take.mov -o hit.gif --trim 0.5..0.6 --speed 1/8 --fps 20

      --copy copies each video frame unchanged, with its exact new time. --fps renders the video at
      a constant rate. One of them is needed; a --preset without them renders at 30 fps.

      The nth --speed applies to the nth --range. The rest of the clip plays at speed 1. Without
      --range, --speed applies to the whole clip. A negative speed plays backwards. All times are
      times of the source, or its marks, such as --at @hit or --range @hit-0.2..@hit+0.3.

      Several files are a batch: -o is then a directory, or a template with {name} or {n:03}.

      MANUAL
        slowmo retime take.mov -o b.mov --range 0..1 --speed 2 --range 1..2 --speed 1/4 --copy
        slowmo retime take.mov -o all.mp4 --trim 0..0.2 --speed 1/8 --fps 30 --pitch mute
        slowmo retime take.mov -o back.mp4 --trim 0.5..0.7 --speed -1/2 --fps 30
        slowmo retime take.mov -o fast.mp4 --trim 0.5..1 --speed 8 --fps 30 --sampling blend
        slowmo retime take.mov -o smooth.mp4 --trim 1..1.02 --speed 1/16 --fps 30 --sampling flow
        slowmo retime take.mov -o blur.mp4 --trim 1..1.2 --fps 30 --shutter 180 --box 160x120
        slowmo retime take.mov -o small.mp4 --trim 1..1.2 --fps 30 --max-size 250kB
        slowmo retime take.mov -o calm.mp4 --trim 0..0.2 --fps 30 --deflicker
        slowmo retime take.mov -o clock.mp4 --trim 0.4..0.6 --fps 30 --burn-in time,mark=0.5
        slowmo retime take.mov -o hit.webp --trim 0.5..0.6 --speed 1/4 --fps 30
        slowmo retime take.mov -o tiny.gif --trim 0.5..0.6 --fps 20 --max-size 200kB
        slowmo retime take.mov -o c.mov --range 0.5..1 --speed 1/8 --copy --dry-run
        slowmo retime take.mov -o d.mov --ramp '0.5=1 0.7=1/8 1=1/8 1.2=1' --copy
        slowmo retime take.mov -o project.otio --preset impact --at 1
        slowmo retime take.mov -o hit.mov --trim 0.5..1.5 --preset pulse --at 1 --copy
        slowmo retime take.mov -o g.mov --preset impact --at 1 --width 500ms --copy
        slowmo retime take.mov -o even.mp4 --for opencv --csv even.csv
        slowmo retime a/*.mov -o 'slow_{name}.mov' --speed 1/8 --copy --jobs 2

      RANGES: --trim keeps only this range of the source. Several of them play in the order given. A
      --range is clipped to the trimmed part. A --range or --at outside of it is refused. With
      --copy, only frames that stand alone, such as MJPEG, can play backwards.

      RAMPS: --ramp sets speeds at times of the source. Between two points, the speed changes
      linearly, or with an S-curve (--easing eased). It is constant before the first point and after
      the last. Two speeds at one time make a step.

      PRESETS: --preset plays --width of the source at 1/8 speed, or at --speed. impact takes 0.3 s,
      a third of it before --at. landing takes 0.25 s from --at. pulse takes 0.2 s around --at, and
      is faster before and after it. freeze holds the frame at --at for 1 s, or for --width. Without
      --copy and --fps, the output has 30 fps. Without --at, the time is the mark @trigger of a clip
      that a trigger started.

      SAMPLING: --fps shows the last frame due at each output time. --sampling nearest shows the
      nearest frame. blend mixes all frames of an output period in linear light. flow synthesizes a
      frame at each output time from the motion between two captured frames, and flow-fast searches
      less for it. slowmo frames --csv marks synthesized frames. --shutter 180 averages the frames
      of the first half of each output period, like a camera. With flow, it synthesizes more frames
      if a period has too few. A note reports each range where the source has fewer frames than the
      output.

      TEXT: --burn-in draws text into the lower left corner: the capture time since the first frame,
      the number of the frame, the speed, and the capture time since the frame at mark=T or at the
      first mark of the source. Times and numbers of synthesized frames begin with ~. A logo is
      drawn into the upper right corner. The frames are rotated upright. font=NAME draws the text
      with an installed font, such as font=monospace:bold, or with the dots of font=dots.

      ANIMATIONS: A .gif has at most 50 fps and a .webp 90, and neither has audio. Each frame begins
      at the nearest 10 ms in a .gif, and at the nearest 1 ms in a .webp. To fit --max-size, a .gif
      gets 128 and then 64 colors, and a .webp the quality 60, 45 and 30. Then the frames get
      smaller, down to a quarter of their width and height. The frame rate stays.

      OPENCV: --for opencv writes a constant rate in which missing frames are filled by repeated
      ones. A seek by frame number then finds the right frame. The rate is that of the camera, or
      --fps. The column duplicate of --csv, and of slowmo frames --csv, marks the repeated frames.

      TIME: The movie stores when each of its frames was captured, so that slowmo track and other
      verbs measure in real time. --no-time-map leaves that out. A .gif or .webp cannot store it.

      BATCHES: \(BatchOptions.explanation)
      """)

  @Argument(
    help: ArgumentHelp("The movie files, or photos with a movie.", valueName: "file"),
    completion: .file())
  var files: [String]

  @Option(
    name: .shortAndLong,
    help: """
      The file to write: .mov, .mp4 or .m4v, .gif or .webp for an animation, .otio for a project, \
      or - to print a project; for several files, a directory or a template.
      """,
    completion: .file())
  var output: String

  @Option(
    parsing: .unconditionalSingleValue,
    help: "Keep only this range, such as 1.2..1.5; may be repeated.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var trim: [TimeRangeExpression] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: "Change the speed of this range, such as 1.2..1.5; may be repeated.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var range: [TimeRangeExpression] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: """
      Source seconds per output second, such as 1/8; -1/8 plays backwards. Without --range: for \
      the whole clip.
      """, transform: DirectedSpeed.init(parsing:))
  var speed: [DirectedSpeed] = []

  @Option(
    parsing: .unconditional,
    help: "Speeds at source times, such as '1=1 1.3=1/8 2=1'.", completion: Completions.rampMark)
  var ramp: String?

  @Option(help: "Speed change between the points of --ramp: linear or eased.")
  var easing: SpeedRamp.Easing?

  @Option(help: "Slow down around --at: impact, landing, freeze or pulse.")
  var preset: RetimingPreset?

  @Option(
    parsing: .unconditional,
    help: "The source time of --preset. Default: the mark @trigger of a triggered recording.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var at: TimeExpression?

  @Option(
    parsing: .unconditional,
    help: "Source duration that --preset slows down, or output duration of freeze.",
    transform: positiveDuration)
  var width: MediaTime?

  @Option(
    help: "Use the slow-motion markers of an iPhone's .AAE file.", completion: .file())
  var sidecar: String?

  @Option(
    name: .customLong("playback-fps"),
    help: "Play every frame at this rate: 30 plays a 240 fps clip at 1/8 speed.",
    transform: FrameRate.init(parsing:))
  var playbackRate: FrameRate?

  @Option(
    name: .customLong("for"), help: "Fill gaps for a program that seeks by frame number: opencv.")
  var target: ExportTarget?

  @Option(
    help: "With --for: write one CSV line per frame, as slowmo frames does.", completion: .file())
  var csv: String?

  @OptionGroup var exporting: ExportOptions
  @OptionGroup var batch: BatchOptions
  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if try batch.isUsed(files, output) {
      try batch.check(output, exporting, hasOwnRate: preset != nil)
    } else {
      try exporting.check(output: output, hasOwnRate: target != nil || preset != nil)
    }
    try checkTarget()
    try common.check(standardOutputFor: "-o", output)
    // With a preset, `--speed` only sets the preset's slow speed, so it does not count as a second
    // method.
    let speedOptions = [
      !speed.isEmpty && preset == nil, ramp != nil, preset != nil, playbackRate != nil,
      sidecar != nil,
    ]
    .count { $0 }
    if speedOptions == 0 && trim.isEmpty && target == nil {
      throw ValidationError(
        "no change requested: use --speed, such as --speed 1/8, or --trim 1.2..1.5")
    }
    if speedOptions > 1 {
      throw ValidationError(
        "--speed, --ramp, --preset, --playback-fps and --sidecar exclude each other")
    }
    if preset == nil, at != nil { throw ValidationError("--at needs --preset") }
    if width != nil && preset == nil { throw ValidationError("--width needs --preset") }
    if preset == .freeze && !speed.isEmpty {
      throw ValidationError("--preset freeze excludes --speed: set its duration with --width")
    }
    if preset != nil, speed.contains(where: \.isReversed) {
      throw ValidationError("--preset needs a --speed above zero")
    }
    if preset != nil && (speed.count > 1 || !range.isEmpty) {
      throw ValidationError("--preset takes at most one --speed, and no --range")
    }
    if easing != nil && ramp == nil { throw ValidationError("--easing needs --ramp") }
    if speed.isEmpty && !range.isEmpty { throw ValidationError("--range needs --speed") }
    if !range.isEmpty && range.count != speed.count {
      throw ValidationError(
        "\(range.count) --range and \(speed.count) --speed: each range needs one speed")
    }
    if range.isEmpty && speed.count > 1 {
      throw ValidationError("\(speed.count) --speed without --range: each speed needs one range")
    }
  }

  // Whether a signal may end the command by force: false for a batch, which must still report which
  // files are finished.
  var endsAtOnce: Bool { (try? batch.isUsed(files, output)) != true }

  func perform() throws -> ExitStatus {
    try exporting.burnIn?.prepareFont()
    if target != nil { return try exportForSeeking() }
    guard try batch.isUsed(files, output) else {
      return try exporting.export(
        prepared(files[0], output), to: output, verb: "retime", writing, common)
    }
    return try BatchExport(
      "retime", files, output, batch, exporting, writing, prepare: { try prepared($0, $1) }
    )
    .perform(common)
  }

  /// Opens a movie and makes the composition for the options.
  func prepared(_ file: String, _ output: String) throws -> PreparedExport {
    // For a Live Photo, the source is its movie.
    let pair = LivePhoto(path: file)
    let movie = try pair?.openMovie()
    try OutputNames.check([output], inputs: [file, movie?.path, sidecar])
    if let pair, case .embedded = pair.movie, exporting.isProject(output) {
      throw CommandError.usage(
        "a project cannot refer to the movie inside \(file)",
        hint: "save the movie first: slowmo retime \(file) -o movie.mov --trim 0..end --copy")
    }
    let asset = try exporting.asset(movie?.path ?? file)
    let kept = try trim.map { try asset.resolve($0) }
    var composition = try composition(asset, kept)
    if !kept.isEmpty { composition = try composition.trimmed(to: kept, of: asset.mediaSource()) }
    var prepared = PreparedExport(composition: composition, assets: [asset], openMovie: movie)
    if preset != nil, !exporting.copy, exporting.fps == nil {
      prepared.frameRate = Self.presetFrameRate
    }
    if playbackRate != nil {
      prepared.captureFrameRate =
        asset.captureFrameRate?.rate ?? asset.videoTrack?.nominalFrameRate
    }
    return prepared
  }

  /// Returns the composition for the options, without the effect of `--trim`.
  private func composition(_ asset: Asset, _ kept: [TimeRange]) throws -> Composition {
    let source = try asset.mediaSource()
    if let ramp {
      return try .ramped(source, points: points(ramp, asset), easing: easing ?? .linear)
    }
    if let sidecar {
      return try Self.markers(sidecar).composition(of: source)
    }
    if let playbackRate {
      return try .conformed(
        source, frameCount: Int64(asset.videoTrack?.frameCount ?? 0), to: playbackRate)
    }
    if let preset {
      let (time, name) = try presetTime(asset)
      let isKept = kept.contains {
        $0.contains(time) || time == asset.duration && time == $0.end
      }
      guard kept.isEmpty || isKept else { throw Self.notKept(name) }
      return try preset.composition(
        of: source, at: time, slowSpeed: speed.first?.speed, width: width)
    }
    return try .retimed(source, changes: changes(asset, kept))
  }

  /// The output frame rate of a preset without another rate.
  private static let presetFrameRate: FrameRate = 30

  /// Returns the time of the preset, and its name for messages: `--at`, or else the trigger.
  private func presetTime(_ asset: Asset) throws -> (MediaTime, name: String) {
    if let at { return (try asset.resolve(at), "--at \(at)") }
    let mark = try TimeExpression(mark: Asset.triggerMark)
    let triggers = asset.marks.map(\.name).filter { $0.hasPrefix(Asset.triggerMark) }
    guard !triggers.isEmpty else {
      throw CommandError.usage(
        "--preset needs --at: \(asset.path) has no trigger", hint: "state a time, such as --at 1.3")
    }
    guard triggers == [Asset.triggerMark] else {
      throw CommandError.usage(
        "--preset needs --at: \(asset.path) has \(triggers.count) triggers",
        hint: "choose one of them: --at " + triggers.map { "@\($0)" }.joined(separator: ", --at "))
    }
    return (try asset.resolve(mark), "\(mark)")
  }

  private static func notKept(_ what: String) -> CommandError {
    .usage("\(what) is outside the range of --trim", hint: "write times in source time")
  }

  /// Reads the slow-motion markers that an iPhone stored beside its clip.
  private static func markers(_ sidecar: String) throws -> SlowMotionMarkers {
    let text = try Files.readText(sidecar)
    do { return try SlowMotionMarkers(aae: text) } catch {
      throw CommandError(
        .badData, code: error.code.rawValue, "\(sidecar): \(error.description)",
        hint: "choose the .AAE file that an iPhone wrote for a slow-motion clip")
    }
  }

  /// Parses the points of `--ramp`, such as `1=1 1.3=1/8`.
  private func points(_ text: String, _ asset: Asset) throws -> [Composition.SpeedPoint] {
    let points = try text.split(separator: " ").map { point in
      let sides = point.split(separator: "=", omittingEmptySubsequences: false)
      guard sides.count == 2 else {
        throw CommandError.usage(
          "\(point) in --ramp is not TIME=SPEED", hint: "write it as --ramp '1=1 1.3=1/8 2=1'")
      }
      return Composition.SpeedPoint(
        try asset.resolve(TimeExpression(parsing: String(sides[0]))),
        try Speed(parsing: String(sides[1])))
    }
    guard !points.isEmpty else {
      throw CommandError.usage(
        "--ramp has no points", hint: "write it as --ramp '1=1 1.3=1/8 2=1'")
    }
    return points
  }

  /// Pairs each range with its speed.
  ///
  /// Times are source times.
  private func changes(
    _ asset: Asset, _ kept: [TimeRange]
  ) throws -> [Composition.SpeedChange] {
    guard !range.isEmpty else {
      return try speed.map {
        try $0.change(in: TimeRange(duration: asset.duration))
      }
    }
    return try zip(range, speed).map { range, speed in
      let resolved = try asset.resolve(range)
      guard kept.isEmpty || kept.contains(where: resolved.overlaps) else {
        throw Self.notKept("--range \(range)")
      }
      return speed.change(in: resolved)
    }
  }
}

extension RetimingPreset: ExpressibleByArgument {}
extension SpeedRamp.Easing: ExpressibleByArgument {}

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

/// A speed with a sign for the direction: `-1/2` plays backwards at half speed.
struct DirectedSpeed: Sendable {
  let speed: Speed
  let isReversed: Bool

  init(parsing text: String) throws(MediaError) {
    isReversed = text.hasPrefix("-")
    speed = try Speed(parsing: isReversed ? String(text.dropFirst()) : text)
  }

  /// Applies this speed and direction to a range of the source.
  func change(in range: TimeRange) -> Composition.SpeedChange {
    Composition.SpeedChange(speed, in: range, isReversed: isReversed)
  }
}
