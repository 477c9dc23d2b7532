// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// The replays of `record --trigger --replay`, and the commands that run after them.
final class ClipReplays: Sendable {
  private struct State {
    /// The paths of the finished replays by those of their clips.
    var paths: [String: String] = [:]
    var triggers: [String: TriggerMark] = [:]
    var warnings: [String] = []
    /// The replays that were not yet reported.
    var files: [String] = []
  }

  private let state = Mutex(State())
  private let commands: ClipCommands?
  private let exporter: Mutex<ReplayExporter?>

  init(speed: Speed, overwrites: Bool, commands: ClipCommands?) {
    self.commands = commands
    exporter = Mutex(nil)
    let made = ReplayExporter(speed: speed, overwrites: overwrites) { [weak self] in
      self?.finish($0)
    }
    exporter.withLock { $0 = made }
  }

  /// Starts the replay of a finished clip, or lets it wait.
  ///
  /// - Returns: The number of clips that wait for theirs.
  func add(_ clip: RecordingReport) -> Int {
    state.withLock { $0.triggers[clip.path] = clip.trigger }
    let exporter = exporter.withLock { $0 }
    exporter?.add(clip.path, to: ClipNames.replay(of: clip.path))
    return exporter?.waitingCount ?? 0
  }

  private func finish(_ replay: ReplayExporter.Replay) {
    let trigger = state.withLock { state in
      switch replay.result {
      case .success:
        state.paths[replay.clip] = replay.path
        state.files.append(replay.path)
      case .failure(let error):
        state.warnings.append("\(replay.path) was not written: \(error.message)")
      }
      return state.triggers.removeValue(forKey: replay.clip)
    }
    let path = state.withLock { $0.paths[replay.clip] }
    commands?.run(for: replay.clip, trigger: trigger, replay: path)
  }

  /// The paths of the replays that were finished since the last call.
  func takeFiles() -> [String] {
    state.withLock { state in
      defer { state.files = [] }
      return state.files
    }
  }

  /// Waits for all replays.
  ///
  /// - Returns: The paths of the replays by those of their clips, and the warnings of failed ones.
  func wait() -> (paths: [String: String], warnings: [String]) {
    exporter.withLock { $0 }?.finish()
    return state.withLock { ($0.paths, $0.warnings) }
  }
}
