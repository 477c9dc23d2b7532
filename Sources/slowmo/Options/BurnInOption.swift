// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The value of `--burn-in`: a list such as `time,frame,speed,mark=1.5,logo=logo.png,font=monospace`.
struct BurnInOption: ExpressibleByArgument {
  private let items: [BurnIn.Item]
  private let mark: TimeExpression?
  private let logo: String?
  /// The name of the font; nil for the library's own.
  private let font: String?

  init?(argument: String) {
    var items: [BurnIn.Item] = []
    var (mark, logo, font): (TimeExpression?, String?, String?)
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", maxSplits: 1).map(String.init)
      let value = sides.count == 2 ? sides[1] : nil
      if sides.first == "logo", let value, logo == nil {
        logo = value
      } else if sides.first == "font", let value, !value.isEmpty, font == nil {
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
    (self.items, self.mark, self.logo, self.font) = (items, mark, logo, font)
  }

  /// True if the time of the mark is given, false otherwise.
  var hasMarkTime: Bool { mark != nil }

  /// Returns what is drawn into the frames of an export of this movie.
  ///
  /// Without a time, `mark` is the first mark of the movie.
  ///
  /// - Throws: `MediaError`, or `CommandError` with `missing_component` for a font in a program
  ///   without its component.
  func burnIn(_ asset: Asset?) throws -> BurnIn {
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
    return try BurnIn(items: items, mark: time, logoPath: logo, font: font.map(Self.burnInFont))
  }

  private static func burnInFont(_ name: String) throws -> BurnInFont {
    guard let font = OptionalComponents.current.burnInFont else {
      try FullProgram.replaceThisProgram(
        for: "a font", alternative: "leave out font=, for the font of dots")
    }
    return try font(name)
  }
}
