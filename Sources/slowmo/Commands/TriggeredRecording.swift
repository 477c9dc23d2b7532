// SPDX-License-Identifier: Apache-2.0

import Glibc
import Overcrank
import Synchronization

/// The clips of `record --trigger`: file names, progress reports and user commands.
struct TriggeredRecording {
  let output: String
  let options: TriggerOptions
  let overwrites: Bool
  let progress: ProgressReporter

  /// Records clips until the capture ends.
  func record(_ movie: MovieFileOutput) throws -> TriggeredReport {
    var settings = options.settings()
    let names = try names()
    if let names { settings.clipPath = { _ in names.next() } }
    let commands = options.exec.map(ClipCommands.init)
    let sources = try TriggerSources(options.trigger, of: movie)
    progress.start(file: output)
    var result = try withExtendedLifetime(sources) {
      try movie.record(on: settings) { event in
        switch event {
        case .waiting(let bytes): progress.note(waiting(bytes))
        case .triggered(let trigger, let clip):
          progress.trigger(
            trigger.source.rawValue, clip: clip, file: names?.coming() ?? output)
        case .progress(let state):
          progress.update(
            ProgressReporter.State(
              frame: state.stored, seconds: state.duration.doubleValue, drops: state.missing,
              bytes: state.bytes, queueFill: state.queueFill, peaks: state.levels.map(\.peakDBFS)))
        case .finished(let clip):
          progress.file(clip.path)
          // If another program replaced the clip's file, the path now leads to a foreign file. The
          // user's `--exec` command must not receive it.
          if clip.problem?.code != .outputReplaced { commands?.run(for: clip.path) }
        }
      }
    }
    result.warnings += commands?.wait() ?? []
    for warning in result.warnings + result.clips.flatMap(\.warnings) { progress.warning(warning) }
    progress.end(file: nil)
    return result
  }

  private func waiting(_ bytes: Int) -> String {
    let kinds = options.trigger.map(\.summary).joined(separator: " or ")
    return "waiting for \(kinds); the pre-trigger ring may use \(bytes / 1_048_576) MiB"
  }

  /// Returns the names of the clips.
  ///
  /// Without `--repeat`, the only name is known, so an existing file is refused at once.
  private func names() throws -> ClipNames? {
    guard options.repeat else {
      try Files.refuseExisting(output, overwrites: overwrites)
      return nil
    }
    return ClipNames(try Self.template(output), overwrites: overwrites)
  }

  /// Parses the name template of several clips.
  ///
  /// - Throws: `CommandError` if all clips would have the same name.
  static func template(_ output: String) throws -> NameTemplate {
    let template = try NameTemplate(output, fields: ["n", "date", "time"])
    guard template.holds("n") else {
      throw CommandError.usage(
        "with --repeat, all clips would have the name \(output)",
        hint: "add the clip's number: swing_{n:03}.mov")
    }
    return template
  }

  fileprivate static func name(_ template: NameTemplate, number: Int) -> String {
    var now = Glibc.time(nil)
    var local = tm()
    localtime_r(&now, &local)
    func digits(_ value: Int32, _ width: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(0, width - text.count)) + text
    }
    return template.name([
      "n": .number(Int64(number)),
      "date": .text(
        digits(local.tm_year + 1900, 4) + digits(local.tm_mon + 1, 2) + digits(local.tm_mday, 2)),
      "time": .text(
        digits(local.tm_hour, 2) + digits(local.tm_min, 2) + digits(local.tm_sec, 2)),
    ])
  }
}

/// The file names of several clips in order.
private final class ClipNames: Sendable {
  private let template: NameTemplate
  private let overwrites: Bool
  private let state = Mutex<(number: Int, coming: String?)>((0, nil))

  init(_ template: NameTemplate, overwrites: Bool) {
    self.template = template
    self.overwrites = overwrites
  }

  /// Returns the name of the next clip without using it up.
  func coming() -> String {
    state.withLock { state in
      if let coming = state.coming { return coming }
      func name() -> String { TriggeredRecording.name(template, number: state.number) }
      state.number += 1
      // The name may belong to a file of an earlier capture or of another program. Such a file is
      // not replaced, so the number advances.
      while !overwrites, Files.exists(name()) { state.number += 1 }
      state.coming = name()
      return name()
    }
  }

  /// Returns the name of the next clip and uses it up.
  func next() -> String {
    let name = coming()
    state.withLock { $0.coming = nil }
    return name
  }
}
