// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import Overcrank

/// The style of progress output.
enum ProgressStyle: String, CaseIterable, ExpressibleByArgument {
  /// A bar on a terminal, otherwise a line every few seconds.
  case auto
  case bar
  case plain
  /// Newline-delimited JSON events.
  case json
  case none

  /// The style, with `auto` replaced by the style that suits standard error.
  var resolved: ProgressStyle {
    guard self == .auto else { return self }
    return isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb" ? .bar : .plain
  }

  /// The shortest time between two progress reports.
  var interval: Duration {
    switch self {
    case .bar: .milliseconds(200)
    case .json: .milliseconds(250)
    default: .seconds(5)
    }
  }
}

/// Writes progress to standard error in one of the styles.
final class ProgressReporter {
  /// The progress of a command.
  struct State {
    var frame: Int64
    var totalFrames: Int64?
    var seconds: Double
    var drops: Int64?
    var bytes: Int64?
    var queueFill: Double?
    /// The peak level of each audio channel in dBFS.
    ///
    /// Silence is minus infinity.
    var peaks: [Double] = []
  }

  private let style: ProgressStyle
  private let started = ContinuousClock.now
  private var lastShown: ContinuousClock.Instant?
  private var lastDrops: Int64 = 0
  private var lastState: State?
  /// The name of the file being written.
  private var file: String?
  private var hasBar = false
  private var hasWarnedOfQueue = false

  init(_ style: ProgressStyle) {
    self.style = style.resolved
  }

  /// Reports that work on a file starts.
  func start(file: String) {
    self.file = file
    emit("start", nil, file: file)
  }

  /// Exports a composition of this duration and reports the progress and the warnings.
  func export(
    _ session: ExportSession, _ settings: ExportSettings, _ duration: MediaTime
  ) throws -> ExportReport {
    start(file: settings.path)
    let report = try session.export(settings, isCancelled: { Interrupt.isRequested }) {
      done, total in
      let seconds = total > 0 ? duration.doubleValue * Double(done) / Double(total) : 0
      update(State(frame: done, totalFrames: total, seconds: seconds))
    }
    for warning in report.warnings { self.warning(warning) }
    end(file: settings.path)
    return report
  }

  /// Reports a message, such as the reason why the command waits.
  func note(_ message: String) {
    emit("note", nil, message: message)
    say(message)
  }

  private func say(_ message: String) {
    guard style != .json, style != .none else { return }
    Output.notice(message)
  }

  /// Reports that a triggered clip starts.
  func trigger(_ source: String, clip: Int, file: String) {
    endBar()
    self.file = file
    // Before the first clip no state is known, so zeros are reported.
    emit(
      "trigger", lastState ?? State(frame: 0, seconds: 0, drops: 0, bytes: 0, queueFill: 0),
      file: file, message: "\(source), clip \(clip)")
    say("clip \(clip): \(source)")
  }

  /// Reports that one of several files is complete.
  func file(_ path: String) {
    endBar()
    emit("file", nil, file: path)
    say("\(path) is finished")
  }

  /// Reports a warning.
  func warning(_ message: String) {
    endBar()
    Output.warning(message)
  }

  /// Reports the state, at most once per interval of the style.
  ///
  /// If frames were dropped, reports it at once.
  func update(_ state: State) {
    lastState = state
    if let fill = state.queueFill, fill >= 0.9, !hasWarnedOfQueue {
      hasWarnedOfQueue = true
      warning("the writer queue is 90 % full: the disk or the encoder is too slow")
    }
    if let drops = state.drops, drops > lastDrops {
      emit(
        "drop", state, file: file,
        message: "lost frames: \(drops - lastDrops) now, \(drops) so far")
      lastDrops = drops
    }
    guard style != .none else { return }
    let now = ContinuousClock.now
    guard now - (lastShown ?? started) >= style.interval else { return }
    lastShown = now
    switch style {
    case .none: break
    case .json: emit("progress", state, isProgress: true)
    case .plain: Output.notice(text(state), isProgress: true)
    case .bar, .auto:
      hasBar = true
      Output.status("\(bar(state))\(text(state))")
    }
  }

  /// Reports the end of the work, and the finished file, if any.
  ///
  /// The `end` event follows when the command exits.
  func end(file: String?) {
    endBar()
    if let file { emit("file", nil, file: file) }
    ProgressEvents.prepareEnd(event("end", lastState, file: file))
  }

  private func endBar() {
    guard hasBar else { return }
    hasBar = false
    Output.status("")
  }

  private func emit(
    _ name: String, _ state: State?, file: String? = nil, message: String? = nil,
    isProgress: Bool = false
  ) {
    guard style == .json else { return }
    ProgressEvents.emit(
      event(name, state, file: file, message: message), isProgress: isProgress)
  }

  private func event(
    _ name: String, _ state: State?, file: String?, message: String? = nil
  ) -> ProgressEvents.Event {
    let elapsed = elapsedSeconds
    return ProgressEvents.Event(
      event: name, frame: state?.frame, totalFrames: state?.totalFrames,
      ptsNs: state.map { Int64(max(0, min($0.seconds, 9e9)) * 1e9) },
      fps: state.map { Double($0.frame) / elapsed }, speed: state.map { $0.seconds / elapsed },
      drops: state?.drops, bytes: state?.bytes, queueFill: state?.queueFill,
      peakDbfs: state.flatMap { $0.peaks.isEmpty ? nil : $0.peaks.map(Self.shown) }, file: file,
      message: message)
  }

  private func bar(_ state: State) -> String {
    guard let total = state.totalFrames, total > 0 else { return "" }
    let share = max(0, min(1, Double(state.frame) / Double(total)))
    let filled = Int(share * 20)
    return "[" + String(repeating: "#", count: filled)
      + String(repeating: ".", count: 20 - filled) + "] \(Int(share * 100))% "
  }

  private func text(_ state: State) -> String {
    let rate = Double(state.frame) / elapsedSeconds
    var parts = ["\(state.frame)" + (state.totalFrames.map { "/\($0)" } ?? "") + " frames"]
    parts.append("\(Int(rate.rounded())) fps")
    parts.append("\(Int(state.seconds / elapsedSeconds * 100))% of real time")
    if let total = state.totalFrames, rate > 0, total > state.frame {
      parts.append("ETA \(Int(min(1e9, Double(total - state.frame) / rate).rounded(.up))) s")
    }
    if let drops = state.drops { parts.append("drops \(drops)") }
    if let fill = state.queueFill, fill > 0.5 { parts.append("queue \(Int(fill * 100))%") }
    if !state.peaks.isEmpty {
      let peaks = state.peaks.map { "\(Int(Self.shown($0).rounded()))" }
      parts.append("audio \(peaks.joined(separator: "/")) dBFS")
    }
    return parts.joined(separator: ", ")
  }

  /// Rounds a level to 0.1 dB.
  ///
  /// JSON has no infinity, so silence becomes -120.
  private static func shown(_ level: Double) -> Double { (max(-120, level) * 10).rounded() / 10 }

  /// The seconds since the work started, at least 0.001.
  ///
  /// Rates are divided by this value, so it must not be zero.
  private var elapsedSeconds: Double {
    max(0.001, (ContinuousClock.now - started).doubleValue)
  }
}

/// Returns the value of an environment variable, or nil.
func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
