// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The parsed name of a source without hardware, such as `file:clip.mp4?pace=max`.
struct DeviceSpecifier {
  /// The whole device name.
  let name: String
  /// The possibly empty text between the kind, such as `file:`, and the options.
  let subject: String
  /// The options in the order in which the device name contains them.
  let options: [(key: String, value: String)]

  /// Parses a name of this kind, or returns nil for another kind.
  ///
  /// Options follow the last question mark. If a file name contains a question mark, a second
  /// question mark must follow the name: `file:what?.mp4?`.
  ///
  /// - Throws: `MediaError` with `.badName` if an option is not of the form `key=value` or is
  ///   repeated.
  init?(_ name: String, kind: String) throws(MediaError) {
    self.name = name
    guard name.hasPrefix(kind) else { return nil }
    var rest = name.dropFirst(kind.count)
    guard let mark = rest.first else {
      (subject, options) = ("", [])
      return
    }
    guard mark == ":" || mark == "?" else { return nil }
    if mark == ":" { rest.removeFirst() }
    guard let question = rest.lastIndex(of: "?") else {
      (subject, options) = (String(rest), [])
      return
    }
    subject = String(rest[..<question])
    var options: [(key: String, value: String)] = []
    for text in rest[rest.index(after: question)...].split(separator: "&") {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let isTwice = options.contains { $0.key == parts[0] }
      guard parts.count == 2, !parts[0].isEmpty, !isTwice else {
        let problem = isTwice ? "repeats a key" : "is not key=value"
        throw MediaError(
          .badName, "\"\(name)\" is not a device name: \"\(text)\" \(problem)",
          recovery: "write options as ?key=value&key=value")
      }
      options.append((String(parts[0]), String(parts[1])))
    }
    self.options = options
  }

  /// The error for an invalid name.
  func failure(_ what: String, recovery: Recovery?) -> MediaError {
    MediaError(.badName, "\"\(name)\" is not a device name: \(what)", recovery: recovery)
  }
}
