// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// `slowmo play FILE|PROJECT`: plays a clip or a project on a clock.
struct PlayCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "play",
    abstract: "Play a clip or a project at any speed, in a window or without one.",
    discussion: """
      EXAMPLES
        slowmo play take.mov
        slowmo play take.mov --range 0.5..0.7 --speed 1/8 --audio none
        slowmo play take.mov --beside take.mov --origin 0.5 --beside-origin 0.7
        slowmo play take.mov --terminal --range 0.5..1 --speed 2 --audio none

      Keys:
      \(KeyDescription.table(PlayerKey.descriptions, width: 16))

      --script presses keys without a window, or with --window in one. Each line of its file is a
      time in seconds after the start, and a key. Playback ends at the last line. In a window, a line
      can also be click NAME, click X,Y, move X,Y, drag X,Y X,Y, hold NAME, release, wheel N X,Y,
      frames N, wait idle or png FILE.

      MANUAL
        slowmo play take.mov --script keys.txt --audio none --json
        slowmo play take.mov --terminal --start 0.5 --audio none
        slowmo play take.mov --range 0.5..0.55 --speed 1/8 --sampling flow-fast
        slowmo play take.mov --script edits.txt --audio none -o edited.otio

      The window needs slowmo-full. It shows the image, a time line with thumbnails and speeds, and
      the position. Buttons appear at the start and when the pointer moves. Click the image to pause,
      and double-click it for full screen. Drag on the time line to scrub. Turn the wheel to zoom
      until pixels are visible, and drag the image to move it. More keys of the window:

      \(KeyDescription.table(PlayerKey.windowDescriptions, width: 30))

      --terminal plays without a window: audio, and the position on a line.

      --speed is from 1/32 to 32. In a project, it multiplies the speeds of the project. --pitch
      low-quality plays at the nearest speed that this algorithm supports.

      With --sampling flow, frames are synthesized for the refreshes between captured frames. Their
      numbers begin with ~. No key writes them or steps to them.

      Marks are named mark1, mark2 and so on. They become markers of a project and chapters of a
      movie. Times can name them, as in --range @mark1..@mark2.

      d lets the pointer draw on the image: distances, angles, boxes and points, in pixels. e writes
      them to the file of --annotations, which track and measure read.

      -o names the file that w writes: a project (.otio), or a movie. The frames of a movie are
      copied, or rendered with --fps.

      The result counts the frames that were shown, those that were late, and those that were
      skipped because the speed shows more frames per second than the screen (--refresh).
      """)

  @Argument(
    help: """
      A movie or project: .otio, .llc, .edl, .fcpxml or .xml. Without it, a window waits for a file.
      """, completion: .file())
  var file: String?

  @Option(help: "Source seconds per second, such as 1/8.", transform: Speed.init(parsing:))
  var speed = Speed.normal

  @Option(
    parsing: .unconditional, help: "Play only this range, such as 1.2..1.5.",
    completion: Completions.mark, transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Option(
    parsing: .unconditional, help: "Begin at this time of the clip, such as 1.2 or @mark1.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var start: TimeExpression?

  @Flag(help: "Repeat until interrupted, or until the script ends.")
  var loop = false

  @Option(
    help: """
      Audio at other speeds: spectral, time-domain, varispeed, low-quality, low-quality:snap or mute.
      """)
  var pitch = PitchOption(.spectral)

  @Option(help: "Audio output: auto, none, or an ALSA device such as hw:0,0.")
  var audio = "auto"

  @Option(
    help: """
      Images between captured frames in slow playback: hold (the frame before), flow (synthesized \
      frames) or flow-fast.
      """)
  var sampling = PlaybackSampling.hold

  @Option(help: "Refresh rate of the screen.", transform: FrameRate.init(parsing:))
  var refresh: FrameRate = 60

  @Option(
    help: "Show another clip or project next to FILE, on the same clock.", completion: .file())
  var beside: String?

  @Option(
    parsing: .unconditional, help: "The time of FILE that is shown with --beside-origin.",
    completion: Completions.mark, transform: TimeExpression.init(parsing:))
  var origin: TimeExpression?

  @Option(
    parsing: .unconditional, help: "The time of the other clip that is shown with --origin.",
    transform: TimeExpression.init(parsing:))
  var besideOrigin: TimeExpression?

  @Flag(help: "Play without a window.")
  var terminal = false

  @Flag(help: "Press the keys of --script in a window.")
  var window = false

  @Option(help: "Press the keys of this file.", completion: .file())
  var script: String?

  @Option(
    help: "Read and write what is measured in the window: the file of track and measure.",
    completion: .file())
  var annotations: String?

  @Option(
    help: "A known length in the image, such as '96=1m', for distances in meters.",
    transform: LengthScale.init(argument:))
  var scale: LengthScale?

  @Option(
    name: .shortAndLong,
    help: "The file that the key w writes: .otio for a project, .mov, .mp4 or .m4v.",
    completion: .file())
  var output: String?

  @Option(
    help: "Write a movie at this constant rate, such as 30.", transform: FrameRate.init(parsing:))
  var fps: FrameRate?

  @Option(help: .onError) var onError = UndecodableFramePolicy.hold

  @OptionGroup var writing: WritingOptions
  @OptionGroup var timing: ClockOptions
  @OptionGroup var trackChoice: TrackOptions
  @OptionGroup var common: CommonOptions

  // The first signal only ends playback, so that the result is still printed.
  var endsReading: Bool { false }

  /// Whether the command opens a window.
  private var opensWindow: Bool { window || !terminal && script == nil }

  func validate() throws {
    if file == nil, !opensWindow || script != nil || common.json || !Self.hasDisplay {
      throw ValidationError("Missing expected argument '<file>'")
    }
    guard (Speed(1, over: 32)...Speed(32)).contains(speed) else {
      throw ValidationError("--speed \(speed) is not from 1/32 to 32")
    }
    guard refresh <= FrameRate(1_000), refresh >= FrameRate(1) else {
      throw ValidationError("--refresh \(refresh) is not from 1 to 1000")
    }
    if window, terminal { throw ValidationError("--window and --terminal exclude each other") }
    if beside != nil, !opensWindow {
      throw ValidationError("--beside needs the window: leave out --terminal, or add --window")
    }
    if output == standardOutput {
      throw ValidationError("-o needs a file name: the result is written to standard output")
    }
    if fps != nil, output.map(PlaybackProject.Output.isProject) ?? true {
      throw ValidationError("--fps needs -o with a movie, such as -o slow.mp4")
    }
    if let output, !PlaybackProject.Output.isWritable(output) {
      throw ValidationError("play cannot write \(output): use .otio, .mov, .mp4 or .m4v")
    }
    if beside == nil, origin != nil || besideOrigin != nil {
      throw ValidationError("--origin and --beside-origin need --beside")
    }
  }

  func perform() throws -> ExitStatus {
    let (status, dropped) = try play()
    guard let dropped else { return status }
    // These options belong to the first file.
    var next = self
    (next.file, next.range, next.start, next.scale) = (dropped, nil, nil, nil)
    (next.beside, next.origin, next.besideOrigin) = (nil, nil, nil)
    (next.output, next.fps, next.annotations, next.script) = (nil, nil, nil, nil)
    next.timing.captureFps = nil
    return try next.perform()
  }

  /// Plays the file.
  ///
  /// - Returns: The exit status, and the file that the user dropped on the window; nil for none.
  private func play() throws -> (ExitStatus, dropped: String?) {
    let keys = try script.map {
      try ScriptLine.script($0, example: "0.5 space") { PlayerKey(name: $0) }
    }
    if output == nil, keys?.contains(where: { $0.key == .write }) ?? false {
      throw CommandError.usage(
        "the key w has no file to write", hint: "name it: -o edited.otio, or -o edited.mov")
    }
    try OutputNames.check([output, annotations], inputs: [self.file, beside, script])
    if let output { try Files.refuseExisting(output, overwrites: writing.overwrite) }
    let windows = opensWindow ? try windows() : nil
    guard let file = try file ?? windows?.chooseFile(Self.invitation, until: Self.isInterrupted)
    else { return (Interrupt.isRequested ? Interrupt.status : .done, nil) }
    // During playback, a signal ends the playback. Before playback, a signal must cancel the
    // reading of a movie's index.
    Interrupt.onFirst { Asset.cancelReading() }
    let content = try PlayedContent(file, range, onError, trackChoice, timing)
    let other = try beside.map { try PlayedContent($0, nil, onError, trackChoice, timing) }
    Interrupt.onFirst {}
    let assets = content.assets + (other?.assets ?? [])
    try OutputNames.check([output], inputs: assets.map(\.path))
    let notes = Output.notes(of: assets)
    let project = PlaybackProject(
      content,
      output.map {
        PlaybackProject.Output(path: $0, rate: fps, onError: onError, writing: writing)
      })
    var settings = PlayerSettings()
    settings.refreshRate = refresh
    settings.algorithm = pitch.algorithm
    settings.sampling = sampling.sampling
    if audio != "none" {
      settings.audioSink = ALSAAudioSink(device: audio == "auto" ? "default" : audio)
    }
    let player = try Player(content.composition, of: content.assets, settings: settings)
    defer { player.close() }
    let follower = try other.map { other in
      try player.makeFollower(
        other.composition, of: other.assets, origin: other.time(besideOrigin),
        besideOrigin: content.time(origin))
    }
    defer { follower?.close() }
    if windows != nil {
      // A window with one movie does not show its name.
      Output.noteMissingFonts(for: beside.map { [file, $0].map(\.lastPathComponent) } ?? [])
    }
    let view = try windows?.open(
      [player] + (follower.map { [$0] } ?? []), clipNames: [file] + (beside.map { [$0] } ?? []))
    if let error = player.audioError {
      Output.note("\(file): no audio (\(error.message)); playback follows the system clock")
    }
    if loop { try player.setLoop(TimeRange(duration: content.composition.duration)) }
    if let start {
      let time = try content.time(start)
      guard time >= .zero, time < content.composition.duration else {
        throw MediaError(
          .outsideSource, "the start at \(time.displayText) s is outside the played range",
          recovery: "choose a time before \(content.composition.duration.displayText) s")
      }
      player.seek(to: time)
    }
    let measured = try PlaybackAnnotations(annotations, of: file, scale: scale)
    let run = PlaybackSession(
      player, of: file, rate: speed.fraction, keys: keys, refresh: refresh)
    var (problem, dropped) = (CommandError?.none, String?.none)
    do {
      dropped = try run.play(
        in: view, beside: follower, editing: project, annotating: measured
      ) { _ = try PlayedContent($0, nil, onError, trackChoice, timing) }
    } catch { problem = CommandError(error) }
    if let dropped { return (.done, dropped) }
    let clock = content.assets.count == 1 ? try? content.assets[0].captureClock() : nil
    var document = try PlayDocument(
      file, player, run, project, clock: timing.clock, timeSource: clock?.source, notes: notes)
    if settings.sampling.synthesizesFrames { document.synthesized = player.ledger.synthesized }
    if let beside, let follower { document.beside = PlayDocument.Clip(beside, follower.ledger) }
    // If no file was written, only the error is reported.
    if let problem, !document.hasFiles { throw problem }
    document.error = problem.map { ErrorDetails($0) }
    try Output.print(document, asJSON: common.json)
    if let problem {
      if !common.json { Output.error(problem) }
      return (problem.status, nil)
    }
    return (Interrupt.isRequested && keys == nil && !loop ? Interrupt.status : .done, nil)
  }

  /// Whether the environment names a screen, on which a window can wait for a file.
  private static var hasDisplay: Bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].contains { (name: String) in
      getenv(name).map { $0.pointee != 0 } ?? false
    }
  }

  private static func isInterrupted() -> Bool { Interrupt.isRequested }

  /// The table of a window that waits for a file.
  private static let invitation = [
    KeyDescription("drop a file here", "to play it: a movie or a project"),
    KeyDescription("slowmo play FILE", "plays a file, in a terminal"),
    KeyDescription("slowmo play --help", "shows all options"),
    KeyDescription("q", "quit"),
  ]

  /// Returns the provider that opens playback windows.
  ///
  /// - Throws: `CommandError` if there is no screen, or `slowmo-full` is not installed.
  private func windows() throws -> any PlaybackWindowProvider {
    guard let windows = OptionalComponents.current.playbackWindows else {
      try FullProgram.replaceThisProgram(
        for: "the window", alternative: "play without a window: --terminal")
    }
    try windows.checkDisplay()
    return windows
  }
}

/// The choice of whether refreshes between captured frames show the last frame again or a
/// synthesized frame.
enum PlaybackSampling: String, CaseIterable, ExpressibleByArgument {
  case hold
  case flow
  case flowFast = "flow-fast"

  /// The sampling method for the player's settings.
  var sampling: FrameSampling {
    switch self {
    case .hold: .hold
    case .flow: .flow
    case .flowFast: .flowFast
    }
  }
}
