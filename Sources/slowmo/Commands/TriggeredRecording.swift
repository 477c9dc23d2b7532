// SPDX-License-Identifier: Apache-2.0

import Overcrank
import Synchronization

/// The clips of `record --trigger`: file names, progress reports and user commands.
struct TriggeredRecording {
  let output: String
  let options: TriggerOptions
  let overwrites: Bool
  let progress: ProgressReporter

  /// The result of the capture, and the paths of the replays by those of their clips.
  typealias Outcome = (report: TriggeredReport, replays: [String: String])

  /// Records clips until the capture ends, and waits for their replays.
  ///
  /// `begun` is called when the capture waits for triggers. `window` shows the state of the capture
  /// and sends triggers too; nil for none.
  func record(
    _ movie: MovieFileOutput, in window: RecordPreview?, begun: () -> Void
  ) throws -> Outcome {
    var settings = options.settings()
    let names = try names()
    if let names { settings.clipPath = { _ in names.next() } }
    let commands = options.exec.map(ClipCommands.init)
    let replays = options.replay.map {
      ClipReplays(speed: $0, overwrites: overwrites, commands: commands)
    }
    let sources = try TriggerSources(options.trigger, of: movie, endsWithLines: window == nil)
    progress.start(file: output)
    var result = try withExtendedLifetime(sources) {
      try movie.record(on: settings) { event in
        for file in replays?.takeFiles() ?? [] { progress.file(file) }
        switch event {
        case .waiting(let bytes):
          begun()
          progress.note(waiting(bytes))
        case .preRoll(let duration, let isFull):
          window?.notePreRoll(duration, isFull: isFull)
          if isFull, options.armWhenFull {
            progress.note("armed: memory holds \(decimal(duration.doubleValue, 1)) s")
          }
        case .triggered(let trigger, let clip):
          progress.trigger(
            trigger.source.rawValue, clip: clip, file: names?.coming() ?? output)
        case .progress(let state):
          window?.note(state)
          progress.update(
            ProgressReporter.State(
              frame: state.stored, seconds: state.duration.doubleValue, drops: state.missing,
              bytes: state.bytes, queueFill: state.queueFill, peaks: state.levels.map(\.peakDBFS)))
        case .finished(let clip):
          progress.file(clip.path)
          // If another program replaced the clip's file, the path now leads to a foreign file. The
          // user's `--exec` command must not receive it.
          guard clip.problem?.code != .outputReplaced else { break }
          guard let replays, clip.isPlayable else {
            commands?.run(for: clip.path, trigger: clip.trigger)
            break
          }
          let waiting = replays.add(clip)
          if waiting > 0 {
            progress.note("replays fall behind: \(waiting) clips wait, the newest is next")
          }
        }
      }
    }
    let made = replays?.wait()
    for file in replays?.takeFiles() ?? [] { progress.file(file) }
    result.warnings += (made?.warnings ?? []) + (commands?.wait() ?? [])
    for warning in result.warnings + result.clips.flatMap(\.warnings) { progress.warning(warning) }
    progress.end(file: nil)
    return (result, made?.paths ?? [:])
  }

  private func waiting(_ bytes: Int) -> String {
    let kinds = options.trigger.map(\.summary).joined(separator: " or ")
    let arming = options.armWhenFull ? ", and ignoring triggers until it holds --pre" : ""
    return "waiting for \(kinds); the pre-trigger ring may use \(bytes / 1_048_576) MiB\(arming)"
  }

  /// Returns the names of the clips.
  ///
  /// Without `--repeat`, the only file name is known in advance, so an existing file is refused at
  /// once.
  private func names() throws -> ClipNames? {
    guard options.repeat else {
      try Files.refuseExisting(output, overwrites: overwrites)
      if options.replay != nil {
        try Files.refuseExisting(ClipNames.replay(of: output), overwrites: overwrites)
      }
      return nil
    }
    return try ClipNames(output, overwrites: overwrites, hasReplays: options.replay != nil)
  }
}

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
