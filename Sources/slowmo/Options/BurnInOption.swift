// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The value of `--burn-in`: a list such as `time,frame,speed,mark=1.5,logo=logo.png,font=monospace`.
struct BurnInOption: ExpressibleByArgument {
  private let items: [BurnIn.Item]
  private let mark: TimeExpression?
  private let logo: String?
  /// The name of the font; nil for the system's fixed-width font.
  private let font: String?

  init?(argument: String) {
    var items: [BurnIn.Item] = []
    var (mark, logo, font): (TimeExpression?, String?, String?)
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", maxSplits: 1).map(String.init)
      let value = sides.count == 2 ? sides[1] : nil
      if sides.first == "logo", let value, logo == nil {
        logo = value
      } else if sides.first == "font", let value, font == nil {
        font = value
      } else if let name = sides.first, let item = BurnIn.Item(rawValue: name),
        !items.contains(item), item == .mark || value == nil
      {
        items.append(item)
        if let value {
          guard let time = try? TimeExpression(parsing: value) else { return nil }
          mark = time
        }
      } else {
        return nil
      }
    }
    // A font is only valid with an item that draws text.
    guard font == nil || !items.isEmpty else { return nil }
    (self.items, self.mark, self.logo, self.font) = (items, mark, logo, font)
  }

  /// True if `mark` was given a time, false otherwise.
  var hasMarkTime: Bool { mark != nil }

  /// Returns the text and the logo to draw into the frames of an export of this movie.
  ///
  /// If `mark` has no time, it means the first mark of the movie.
  func burnIn(_ asset: Asset?) throws(MediaError) -> BurnIn {
    var time: MediaTime?
    if let mark, let asset {
      time = try asset.resolve(mark)
    } else if items.contains(.mark), let asset {
      guard let first = asset.marks.first else {
        throw MediaError(
          .outsideSource, "\(asset.path) has no mark", recovery: "write a time, such as mark=1.5")
      }
      time = first.time
    }
    return BurnIn(items: items, mark: time, logoPath: logo, font: try namedFont())
  }

  /// Finds the font, before any output is made.
  ///
  /// - Throws: `MediaError` if the font cannot be drawn.
  func prepareFont() throws(MediaError) {
    if try namedFont() == nil, usesStandardFont { Output.noteMissingFonts() }
  }

  /// Whether text is drawn in the system's font.
  var usesStandardFont: Bool { font == nil && !items.isEmpty }

  private func namedFont() throws(MediaError) -> BurnInFont? {
    guard let font else { return nil }
    return try BurnInFont(named: font)
  }
}
