// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
import Dispatch
import Overcrank
import Synchronization

/// `slowmo preview DEVICE`: shows a camera.
struct PreviewCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "preview",
    abstract: "Show a camera in a window or a terminal, live or as a delayed mirror.",
    discussion: """
      EXAMPLES
        slowmo preview synthetic -t 1
        slowmo preview synthetic --delay 500ms --mirror -t 1
        slowmo preview synthetic --delay 500ms --speed 1/2 --peaking --zebra -t 1
        slowmo preview synthetic --terminal -t 1

      Keys:
      \(KeyDescription.table(PreviewKey.descriptions, width: 12))

      The window needs slowmo-full. --terminal draws in a terminal with 24-bit color, also over ssh.

      MANUAL
        slowmo preview synthetic:640x480@60 --mirror --gravity resizeAspectFill -t 1
        slowmo preview synthetic -t 1 --json

      A front camera is shown mirrored, as in a mirror. --mirror mirrors any camera, and m changes it.

      The newest frame is shown, and at most one frame waits. A slow connection to a terminal never
      holds more than one image.

      The line of text shows the measured rate, the frames that the counter of the driver skipped,
      the audio level and the exposure.

      --delay shows frames of that age, from memory. With --speed below 1, the delay grows from zero
      in slow motion. After it has reached --delay, the newest frame is shown again.

      A click focuses and exposes at that point, if the camera has a region of interest.

      --script presses keys, and the preview ends at its last line. Each line is a time in seconds
      after the first frame, and a key, or tap:X,Y with fractions of the width and height of the
      view.
      """)

  @Argument(
    help: "The device: /dev/video0, cam0, part of its id, synthetic or file:PATH.",
    completion: Completions.device)
  var device: String

  @Option(
    help: "The mode, as [WxH][@rate][/fourcc]; the fastest match is used.",
    completion: Completions.mode, transform: ModeRequest.init(parsing:))
  var mode: ModeRequest?

  @Option(
    name: [.customShort("t"), .long], parsing: .unconditional,
    help: "Stop after this duration.", transform: positiveDuration)
  var duration: MediaTime?

  @Option(
    parsing: .unconditional, help: "Show the camera with this delay, at most 1h.",
    transform: durationOrZero)
  var delay: MediaTime?

  @Option(help: "Source seconds per second, from 1/32 to 1.", transform: Speed.init(parsing:))
  var speed = Speed.normal

  @Flag(help: "Mirror the image.")
  var mirror = false

  @Option(
    help: """
      Fit the image into the view (resizeAspect), fill the view and crop (resizeAspectFill), or \
      stretch the image (resize).
      """)
  var gravity = PreviewGravity.resizeAspect

  @Flag(help: "Show the camera in the terminal.")
  var terminal = false

  @Flag(help: "Mark sharp edges.")
  var peaking = false

  @Flag(help: "Mark areas that are too bright.")
  var zebra = false

  @Option(
    help: """
      Show the level of this microphone, such as hw:1,0; none: no level. Default: the camera's own \
      audio, such as that of a webcam's microphone.
      """,
    completion: Completions.microphone)
  var audio: String?

  @Option(help: "Press the keys of this file.", completion: .file())
  var script: String?

  @OptionGroup var common: CommonOptions

  // The first signal only ends the preview, so that the result is still printed.
  var endsReading: Bool { false }

  func validate() throws {
    guard (Speed(1, over: 32)...Speed.normal).contains(speed) else {
      throw ValidationError("--speed \(speed) is not from 1/32 to 1")
    }
    if let delay, delay > MediaTime(seconds: 3_600) {
      throw ValidationError("--delay is more than an hour")
    }
    if speed != .normal, delay ?? .zero == .zero {
      throw ValidationError("--speed needs --delay: the longest delay in slow motion")
    }
  }

  func perform() throws -> ExitStatus {
    var settings = PreviewRun.Settings()
    settings.aids = PreviewAids(showsFocusPeaking: peaking, showsZebra: zebra)
    settings.duration = duration
    settings.script = try script.map {
      try ScriptLine.script($0, example: PreviewAction.example, PreviewAction.init)
    }
    let windows = terminal ? nil : try Self.windows(alternative: "use --terminal")
    let device = try CaptureDevice.named(self.device)
    // A delay keeps the camera's own frames in memory, and decodes them one by one.
    let isDelayed = (delay ?? .zero) > .zero
    let format = try device.usableFormat(matching: mode) {
      isDelayed ? $0.isShownAlone : $0.isDecoded
    }
    let audio = try AudioSourceOption(named: audio)
    let input = try DeviceInput(device: device, format: format)
    let session = try audio.session(of: input) { Output.warning($0) }
    let source = try PreviewSource(
      session, delay: delay ?? .zero, speed: speed, isMirrored: mirror, gravity: gravity)
    if audio.isWanted {
      let levels = AudioDataOutput()
      try session.addOutput(levels)
      settings.levels = { levels.levels }
    }
    let failure = SessionFailure(session.events)
    let view: any PreviewView
    if let windows {
      view = try windows.open(
        title: device.name, width: format.width, height: format.height)
    } else {
      view = try TerminalPreview()
    }
    defer { (view as? TerminalPreview)?.close() }
    try session.startRunning()
    defer { session.stopRunning() }
    for warning in audio.warnings(of: device, in: session) { Output.warning(warning) }
    settings.recognition = OptionalComponents.current.recognition
    // The microphone may outlast the camera.
    settings.isOver = {
      !(session.runningInputs + session.interruptedInputs).contains { $0 === input }
    }
    let run = PreviewRun(source, in: session, of: input, view: view, settings: settings)
    var problem: CommandError?
    do { try run.show() } catch { problem = CommandError(error) }
    (view as? TerminalPreview)?.close()
    if settings.isOver() {
      session.stopRunning()
      problem = failure.waitForEnd().map { CommandError($0) } ?? problem
    }
    let document = PreviewDocument(
      device: device.address, mode: format.id, shown: source.ledger.delivered,
      delay: source.delay, speed: source.speed, measuredFps: run.measuredFrameRate,
      lost: source.missingCount, ledger: PreviewDocument.Ledger(source.ledger),
      events: run.events, error: problem.map { ErrorDetails($0) })
    // If no file was written, only the error is reported.
    if let problem, !document.hasFiles { throw problem }
    try Output.print(document, asJSON: common.json)
    if let problem {
      if !common.json { Output.error(problem) }
      return problem.status
    }
    return Interrupt.isRequested && (duration != nil || script != nil) ? Interrupt.status : .done
  }

  /// Returns the provider that opens preview windows.
  ///
  /// - Throws: `CommandError` if there is no screen, or `slowmo-full` is not installed.
  static func windows(alternative: String) throws -> any PreviewWindowProvider {
    guard let windows = OptionalComponents.current.previewWindows else {
      try FullProgram.replaceThisProgram(for: "the window", alternative: alternative)
    }
    do throws(MediaError) { try windows.checkDisplay() } catch {
      var problem = CommandError(error)
      problem.hint = "run it on a screen, or \(alternative)"
      throw problem
    }
    return windows
  }

}

/// The error that ended a session, passed to the thread that reports it.
final class SessionFailure: Sendable {
  private let found = Mutex<MediaError?>(nil)
  private let isOver = DispatchSemaphore(value: 0)

  /// Collects the errors among the events of a session.
  init<Events: AsyncSequence<SessionEvent, Never> & Sendable>(_ events: Events) {
    Task { [self] in
      var isInterrupted = false
      for await event in events {
        switch event {
        case .wasInterrupted: isInterrupted = true
        case .interruptionEnded: isInterrupted = false
        case .runtimeError(let error): found.withLock { $0 = error }
        case .didStartRunning, .didStopRunning, .activeFormatDidChange, .didOmitInput: break
        }
        // A session that stops while interrupted may still resume or fail, so it is not over yet.
        if event == .didStopRunning, !isInterrupted { isOver.signal() }
        if isInterrupted, case .runtimeError = event { isOver.signal() }
      }
    }
  }

  /// Returns the error with which a session has stopped; nil if it stopped without an error.
  ///
  /// Events arrive a little later than the change of the session's state. So this waits for them,
  /// but not longer than `limit`.
  func waitForEnd(limit: DispatchTimeInterval = .seconds(1)) -> MediaError? {
    _ = isOver.wait(timeout: .now() + limit)
    return found.withLock { $0 }
  }
}

extension PreviewGravity: ExpressibleByArgument {}

extension CaptureDevice {
  /// Returns the fastest mode that a command can use and that matches `--mode`, if it is given.
  ///
  /// Without `--mode`, modes whose frames are decoded alone are preferred, because the others cost more.
  ///
  /// - Throws: `CommandError` with the reason if the command cannot use the requested mode because
  ///   its frames depend on others; `MediaError` as `format(matching:)` does.
  func usableFormat(
    matching mode: ModeRequest?, where isUsable: (CaptureFormat) -> Bool
  ) throws -> CaptureFormat {
    do throws(MediaError) {
      guard let mode else {
        let alone = try? fastestFormat { $0.isShownAlone && isUsable($0) }
        if let alone { return alone }
        return try fastestFormat(where: isUsable)
      }
      return try format(matching: mode, where: isUsable)
    } catch {
      guard error.code == .noMatchingFormat, let refused = try? format(matching: mode ?? .any),
        case .codec? = refused.mediaSubType, !refused.isShownAlone, !isUsable(refused)
      else { throw error }
      var problem = CommandError(error)
      problem.message =
        "the frames of \(refused.id) of \(address) depend on others, and must be decoded alone here"
      throw problem
    }
  }
}

extension CaptureFormat {
  /// Whether the frames can be decoded, if necessary beside the camera's stream.
  var isDecoded: Bool { isShownAlone || fourcc == .h264 }

  /// Whether each frame can be decoded without other frames.
  var isShownAlone: Bool {
    switch mediaSubType {
    case .pixels?: true
    case .codec(let codec)?: codec == .mjpeg
    case nil: false
    }
  }
}
