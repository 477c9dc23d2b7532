// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The keys of `preview` and their effects.
enum PreviewKey: String, CaseIterable {
  case peaking = "p"
  case zebra = "z"
  case histogram = "h"
  case mirror = "m"
  case gravity = "g"
  case photo = "s"
  case windowScreenshot = "ctrl+s"
  case longerDelay = "up"
  case shorterDelay = "down"
  case slower = "["
  case faster = "]"
  case resetClipping = "c"
  case quit = "q"
}

/// A line of `preview --script`: a time, and a key or a tap.
struct ScriptedPreviewInput {
  enum Action {
    case key(PreviewKey)
    /// A tap at a point of the view, as fractions of its width and height from 0 to 1.
    case tap(x: Double, y: Double)
  }

  /// The time in nanoseconds after the arrival of the first frame.
  let time: Int64
  let action: Action

  /// Reads a script: lines of `SECONDS KEY` or `SECONDS tap:X,Y` in ascending order.
  ///
  /// Empty lines, and lines that start with `#`, are ignored.
  static func script(_ path: String) throws -> [ScriptedPreviewInput] {
    var inputs: [ScriptedPreviewInput] = []
    let lines = try Files.readText(path).split(omittingEmptySubsequences: false) { $0.isNewline }
    for (number, line) in lines.enumerated() {
      let words = line.split(whereSeparator: \.isWhitespace)
      guard let first = words.first, !first.hasPrefix("#") else { continue }
      func wrong(_ what: String) -> CommandError {
        CommandError(
          .badData, code: "syntax", "\(path):\(number + 1): \(what)",
          hint: "write a line as SECONDS KEY, such as 0.5 p or 0.5 tap:0.25,0.5")
      }
      guard let action = words.count == 2 ? Self.action(words[1]) : nil else {
        throw wrong("\(words.dropFirst().joined(separator: " ")) is not a key")
      }
      guard let time = try? ScriptedKey.seconds(first) else {
        throw wrong("\(first) is not a time")
      }
      guard time >= inputs.last?.time ?? 0 else {
        throw wrong("\(first) is before the time of the line above")
      }
      inputs.append(ScriptedPreviewInput(time: time, action: action))
    }
    return inputs
  }

  private static func action(_ word: Substring) -> Action? {
    guard word.hasPrefix("tap:") else {
      return PreviewKey(rawValue: String(word)).map(Action.key)
    }
    let parts = word.dropFirst(4).split(separator: ",").map { Double($0) }
    guard parts.count == 2, let x = parts[0], let y = parts[1], (0...1).contains(x),
      (0...1).contains(y)
    else { return nil }
    return .tap(x: x, y: y)
  }
}
