// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import OvercrankLinuxSystem

/// `slowmo play FILE|PROJECT`: plays a clip or a project on a clock.
struct PlayCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "play",
    abstract: "Play a clip or a project at any speed, without a window.",
    discussion: """
      EXAMPLES
        slowmo play take.mov --audio none
        slowmo play take.mov --range 0.5..1 --speed 2 --audio none
        slowmo play take.mov --range 0.5..0.7 --speed 1/8 --pitch varispeed --audio none
        slowmo play take.mov --script keys.txt --audio none --json

      This program has no window: it plays audio, decodes the frame of each refresh, and prints
      the position on a terminal. The result counts the frames that were shown, skipped because
      the speed shows more frames than the screen (--refresh), and late.
      --speed is from 1/32 to 32. In a project it multiplies the speeds of the project.
      --pitch low-quality plays at the nearest speed that this algorithm supports.
      --script presses keys and ends at its last line. Each line is a time in seconds after the
      start, and a key:
        space pause, . and , next and previous frame, [ and ] half and double speed,
        backspace normal speed, r reverse, a and b start and end of a loop (b alone ends it),
        left and right 1 s, home, end, p next pitch algorithm, u mute, q quit.
      """)

  @Argument(
    help: "The movie file, or a project: .otio, .llc, .edl or .fcpxml.", completion: .file())
  var file: String

  @Option(help: "Source seconds per second, such as 1/8.", transform: Speed.init(parsing:))
  var speed = Speed.normal

  @Option(
    parsing: .unconditional, help: "Play this range alone, such as 1.2..1.5.",
    transform: TimeRangeExpression.init(parsing:))
  var range: TimeRangeExpression?

  @Flag(help: "Repeat until interrupted, or until the script ends.")
  var loop = false

  @Option(
    help: "Audio at other speeds: spectral, time-domain, varispeed, low-quality or mute.")
  var pitch = PitchOption(.spectral)

  @Option(help: "Audio output: auto, none, or an ALSA device such as hw:0,0.")
  var audio = "auto"

  @Option(help: "Refreshes of the screen per second.", transform: FrameRate.init(parsing:))
  var refresh: FrameRate = 60

  @Option(help: "Press the keys of this file.", completion: .file())
  var script: String?

  @Option(help: .onError) var onError = UndecodableFramePolicy.hold

  @OptionGroup var common: CommonOptions

  // The first signal ends playback, and the result is still printed.
  var endsReading: Bool { false }

  func validate() throws {
    guard (Speed(1, over: 32)...Speed(32)).contains(speed) else {
      throw ValidationError("--speed \(speed) is not from 1/32 to 32")
    }
    guard refresh <= FrameRate(1_000), refresh >= FrameRate(1) else {
      throw ValidationError("--refresh \(refresh) is not from 1 to 1000")
    }
  }

  func perform() throws -> ExitStatus {
    let keys = try script.map(ScriptedKey.script)
    let (composition, assets) = try content()
    var settings = PlayerSettings()
    settings.refreshRate = refresh
    settings.algorithm = pitch.algorithm
    if audio != "none" {
      settings.audioSink = ALSAAudioSink(device: audio == "auto" ? "default" : audio)
    }
    let player = try Player(composition, of: assets, settings: settings)
    defer { player.close() }
    if let error = player.audioError {
      Output.note("\(file): no audio (\(error.message)); frames play by the clock")
    }
    if loop { try player.setLoop(TimeRange(duration: composition.duration)) }
    let run = PlaybackSession(player, rate: speed.fraction, keys: keys, refresh: refresh)
    try run.play()
    let document = PlayDocument(file, player, run)
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return Interrupt.isRequested && keys == nil && !loop ? Interrupt.status : .done
  }

  /// Returns the composition to play, and its assets.
  private func content() throws -> (Composition, [Asset]) {
    let isProject = ["otio", "llc", "edl", "fcpxml", "xml"].contains(file.fileExtension ?? "")
    var composition: Composition
    let assets: [Asset]
    let length: TimeRange?
    if isProject {
      do {
        let read = try ProjectReader(file, timecodeFps: nil) { (path) throws(MediaError) in
          try openAsset(path, onError)
        }
        for warning in read.warnings { Output.note("\(file): \(warning)") }
        (composition, assets) = (read.composition, read.assets)
      } catch { throw ProjectReader.dataError(file, error) }
      length = try range?.resolved(
        sourceDuration: composition.duration, frameCount: 0,
        frameTime: { (_) throws(MediaError) in
          throw MediaError(.outsideSource, "a project has no frame numbers")
        })
    } else {
      let asset = try openAsset(file, onError)
      composition = try Composition(asset)
      assets = [asset]
      length = try range.map(asset.resolve)
    }
    guard composition.duration > .zero else {
      throw CommandError(
        .badData, code: "invalid_project", "\(file) is empty: it has no clip",
        hint: "choose a project with a clip on a track")
    }
    if let length {
      let whole = composition
      composition = Composition()
      try composition.insertTimeRange(length, of: whole, at: .zero)
    }
    return (composition, assets)
  }
}
