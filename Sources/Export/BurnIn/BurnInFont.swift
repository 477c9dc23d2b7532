// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The shapes of a font's characters, for text in frames.
///
/// The product `OvercrankFonts` draws these shapes with an installed font.
public struct BurnInFont: Hashable, Sendable, CustomDebugStringConvertible {
  /// The characters that a font contains: the printable characters of ASCII.
  package static let characters: ClosedRange<UInt8> = 0x20...0x7E
  /// The width of the stored shape of a character in pixels.
  ///
  /// It exceeds the width of a character that is drawn in a frame of 4096 pixels.
  package static let cellWidth = 80
  package static let cellHeight = 120

  /// The coverage of each pixel, from 0 to 255: all rows of the first character, then those of the
  /// next.
  private let coverage: [UInt8]

  /// Creates a font.
  ///
  /// - Parameter coverage: The coverage of each pixel from 0 to 255: all rows of the first
  ///   character, then those of the next.
  /// - Precondition: The array contains one value for each pixel of each character.
  package init(coverage: [UInt8]) {
    precondition(coverage.count == Self.characters.count * Self.cellWidth * Self.cellHeight)
    self.coverage = coverage
  }

  /// A hash of all pixels, which makes the digests of exports with different fonts differ.
  public var debugDescription: String {
    // The hash function is FNV-1a.
    let number = coverage.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { number, byte in
      (number ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    return "font \(String(number, radix: 16))"
  }

  /// Returns the coverage of a character scaled to a size in pixels, row by row, from 0 to 1.
  ///
  /// Each result is the mean of the stored pixels that the scaled pixel covers. A character outside
  /// the font has no coverage.
  func scaled(_ character: UInt8, width: Int, height: Int) -> [Double] {
    guard Self.characters.contains(character) else {
      return [Double](repeating: 0, count: width * height)
    }
    let start = Int(character - Self.characters.lowerBound) * Self.cellWidth * Self.cellHeight
    let columns = Self.parts(of: Self.cellWidth, width)
    return Self.parts(of: Self.cellHeight, height).flatMap { rows in
      columns.map { columns in
        let sum = rows.reduce(0) { sum, row in
          columns.reduce(sum) { $0 + Int(coverage[start + row * Self.cellWidth + $1]) }
        }
        return Double(sum) / Double(255 * rows.count * columns.count)
      }
    }
  }

  /// Divides a length into `count` ranges of whole pixels, none of them empty.
  private static func parts(of length: Int, _ count: Int) -> [Range<Int>] {
    (0..<count).map { part in
      let start = part * length / count
      return start..<max(start + 1, (part + 1) * length / count)
    }
  }
}

/// A cache of font characters in the sizes in which they were drawn.
///
/// All threads that draw frames share the cache.
final class GlyphCache: Sendable {
  private struct Key: Hashable {
    let character: UInt8
    let width: Int
    let height: Int
  }

  private let font: BurnInFont
  private let glyphs = Mutex<[Key: [Double]]>([:])

  init(_ font: BurnInFont) { self.font = font }

  /// Returns the coverage of a character as ``BurnInFont/scaled(_:width:height:)`` does.
  func coverage(of character: UInt8, width: Int, height: Int) -> [Double] {
    let key = Key(character: character, width: width, height: height)
    if let known = glyphs.withLock({ $0[key] }) { return known }
    let made = font.scaled(character, width: width, height: height)
    glyphs.withLock { $0[key] = made }
    return made
  }
}
