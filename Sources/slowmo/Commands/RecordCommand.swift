// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// `slowmo record DEVICE -o FILE`: records a camera and accounts for every frame.
struct RecordCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "record",
    abstract: "Record a camera and account for every frame.",
    discussion: """
      EXAMPLES
        slowmo record synthetic:640x480@240 -o take.mov -t 2
        slowmo record synthetic --mode 640x480@120/mjpg -o a.mov --frames 60 --json
        slowmo record synthetic:320x240@240 -o exact.mov -t 0.5 --codec ffv1
        slowmo record synthetic -o clap.mov --pre 500ms --trigger audio:-12dBFS
        slowmo record synthetic -o 'game_{n:03}.mov' -t 1 --segment 0.4
        slowmo record synthetic -o quiet.mov -t 0.5 --audio none
        slowmo record synthetic:320x240 -o hit.mov --post 300ms --trigger audio:-12dBFS --replay 1/8

      The first Ctrl-C stops the recording and finishes the file. SIGTERM and closing the terminal
      do the same. The second Ctrl-C ends at once, and the file stays playable.

      --trigger keeps frames in memory and records a clip around each trigger. -t then limits the
      whole capture: if no trigger comes in that time, the exit code is 75.

      --segment, --reconnect and --repeat write several files. FILE is then a template with {n},
      which counts from the first free number, and may contain {date} and {time}.

      MANUAL
        slowmo record synthetic:320x240 -o light.mov -t 0.5 --codec h264 --droppable 8
        slowmo record 'synthetic?drop=5%&seed=7' -o lossy.mov -t 0.5 --max-drops 100
        slowmo record synthetic -o seen.mov -t 0.5 --preview
        slowmo record synthetic -o tagged.mov -t 0.5 --tag make=Acme
        slowmo record synthetic -o speed.mov -t 0.5 --metadata-fd 3 3<speeds.json
        slowmo record synthetic:640x480@60 -o codes.mov -t 0.5 --metadata codes,faces

      AUDIO: --audio takes a microphone by its name in the output of slowmo devices, such as hw:1,0.
      Without it, the camera's own audio is recorded: that of the microphone of the same USB device,
      of the synthetic camera or of the played file. If the microphone cannot be used, a warning
      says why, and the recording has no audio. --audio none records no audio.

      CLIPS: A clip contains the frames from --pre before its trigger to --post after it. In the
      example, the trigger is the click in the first frame of the camera, so no frame precedes it.
      The next click comes one second later. Triggers within --quiet-period of another are ignored.
      With --repeat, the capture stops while 512 MiB or 5 % of the disk are still free. --min-free
      sets another limit. With --arm-when-full, triggers are also ignored until memory holds the
      time of --pre, and -t counts from there.

      REPLAYS: --replay 1/8 writes each clip in slow motion, at 30 fps and without audio, beside the
      clip: hit.replay.mp4 for hit.mov. The capture continues meanwhile, and replays use only the
      time that it leaves. If they fall behind, the newest clip is next. --exec then runs after the
      replay.

      FILES: With --segment, no frame is lost between two files. A file begins with the first frame
      at or after a multiple of the duration. H.264 of a camera begins with the next key frame. With
      --reconnect, the recording continues in the next file when its camera returns, and the missing
      frames are lost_device in the ledger. --max-size limits each file. All other limits apply to
      the whole recording. Under nohup, the recording continues after its terminal is closed.

      PREVIEW: --preview shows the camera in a window with the keys of slowmo preview. Zoom and torch
      apply to the recording too. With --trigger, space triggers a clip, and a ring shows when memory
      holds the time of --pre. The recording ends when the window is closed.

      METADATA: --metadata-fd reads one JSON object per line, such as {"key": "com.example.speed",
      "value": 41.5, "frame": 120}. Frames are counted from 0 over all files. Without a frame, the
      value belongs to the frame that is captured when the line arrives. slowmo info
      --timed-metadata prints the values.

      --metadata codes,faces finds objects as slowmo scan does, with at most a fifth of a processor.
      Each one is stored at its frame as com.overcrank.code or com.overcrank.face. slowmo frames
      --csv lists them. A list such as qr,ean13 finds only these types.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: Completions.device)
  var device: String

  @Option(
    name: .shortAndLong, help: "The movie file to write: .mov or .mp4.", completion: .file())
  var output: String

  @Option(
    help: "The mode, as [WxH][@rate][/fourcc]; the fastest match is used.",
    completion: Completions.mode, transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Flag(help: "Use the fastest mode of all; this is the default.")
  var fastest = false

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional,
    help: "Stop after this duration.", transform: positiveDuration)
  var duration: MediaTime?

  @Option(help: "Stop after this many frames.")
  var frames: Int64?

  @Option(help: "Video codec: auto, copy, h264, mjpeg, ffv1 or raw.")
  var codec = VideoOutputSettings.automatic

  @Option(help: "With h264, frames refer only to every nth frame; players may drop the others.")
  var droppable: Int?

  @Option(
    help: """
      Record this microphone, such as hw:1,0; none: no audio. Default: the camera's own audio, such \
      as that of a webcam's microphone.
      """,
    completion: Completions.microphone)
  var audio: String?

  @Option(help: "Audio codec: aac or pcm. Default: pcm with lossless video, else aac.")
  var audioCodec: AudioCodec?

  @Option(help: "Exit with 10 if more frames than this are lost.")
  var maxDrops: Int64?

  @Option(help: "Also write the report to this JSON file.", completion: .file())
  var report: String?

  @Option(
    help: "Stop before the file exceeds this size, e.g. 500M or 2GiB.", transform: byteCount)
  var maxSize: Int64?

  @Option(help: "Stop before free disk space falls below this size.", transform: byteCount)
  var minFree: Int64?

  @Flag(help: "Keep all frames in memory and write the file after the capture.")
  var burst = false

  @Flag(help: "Move the index to the front at the end, so that the file plays while downloading.")
  var faststart = false

  @Option(help: "Title stored in the file's metadata.")
  var title: String?

  @Option(
    name: .customLong("frames-csv"), help: "Write one CSV line per frame, as slowmo frames --csv.",
    completion: .file())
  var framesCSV: String?

  @Flag(help: "Show the camera in a window; needs slowmo-full.")
  var preview = false

  @Option(help: "Press the keys of this file in the window of --preview.", completion: .file())
  var script: String?

  @OptionGroup var triggers: TriggerOptions
  @OptionGroup var segments: SegmentOptions
  @OptionGroup var metadata: MetadataOptions
  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if script != nil, !preview {
      throw ValidationError("--script needs --preview: it operates the window")
    }
    if mode != nil && fastest { throw ValidationError("--mode and --fastest exclude each other") }
    if let droppable, !(2...16).contains(droppable) {
      throw ValidationError("--droppable \(droppable) is not from 2 to 16")
    }
    if droppable != nil, codec != .codec(.h264) {
      throw ValidationError("--droppable needs --codec h264")
    }
    if let frames, frames < 1 { throw ValidationError("--frames \(frames) is not above zero") }
    if frames != nil, triggers.isTriggered {
      throw ValidationError("--frames excludes --trigger: limit clips with --pre and --post")
    }
    if burst, triggers.isTriggered {
      throw ValidationError("--burst and --trigger exclude each other: both keep frames in memory")
    }
    if framesCSV != nil, triggers.repeat {
      throw ValidationError("--frames-csv excludes --repeat: use slowmo frames --csv for each clip")
    }
    if triggers.repeat {
      do { _ = try ClipNames.template(output) } catch let error as CommandError {
        throw ValidationError(error.line)
      }
    }
    try segments.check(
      output, isTriggered: triggers.isTriggered, isBurst: burst, hasTable: framesCSV != nil)
    if metadata.metadata != nil, triggers.isTriggered {
      throw ValidationError("--metadata and --trigger exclude each other")
    }
    if metadata.metadataFd != nil, triggers.isTriggered {
      throw ValidationError("--metadata-fd and --trigger exclude each other")
    }
    try common.check(standardOutputFor: "--frames-csv", framesCSV)
    guard ["mov", "qt", "mp4", "m4v"].contains(output.fileExtension ?? "") else {
      throw ValidationError(
        output == standardOutput
          ? "a movie cannot be written to standard output: name a file"
          : "cannot record to \(output): use a .mov or .mp4 file name")
    }
    if report == standardOutput {
      throw ValidationError("--report - is not supported: name a file, or use --json")
    }
    if let maxDrops, maxDrops < 0 { throw ValidationError("--max-drops \(maxDrops) is negative") }
  }

  var endsReading: Bool { false }

  func perform() throws -> ExitStatus {
    try OutputNames.check([output, report, framesCSV], inputs: [script])
    let steps = try script.map {
      try ScriptLine.script($0, example: PreviewAction.example, PreviewAction.init)
    }
    let windows =
      preview && !writing.dryRun
      ? try PreviewCommand.windows(alternative: "leave out --preview") : nil
    let recognition = try metadata.metadata.map { _ in
      try FullProgram.recognition(alternative: "leave out --metadata")
    }
    let device = try CaptureDevice.named(self.device)
    // The device may be a movie file. It is then an input, which the output must not overwrite.
    let clip = device.kind == .file ? device.path : nil
    try OutputNames.check([output, report, framesCSV], inputs: [clip])
    let format = try chooseFormat(of: device)
    let audio = try AudioSourceOption(named: audio)
    var settings = RecordingSettings(path: output)
    settings.video = codec
    settings.referenceFrameInterval = droppable
    settings.audioCodec = audioCodec
    settings.recordsAudio = audio.isWanted
    settings.overwrites = writing.overwrite
    settings.title = title?.repaired
    settings.metadata = metadata.items
    settings.limit = CaptureLimit(duration: duration, frameCount: frames)
    settings.isBurst = burst
    settings.isOptimizedForNetworkUse = faststart
    settings.maxRecordedFileSize = maxSize
    settings.minFreeDiskSpaceLimit = minFree
    if writing.dryRun {
      try recognition?.check(metadata.selection)
      return try plan(device, format, audio)
    }
    for path in [report, framesCSV].compactMap({ $0 }) {
      try Files.refuseExisting(path, overwrites: writing.overwrite)
    }

    let input = try DeviceInput(device: device, format: format)
    let progress = ProgressReporter(writing.progress)
    var audioWarnings: [String] = []
    let session = try audio.session(of: input) { audioWarnings.append($0) }
    for warning in audioWarnings { progress.warning(warning) }
    /// Warns once if the session has omitted the microphone when it started.
    func warnOfOmission() {
      for warning in audio.warnings(of: device, in: session) where !audioWarnings.contains(warning)
      {
        audioWarnings.append(warning)
        progress.warning(warning)
      }
    }
    let movie = try MovieFileOutput(session: session, settings: settings)
    let window = try windows.map { windows in
      try RecordPreview(
        movie, in: session, of: input, windows, triggers: triggers, script: steps)
    }
    let objects = StoredObjects(movie)
    let search = try recognition.map { try objects.find(metadata.selection, in: session, $0) }
    // The session does not retain its outputs, so `search` must live until the recording has ended.
    defer { withExtendedLifetime(search) {} }
    func shown<Result>(_ work: () throws -> Result) throws -> Result {
      guard let window else { return try work() }
      defer {
        if window.wasClosed {
          let cause = script == nil ? "the window was closed" : "the script ended"
          progress.note("\(cause), so the recording ended")
        }
      }
      return try window.show(while: work)
    }
    Interrupt.onFirst { movie.stop(.signal) }
    let preflight = try movie.preflight()
    for warning in preflight.warnings(for: triggers.isTriggered ? nil : duration) {
      progress.warning(warning)
    }
    if let refusal = preflight.audioRefusal {
      let warning = "the audio is not recorded: \(CommandError(refusal).line)"
      audioWarnings.append(warning)
      progress.warning(warning)
    }
    if burst {
      progress.note(
        "available memory holds at least "
          + "\(decimal(preflight.maximumBurstDuration.doubleValue, 1)) s of this mode"
      )
    }
    if triggers.isTriggered {
      let clips = TriggeredRecording(
        output: output, options: triggers, overwrites: writing.overwrite, progress: progress)
      let (captured, replays) = try shown {
        try clips.record(movie, in: window, begun: warnOfOmission)
      }
      var result = captured
      result.warnings += audioWarnings
      let problem = problem(result, windowWasClosed: window?.wasClosed ?? false)
      // If no clip was recorded, the report would be empty, so only the error is reported.
      if let problem, result.clips.isEmpty { throw problem }
      return try finish(
        RecordDocument(
          result, preflight, path: output, repeats: triggers.repeat, replays: replays, problem
        ).counting(search),
        RecordText.lines(result)
          + result.clips.compactMap { replays[$0.path] }.map { "replay: \($0)" },
        tableOf: result.clips.first)
    }
    let lines = try metadata.metadataFd.map { try MetadataLines.read($0, into: movie) }
    let total = frames ?? duration.flatMap { try? expectedFrames($0, input) }
    // Each access to the option goes through a property wrapper, which is too slow for the progress
    // callback. The value is therefore copied.
    let fillsMemory = burst
    func update(_ state: MovieFileOutput.Progress) {
      warnOfOmission()
      window?.note(state)
      for warning in lines?.take() ?? [] { progress.warning(warning) }
      progress.update(
        ProgressReporter.State(
          frame: state.stored, totalFrames: total, seconds: state.duration.doubleValue,
          drops: state.missing, bytes: state.bytes,
          // A burst fills its memory on purpose, so its fill level is not shown as a warning sign.
          queueFill: fillsMemory ? nil : state.queueFill, peaks: state.levels.map(\.peakDBFS)))
    }
    if segments.hasSeveralFiles {
      let files = SegmentedRecording(
        output: output, options: segments, exec: triggers.exec, overwrites: writing.overwrite,
        progress: progress)
      var result = try shown { try files.record(movie, update: update) }
      warnOfOmission()
      result.take.warnings += audioWarnings
      objects.end(search)
      for warning in (lines?.take() ?? []) + objects.warnings { progress.warning(warning) }
      return try finish(
        RecordDocument(result, preflight, result.take.problem.map { CommandError($0) })
          .counting(search),
        RecordText.lines(result), tableOf: nil)
    }
    progress.start(file: output)
    var result = try shown { try movie.record(progress: update) }
    warnOfOmission()
    objects.end(search)
    let commands = triggers.exec.map(ClipCommands.init)
    // If another program replaced the output file, the path now leads to a foreign file. The user's
    // `--exec` command must not receive it.
    if result.problem?.code != .outputReplaced { commands?.run(for: output) }
    let warnings =
      (lines?.take() ?? []) + objects.warnings + result.warnings + (commands?.wait() ?? [])
    for warning in warnings { progress.warning(warning) }
    result.warnings += audioWarnings
    progress.end(file: output)
    return try finish(
      RecordDocument(result, preflight, result.problem.map { CommandError($0) }).counting(search),
      RecordText.lines(result), tableOf: result)
  }

  /// Returns the fastest mode that matches `--mode` and suits the codec.
  ///
  /// If no matching mode suits the codec, returns the fastest matching mode. The recording then
  /// fails with an error that names the format of this mode.
  private func chooseFormat(of device: CaptureDevice) throws -> CaptureFormat {
    do {
      return try fastestFormat(of: device, suiting: codec)
    } catch let error as MediaError where error.code == .noMatchingFormat {
      return try fastestFormat(of: device, suiting: .automatic)
    }
  }

  private func fastestFormat(
    of device: CaptureDevice, suiting codec: VideoOutputSettings
  ) throws -> CaptureFormat {
    guard let mode else { return try device.fastestFormat(where: codec.suits) }
    return try device.format(matching: mode, where: codec.suits)
  }

  private func expectedFrames(_ duration: MediaTime, _ input: DeviceInput) throws -> Int64? {
    Int64(
      exactly: try (duration.seconds * input.negotiatedFrameRate.framesPerSecond)
        .rounded(.towardPositiveInfinity))
  }
}

/// Parses a duration above zero.
@Sendable func positiveDuration(_ text: String) throws -> MediaTime {
  let duration = try MediaTime(parsing: text)
  guard duration > .zero else {
    throw MediaError(.notPositive, "the duration \(text) is not above zero")
  }
  return duration
}

/// Parses a number of bytes above zero: `4096`, `500M`, `2GiB`.
@Sendable func byteCount(_ text: String) throws -> Int64 {
  let units: [(String, Int64)] = [
    ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
    ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
    ("k", 1_000), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000),
    ("B", 1), ("", 1),
  ]
  for (name, factor) in units where text.hasSuffix(name) {
    guard let number = Int64(text.dropLast(name.count)), number > 0 else { continue }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
    if !overflow { return bytes }
  }
  throw ValidationError("\(text) is not a size above zero, such as 500M or 2GiB")
}

extension RecordCommand {
  func plan(
    _ device: CaptureDevice, _ format: CaptureFormat, _ audio: AudioSourceOption
  ) throws -> ExitStatus {
    let document = RecordPlanDocument(
      file: output, device: device.address, mode: format.id,
      requestedFps: format.maxFrameRate, codec: codec.defaultValueDescription,
      audio: audio.microphone(of: device).flatMap { $0.problem == nil ? $0.address : nil })
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
  func problem(_ result: TriggeredReport, windowWasClosed: Bool) -> CommandError? {
    if let problem = result.problem { return CommandError(problem) }
    guard result.triggerCount == 0 else { return nil }
    if windowWasClosed {
      return CommandError(
        .gaveUpWaiting, code: "no_trigger",
        "the window was closed before a trigger arrived, so \(output) was not written",
        hint: "press space in the window to record a clip")
    }
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

/// The files of `record --segment` and `record --reconnect`: their names, progress reports and user
/// commands.
struct SegmentedRecording {
  let output: String
  let options: SegmentOptions
  /// The user's command to run for each file; nil for none.
  let exec: String?
  let overwrites: Bool
  let progress: ProgressReporter

  /// Records files until the capture ends.
  func record(
    _ movie: MovieFileOutput, update: (MovieFileOutput.Progress) -> Void
  ) throws -> SegmentedReport {
    let names = try ClipNames(output, overwrites: overwrites)
    let commands = exec.map(ClipCommands.init)
    let segments = SegmentSettings(
      duration: options.segment, reconnectTimeout: options.reconnect
    ) { _ in names.next() }
    progress.start(file: output)
    var report = try movie.record(in: segments) { event in
      switch event {
      case .didStart: break
      case .progress(let state): update(state)
      case .didFinish(let file):
        progress.file(file.path)
        // If another program replaced the output file, the path now leads to a foreign file. The
        // user's `--exec` command must not receive it.
        if file.problem?.code != .outputReplaced { commands?.run(for: file.path) }
      case .didFail(let path, let error):
        progress.warning("\(path) was not written: \(error.message)")
      case .waitingForDevice:
        progress.note("the camera is disconnected; waiting for it")
      }
    }
    report.take.path = output
    report.take.warnings += commands?.wait() ?? []
    for warning in report.take.warnings { progress.warning(warning) }
    progress.end(file: nil)
    return report
  }
}
