// SPDX-License-Identifier: Apache-2.0

extension CommandError {
  /// Creates a usage error from a message of ArgumentParser, in the wording of all other errors.
  ///
  /// If the message lists the allowed values, they become the hint. If not, the hint names a help
  /// page.
  static func usage(parserMessage: String, page: String) -> CommandError {
    var text = parserMessage
    var hint = "see \(page)"
    if let list = text.firstRange(of: ". Please provide one of ") {
      let values = text[list.upperBound...]
      var names = values.matches(of: /'([^']*)'/).map { String($0.output.1) }
      if names.isEmpty {
        names = values.split(separator: "\n").filter { $0.hasPrefix("  - ") }
          .map { String($0.dropFirst(4)) }
      }
      hint = "choose \(UnknownName.choice(of: names))"
      text = String(text[..<list.lowerBound])
    }
    return .usage(text.prefix(1).lowercased() + text.dropFirst(), hint: hint)
  }
}
