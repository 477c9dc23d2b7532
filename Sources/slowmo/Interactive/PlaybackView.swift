// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Overcrank
import OvercrankLinuxSystem

/// The display of a playback: a window, or a line of text on the terminal.
///
/// Only the main thread uses it.
final class PlaybackView {
  private enum Screenshot: Equatable {
    case frame, window
    /// The window, as a file of this path.
    case file(String)
  }

  private let player: Player
  private let file: String
  let window: (any PlaybackWindow)?
  private let project: PlaybackProject
  private let annotations: PlaybackAnnotations
  /// Whether a failed edit ends playback.
  ///
  /// If not, its message is shown.
  private let stopsAtError: Bool
  /// The player of the other clip; nil for none.
  private let follower: Player?
  /// Throws if a file cannot be played.
  private let check: (String) throws -> Void
  /// The file that the user dropped, and with which playback continues; nil for none.
  private var acceptedFile: String?
  /// The number of frames by which the other clip was moved.
  private var nudgedFrames = 0
  private var memory: PlayerKey.Memory
  private var screenshots: [Screenshot] = []
  /// The number of refreshes for which a step of a script has waited.
  private var waitedFrames = 0
  /// The state of the window's buttons; nil before the first refresh.
  private var buttonState: PlayerKey.ButtonState?
  /// The number of further refreshes for which the message is shown.
  private var messageRefreshes = 0
  /// The number of refreshes for which the next screenshot has waited for its frame.
  private var waitedRefreshes = 0

  /// The greatest number of refreshes for which a screenshot waits for its frame to be decoded.
  private static let maximumWaits = 600
  private static let messageLength = 90

  init(
    _ player: Player, _ file: String, _ rate: Rational, _ project: PlaybackProject,
    _ annotations: PlaybackAnnotations, _ window: (any PlaybackWindow)?, beside follower: Player?,
    stopsAtError: Bool, check: @escaping (String) throws -> Void
  ) {
    (self.annotations, self.follower, self.check) = (annotations, follower, check)
    (self.player, self.file, self.window) = (player, file, window)
    (self.project, self.stopsAtError) = (project, stopsAtError)
    memory = PlayerKey.Memory(rate: rate)
    window?.marks = project.markTimes
    window?.keyHelp =
      PlayerKey.descriptions + PlayerKey.windowDescriptions + PlayerKey.pointerDescriptions
    window?.clickKey = PlayerKey.space.rawValue
    window?.doubleClickKey = PlayerKey.fullScreen.rawValue
    // A script sees what it asks for, and a person what can be done.
    if !stopsAtError {
      window?.showButtons()
      report("? shows the keys")
    }
  }

  /// True if a screenshot waits for its frame.
  var isWaiting: Bool { !screenshots.isEmpty }

  /// Waits for input if nothing else can change the window.
  ///
  /// The wait is short, because a signal does not end it.
  func waitWhileIdle() {
    guard let window, window.isIdle, messageRefreshes == 0, !isWaiting else { return }
    window.waitForInput(milliseconds: 200)
  }

  /// Performs the action of a key.
  ///
  /// - Returns: False for the key that ends playback.
  func press(_ key: PlayerKey) throws -> Bool {
    // The table of keys does not stay over the effect of a key that was found in it.
    if ![.help, .screenshot, .windowScreenshot].contains(key) { window?.showsHelp = false }
    do {
      let isMeasuring = window?.isMeasuring ?? false
      if let message = try annotations.press(key, isMeasuring: isMeasuring)
        ?? project.press(key, player)
      {
        window?.marks = project.markTimes
        let range = project.rangeTimes
        window?.rangeStart = range.start
        window?.rangeEnd = range.end
        if !message.isEmpty { report(message) }
      }
    } catch {
      guard !stopsAtError else { throw error }
      report(CommandError(error).message)
    }
    switch key {
    case .screenshot: screenshots.append(.frame)
    case .windowScreenshot: screenshots.append(.window)
    case .fullScreen: window?.toggleFullScreen()
    case .zoomIn: window?.zoom(by: 2)
    case .zoomOut: window?.zoom(by: 0.5)
    case .zoomReset: window?.resetZoom()
    case .panLeft: window?.pan(x: 0.1, y: 0)
    case .panRight: window?.pan(x: -0.1, y: 0)
    case .panUp: window?.pan(x: 0, y: 0.1)
    case .panDown: window?.pan(x: 0, y: -0.1)
    case .help: window?.showsHelp.toggle()
    case .measure: toggleMeasuring()
    case .nudgeBack: nudge(by: -1)
    case .nudgeForward: nudge(by: 1)
    default:
      guard try memory.press(key, player) else { return false }
      window?.mark = memory.mark
      if !memory.message.isEmpty { report(memory.message) }
    }
    return true
  }

  /// Performs a step of a script that is no key.
  ///
  /// - Returns: False if the step waits, and must be performed again after the next refresh.
  /// - Throws: `CommandError` for a step that the view does not know.
  func perform(_ step: ViewStep) throws -> Bool {
    guard let window else {
      throw CommandError.usage(
        "only a window can perform clicks and other steps of a script",
        hint: "add --window, or use only keys")
    }
    switch step {
    case .frames(let count):
      waitedFrames += 1
      guard waitedFrames > count else { return false }
      waitedFrames = 0
    case .wait("idle"):
      guard player.loop == nil || player.rate == .zero else {
        throw CommandError(
          .badData, code: "syntax",
          "the script waits for idle, but \(file) repeats without an end",
          hint: "pause it before, with the key space")
      }
      return window.isIdle
    case .wait(let event):
      throw CommandError(
        .badData, code: "syntax", "the script waits for \(event), which play does not know",
        hint: "wait for idle: the frame on screen is decoded and stands still")
    case .image(let path): screenshots.append(.file(path))
    case .key, .move, .click, .hold, .release, .drag, .wheel:
      guard window.perform(step) else {
        throw CommandError(
          .badData, code: "syntax", "the window of \(file) does not have the control of a step",
          hint: "name a button by its key or text, or a point by X,Y from 0 to 1")
      }
    }
    return true
  }

  private func toggleMeasuring() {
    guard let window else { return }
    window.isMeasuring.toggle()
    if window.isMeasuring { player.pause() }
    report(
      window.isMeasuring
        ? "drag: distance · from its end: angle · right button: box · click: point"
        : "no measuring")
  }

  /// Moves the other clip by a number of its frames.
  private func nudge(by frames: Int) {
    guard let follower else { return report("only one clip is open: start play with --beside") }
    guard follower.shift(byFrames: frames) else {
      return report("the other clip has no further frame")
    }
    nudgedFrames += frames
    let sign = nudgedFrames < 0 ? "" : "+"
    report("the other clip was moved by \(sign)\(nudgedFrames) frames")
  }

  /// The file that the user dropped, and with which playback continues; nil for none.
  var droppedFile: String? { acceptedFile }

  /// Accepts a file that the user dropped, if it can be played.
  ///
  /// - Returns: True if playback should continue with it.
  func accepts(_ path: String) -> Bool {
    do {
      try check(path)
      acceptedFile = path
      return true
    } catch {
      report(CommandError(error).message)
      return false
    }
  }

  private func report(_ message: String) {
    window?.message = message
    messageRefreshes = Self.messageLength
  }

  /// Shows the frame that is due at a refresh, and takes the screenshots that waited for it.
  ///
  /// - Parameters:
  ///   - time: The time of the refresh.
  ///   - written: Called with the name of each file that was written.
  /// - Throws: `MediaError` if the window fails, or a screenshot cannot be written.
  func show(at time: MediaTime, written: (String) -> Void) throws {
    if messageRefreshes > 0 {
      messageRefreshes -= 1
      if messageRefreshes == 0 { window?.message = "" }
    }
    guard let window else {
      let frame = player.frame(at: time)
      PlaybackStatus.show(
        player, rate: memory.rate, mark: memory.mark, isSynthesized: frame?.isSynthesized ?? false)
      return try takeScreenshots(
        isCurrent: player.isFrameCurrent, written
      ) { _ throws(MediaError) in try frame?.pngData() }
    }
    let state = PlayerKey.ButtonState(
      isPlaying: player.rate != .zero, isReversed: memory.rate < .zero,
      isMeasuring: window.isMeasuring)
    if state != buttonState { (window.buttons, buttonState) = (PlayerKey.buttons(state), state) }
    // A frame is requested again only for shapes, because each request counts in the ledger.
    if window.isMeasuring || !annotations.isEmpty, let frame = player.frame(at: time),
      !frame.isSynthesized
    {
      for shape in window.takeShapes() {
        annotations.add(
          shape, frame: frame.index, captureTime: player.time(at: time).capture)
      }
      window.shapes = annotations.shapes(frame: frame.index, draft: window.draftShape)
    }
    try window.present(at: time, rate: memory.rate)
    try takeScreenshots(
      isCurrent: window.isCurrent, written
    ) { kind throws(MediaError) in
      kind == .frame ? try player.frame(at: time)?.pngData() : try window.pngData()
    }
  }

  private func takeScreenshots(
    isCurrent: Bool, _ written: (String) -> Void,
    _ data: (Screenshot) throws(MediaError) -> [UInt8]?
  ) throws {
    guard !screenshots.isEmpty else { return }
    waitedRefreshes += 1
    let isReady = isCurrent && player.state != .seeking
    guard isReady || waitedRefreshes > Self.maximumWaits else { return }
    let kinds = screenshots
    (screenshots, waitedRefreshes) = ([], 0)
    var last: String?
    for kind in kinds {
      do {
        guard let bytes = try data(kind) else {
          throw CommandError(
            .badData, code: "nothing_shown",
            "\(file) shows no frame at \(player.currentTime.text()), so no image was written",
            hint: window == nil
              ? "take it at another time" : "take it at another time, or of the window")
        }
        let name = try write(bytes, kind)
        written(name)
        last = name
      } catch {
        guard !stopsAtError else { throw error }
        report(CommandError(error).message)
      }
    }
    if let last { report("written: \(last)") }
  }

  /// Writes a screenshot to its path, or under the first unused name in the working directory.
  private func write(_ bytes: [UInt8], _ kind: Screenshot) throws -> String {
    if case .file(let path) = kind {
      try Files.write(path, Data(bytes), overwrites: false)
      return path
    }
    var stem = file.split(separator: "/").last.map(String.init) ?? file
    if let dot = stem.lastIndex(of: "."), dot > stem.startIndex { stem = String(stem[..<dot]) }
    return try NumberedFile.write(bytes, prefix: "\(stem)-shot", extension: "png")
  }
}

/// A line that shows the playback position on a terminal.
enum PlaybackStatus {
  private static let isOn = isatty(STDERR_FILENO) != 0

  /// Replaces the line by the current position.
  static func show(
    _ player: Player, rate: Rational, mark: PlayerTime?, isSynthesized: Bool
  ) {
    guard isOn else { return }
    let text = player.currentTime.text(
      rate: rate, since: mark, isSynthesized: isSynthesized)
    Output.status(text)
  }

  /// Ends the line with a line break.
  static func end() {
    guard isOn else { return }
    Output.status("")
  }
}
