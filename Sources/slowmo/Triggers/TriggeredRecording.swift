// SPDX-License-Identifier: Apache-2.0
import Glibc
import Overcrank

/// The clips of `record --trigger`: their names, what is told of them, and what is run for them.
struct TriggeredRecording {
  let output: String
  let options: TriggerOptions
  let overwrites: Bool
  let progress: ProgressReporter

  /// Records clips until there are to be no more.
  func record(_ movie: MovieFileOutput) throws -> TriggeredReport {
    var settings = options.settings()
    settings.clipPath = try names()
    let commands = options.exec.map(ClipCommands.init)
    let sources = try TriggerSources(options.trigger, of: movie)
    progress.start(file: output)
    var result = try withExtendedLifetime(sources) {
      try movie.record(on: settings) { event in
        switch event {
        case .waiting(let bytes): progress.note(waiting(bytes))
        case .triggered(let trigger, let clip):
          progress.trigger(trigger.source.rawValue, clip: clip)
        case .progress(let state):
          progress.update(
            ProgressReporter.State(
              frame: state.stored, seconds: state.seconds, drops: state.missing,
              bytes: state.bytes, peaks: state.levels.map(\.peakDBFS)))
        case .finished(let clip):
          progress.file(clip.path)
          commands?.run(for: clip.path)
        }
      }
    }
    result.warnings += commands?.wait() ?? []
    for warning in result.warnings + result.clips.flatMap(\.warnings) { progress.warning(warning) }
    progress.end(file: nil)
    return result
  }

  private func waiting(_ bytes: Int) -> String {
    let kinds = options.trigger.map(\.words).joined(separator: " or ")
    return "waiting for \(kinds); the ring may take \(bytes / 1_048_576) MiB"
  }

  /// The name of each clip; refused at once where the first is taken already.
  private func names() throws -> (@Sendable (Int) -> String)? {
    guard options.repeat else {
      try refuseExisting(output, overwrites: overwrites)
      return nil
    }
    let template = try NameTemplate(output, fields: ["n", "date", "time"])
    guard template.holds("n") else {
      throw CommandError.usage(
        "with --repeat \(output) would be the same for all clips",
        hint: "put the clip's number into it: swing_{n:03}.mov")
    }
    let first = firstFreeNumber(template)
    return { clip in Self.name(template, number: first + clip - 1) }
  }

  /// The first number from which on no clip of today has its name taken.
  private func firstFreeNumber(_ template: NameTemplate) -> Int {
    guard !overwrites else { return 1 }
    var number = 1
    while fileExists(Self.name(template, number: number)) { number += 1 }
    return number
  }

  @Sendable private static func name(_ template: NameTemplate, number: Int) -> String {
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
