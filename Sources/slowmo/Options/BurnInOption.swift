// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank
import Synchronization

/// The value of `--burn-in`: a list such as `time,frame,speed,mark=1.5,logo=logo.png,font=monospace`.
struct BurnInOption: ExpressibleByArgument {
  private let items: [BurnIn.Item]
  private let mark: TimeExpression?
  private let logo: String?
  /// The name of the font; nil for the library's built-in font.
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
    return BurnIn(
      items: items, mark: time, logoPath: logo, font: try font.map(Self.drawnFont) ?? nil)
  }

  /// Draws the characters of the font, before any output is made.
  ///
  /// - Throws: `MediaError` if the font cannot be drawn, or `CommandError` with `missing_component`
  ///   in a program without font support.
  func prepareFont() throws {
    guard let font else { return }
    guard OptionalComponents.current.burnInFont != nil else {
      try FullProgram.replaceThisProgram(
        for: "a font", alternative: "leave out font=, for the font of dots")
    }
    _ = try Self.drawnFont(font)
  }

  /// The fonts that were drawn so far, by name.
  private static let fonts = Mutex<[String: BurnInFont]>([:])

  /// Draws a font only once, however many files are exported; nil in a program without font
  /// support.
  private static func drawnFont(_ name: String) throws(MediaError) -> BurnInFont? {
    if let known = fonts.withLock({ $0[name] }) { return known }
    guard let font = try OptionalComponents.current.burnInFont?(name) else { return nil }
    fonts.withLock { $0[name] = font }
    return font
  }
}
