// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A line of `--script`: an action and its time.
struct ScriptLine<Key: Sendable>: Sendable {
  enum Action: Sendable {
    case key(Key)
    case step(ViewStep)
  }

  /// The time after the start of playback, or after the first frame of a camera; nil for an action that
  /// follows the line above.
  let time: MediaTime?
  let action: Action

  /// The key of the line; nil for another step.
  var key: Key? { if case .key(let key) = action { key } else { nil } }

  /// Reads a script, in the syntax of `ViewScript`; each key has a time.
  ///
  /// `example` has lines for the hint of an error. `key` returns the key of a word, or nil if the word
  /// is none.
  static func script(
    _ path: String, example: String, _ key: (Substring) -> Key?
  ) throws -> [ScriptLine] {
    func wrong(_ line: Int, _ what: String) -> CommandError {
      CommandError(
        .badData, code: "syntax", "\(path):\(line): \(what)",
        hint: "write a line as SECONDS KEY, such as \(example)")
    }
    let text = try Files.readText(path)
    let script: ViewScript
    do throws(ViewScript.Mistake) {
      script = try ViewScript(text) { key($0) != nil }
    } catch { throw wrong(error.line, error.text) }
    return try script.lines.map { line in
      guard case .key(let name) = line.step else {
        return ScriptLine(time: line.time, action: .step(line.step))
      }
      guard let key = key(name[...]) else { throw wrong(line.number, "\(name) is not a key") }
      guard let time = line.time else { throw wrong(line.number, "\(name) has no time") }
      return ScriptLine(time: time, action: .key(key))
    }
  }
}
