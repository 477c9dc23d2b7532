// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import OvercrankLinuxSystem

/// The display of a playback: a window, or a line of text on the terminal.
///
/// Only the main thread uses it.
final class PlaybackView {
  private enum Screenshot { case frame, window }

  private let player: Player
  private let file: String
  let window: (any PlaybackWindow)?
  private let project: PlaybackProject
  private let annotations: PlaybackAnnotations
  /// Whether a failed edit ends playback.
  ///
  /// If not, its message is shown.
  private let stopsAtError: Bool
  private var memory: PlayerKey.Memory
  private var screenshots: [Screenshot] = []
  /// The number of further refreshes for which the message is shown.
  private var messageRefreshes = 0
  /// The number of refreshes for which the next screenshot has waited for its frame.
  private var waitedRefreshes = 0

  /// The greatest number of refreshes for which a screenshot waits for its frame to be decoded.
  private static let maximumWaits = 600
  private static let messageLength = 90

  init(
    _ player: Player, _ file: String, _ rate: Rational, _ project: PlaybackProject,
    _ annotations: PlaybackAnnotations, _ window: (any PlaybackWindow)?, stopsAtError: Bool
  ) {
    self.annotations = annotations
    (self.player, self.file, self.window) = (player, file, window)
    (self.project, self.stopsAtError) = (project, stopsAtError)
    memory = PlayerKey.Memory(rate: rate)
    window?.marks = project.markTimes
    window?.keyHelp =
      PlayerKey.descriptions + PlayerKey.windowDescriptions + PlayerKey.pointerDescriptions
    window?.clickKey = PlayerKey.space.rawValue
    window?.doubleClickKey = PlayerKey.fullScreen.rawValue
  }

  /// True if a screenshot waits for its frame.
  var isWaiting: Bool { !screenshots.isEmpty }

  /// Performs the action of a key.
  ///
  /// - Returns: False for the key that ends playback.
  func press(_ key: PlayerKey) throws -> Bool {
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
    default:
      guard try memory.press(key, player) else { return false }
      window?.mark = memory.mark
      if !memory.message.isEmpty { report(memory.message) }
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
    window.buttons = PlayerKey.buttons(
      isPlaying: player.rate != .zero, isReversed: memory.rate < .zero,
      isMeasuring: window.isMeasuring)
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
      kind == .window ? try window.pngData() : try player.frame(at: time)?.pngData()
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
        let name = try write(bytes)
        written(name)
        last = name
      } catch {
        guard !stopsAtError else { throw error }
        report(CommandError(error).message)
      }
    }
    if let last { report("written: \(last)") }
  }

  /// Writes a screenshot under the first unused name in the working directory.
  private func write(_ bytes: [UInt8]) throws -> String {
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
