// SPDX-License-Identifier: Apache-2.0

/// The output of `v4l2-ctl --list-formats-ext`.
struct FormatListing {
  /// A frame size of a pixel format, or a range of sizes.
  struct Shape {
    /// The FourCC, with `-BE` for a big-endian format.
    let fourcc: String
    /// `Discrete 320x180`, or `Stepwise 16x16 - …`.
    let size: String
    /// The discrete frame rates in frames per second, as printed.
    var rates: [String] = []
  }

  private(set) var shapes: [Shape] = []

  init(_ text: String) throws {
    var fourcc = ""
    // On an emulated machine, regular expressions and character boundaries are too slow for
    // thousands of lines.
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let content = line.drop { $0 <= 0x20 }
      switch content.first {
      case UInt8(ascii: "["):
        guard let match = try /\[\d+\]: '(.+?)\s*(-BE)?' \(/.prefixMatch(in: Substring(content))
        else { continue }
        fourcc = String(match.1) + (match.2.map(String.init) ?? "")
      case UInt8(ascii: "S"):
        guard let match = try /Size: (.*\S)/.prefixMatch(in: Substring(content)) else { continue }
        shapes.append(Shape(fourcc: fourcc, size: String(match.1)))
      case UInt8(ascii: "I") where content.starts(with: "Interval: Discrete ".utf8):
        guard let open = content.lastIndex(of: UInt8(ascii: "(")), !shapes.isEmpty else { continue }
        let rate = content[open...].dropFirst().prefix { $0 > 0x20 }
        shapes[shapes.count - 1].rates.append(String(Substring(rate)))
      default: continue
      }
    }
  }
}
