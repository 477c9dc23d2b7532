// SPDX-License-Identifier: Apache-2.0

import Synchronization

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
