// SPDX-License-Identifier: Apache-2.0

/// What `v4l2-ctl --list-formats-ext` prints.
struct FormatListing {
  /// A size of a format, or a range of sizes.
  struct Shape {
    /// The format's four letters, with `-BE` where that is in its code.
    let fourcc: String
    /// `Discrete 320x180`, or `Stepwise 16x16 - …`.
    let size: String
    /// The discrete rates in frames a second, as printed.
    var rates: [String] = []
  }

  private(set) var shapes: [Shape] = []

  init(_ text: String) throws {
    var fourcc = ""
    // Thousands of lines: in an emulated machine expressions are too slow for those of rates, and
    // so is to look for the ends of characters.
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let words = line.drop { $0 <= 0x20 }
      switch words.first {
      case UInt8(ascii: "["):
        guard let match = try /\[\d+\]: '(.+?)\s*(-BE)?' \(/.prefixMatch(in: Substring(words))
        else { continue }
        fourcc = String(match.1) + (match.2.map(String.init) ?? "")
      case UInt8(ascii: "S"):
        guard let match = try /Size: (.*\S)/.prefixMatch(in: Substring(words)) else { continue }
        shapes.append(Shape(fourcc: fourcc, size: String(match.1)))
      case UInt8(ascii: "I") where words.starts(with: "Interval: Discrete ".utf8):
        guard let open = words.lastIndex(of: UInt8(ascii: "(")), !shapes.isEmpty else { continue }
        let rate = words[open...].dropFirst().prefix { $0 > 0x20 }
        shapes[shapes.count - 1].rates.append(String(Substring(rate)))
      default: continue
      }
    }
  }
}
