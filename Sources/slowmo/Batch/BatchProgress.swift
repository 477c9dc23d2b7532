// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// Writes the progress of a batch to standard error; safe to use from any thread.
final class BatchProgress: Sendable {
  /// An event of `--progress json`.
  private struct Event: Encodable {
    var event: String
    var source: String?
    var file: String?
    var status: String?
    var message: String?
    /// The numbers of finished frames and of all frames in the files being exported.
    var frame: Int64
    var totalFrames: Int64
    var filesDone: Int
    var filesTotal: Int
  }

  private struct State {
    var working: [Int: (done: Int64, total: Int64)] = [:]
    var filesDone = 0
    var lastShown: ContinuousClock.Instant?
    var hasBar = false

    var frames: (done: Int64, total: Int64) {
      working.values.reduce((0, 0)) { ($0.0 + $1.done, $0.1 + $1.total) }
    }
  }

  private let style: ProgressStyle
  private let fileCount: Int
  private let started = ContinuousClock.now
  private let state = Mutex(State())

  init(_ style: ProgressStyle, fileCount: Int) {
    self.style = style.resolved
    self.fileCount = fileCount
    state.withLock { emit("start", $0) }
  }

  /// Reports that work on a file starts.
  func start(_ index: Int, _ source: String, _ file: String) {
    state.withLock { state in
      state.working[index] = (0, 0)
      emit("start", state, source: source, file: file)
    }
  }

  /// Reports the progress of a file, at most once per interval of the chosen style.
  func update(_ index: Int, done: Int64, of total: Int64) {
    state.withLock { state in
      state.working[index] = (done, total)
      let now = ContinuousClock.now
      guard style != .none, now - (state.lastShown ?? started) >= style.interval else { return }
      state.lastShown = now
      switch style {
      case .json: emit("progress", state, isProgress: true)
      case .plain: Output.notice(text(state), isProgress: true)
      default:
        state.hasBar = true
        Output.status(text(state))
      }
    }
  }

  /// Reports the result of a file.
  func finish(_ index: Int, _ file: BatchDocument.File) {
    state.withLock { state in
      endBar(&state)
      state.working[index] = nil
      state.filesDone += 1
      emit(
        "file", state, source: file.source, file: file.file, status: file.status.rawValue,
        message: file.error?.message)
      guard style != .json, style != .none else { return }
      Output.notice(file.line)
    }
  }

  /// Reports the end of the batch; the `end` event follows when the command exits.
  func end(_ document: BatchDocument) {
    state.withLock { endBar(&$0) }
    ProgressEvents.prepareEnd(ProgressEvents.Event(event: "end", message: document.summary))
  }

  private func endBar(_ state: inout State) {
    guard state.hasBar else { return }
    state.hasBar = false
    Output.status("")
  }

  private func emit(
    _ name: String, _ state: State, source: String? = nil, file: String? = nil,
    status: String? = nil, message: String? = nil, isProgress: Bool = false
  ) {
    guard style == .json else { return }
    let frames = state.frames
    ProgressEvents.emit(
      Event(
        event: name, source: source, file: file, status: status, message: message,
        frame: frames.done, totalFrames: frames.total, filesDone: state.filesDone,
        filesTotal: fileCount), isProgress: isProgress)
  }

  private func text(_ state: State) -> String {
    let frames = state.frames
    return "\(state.filesDone)/\(fileCount) files, \(state.working.count) in work with "
      + "\(frames.done)/\(frames.total) frames"
  }
}
