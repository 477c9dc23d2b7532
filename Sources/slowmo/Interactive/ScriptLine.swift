// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A line of `--script`: an action and its time.
struct ScriptLine<Action: Sendable>: Sendable {
  /// The time in nanoseconds after the start of playback, or after the first frame of a camera.
  let time: Int64
  let action: Action

  /// Reads a script: lines of `SECONDS ACTION` in ascending order.
  ///
  /// Empty lines, and lines that start with `#`, are ignored.
  /// `example` has lines for the hint of an error. `action` returns the action of a word, or nil if
  /// the word is none.
  static func script(
    _ path: String, example: String, _ action: (Substring) -> Action?
  ) throws -> [ScriptLine] {
    var script: [ScriptLine] = []
    let lines = try Files.readText(path).split(omittingEmptySubsequences: false) { $0.isNewline }
    for (number, line) in lines.enumerated() {
      let words = line.split(whereSeparator: \.isWhitespace)
      guard let first = words.first, !first.hasPrefix("#") else { continue }
      func wrong(_ what: String) -> CommandError {
        CommandError(
          .badData, code: "syntax", "\(path):\(number + 1): \(what)",
          hint: "write a line as SECONDS KEY, such as \(example)")
      }
      guard words.count == 2, let action = action(words[1]) else {
        throw wrong("\(words.dropFirst().joined(separator: " ")) is not a key")
      }
      guard let time = try? Self.seconds(first) else { throw wrong("\(first) is not a time") }
      guard time >= script.last?.time ?? 0 else {
        throw wrong("\(first) is before the time of the line above")
      }
      script.append(ScriptLine(time: time, action: action))
    }
    return script
  }

  /// Parses a time in seconds, and returns it in nanoseconds.
  private static func seconds(_ text: Substring) throws(MediaError) -> Int64 {
    guard text.first?.isNumber == true else { throw MediaError(.syntax, "\(text) is not a time") }
    let longest = MediaTime(seconds: 1_000_000)
    let time = try TimeExpression(parsing: String(text)).resolved(
      sourceDuration: longest, frameCount: 0,
      frameTime: { (_) throws(MediaError) in throw MediaError(.syntax, "a frame is not a time") })
    return nanoseconds(time.seconds)
  }
}
