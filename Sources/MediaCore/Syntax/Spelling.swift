// SPDX-License-Identifier: Apache-2.0

/// Suggests correct names for a misspelled name.
package enum Spelling {
  /// The names closest to a text by edit distance, at most three.
  ///
  /// A name that contains the text counts as distance 1.
  package static func nearest(to text: String, among names: [String]) -> [String] {
    let limit = max(2, text.utf8.count / 3)
    let scored = names.map { name in
      (name, name.contains(text) || text.contains(name) ? 1 : distance(text, name))
    }
    // Names at equal distance keep the order of the list. The index decides, because `sorted` alone
    // does not guarantee a stable order.
    return scored.enumerated().filter { $0.element.1 <= limit }
      .sorted { ($0.element.1, $0.offset) < ($1.element.1, $1.offset) }
      .prefix(3).map(\.element.0)
  }

  /// The Levenshtein distance of two texts, in UTF-8 bytes.
  package static func distance(_ left: String, _ right: String) -> Int {
    let right = Array(right.utf8)
    var row = Array(0...right.count)
    for (index, letter) in left.utf8.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for position in right.indices {
        let change = diagonal + (letter == right[position] ? 0 : 1)
        diagonal = row[position + 1]
        row[position + 1] = min(change, row[position] + 1, row[position + 1] + 1)
      }
    }
    return row[right.count]
  }
}
