// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
import OvercrankRaster

/// Text that was drawn into frames in the dot font, read by the dots of its characters.
package enum BurntText {
  /// Reads lines of white text on black.
  ///
  /// - Parameters:
  ///   - frame: The frame.
  ///   - lineCount: The number of lines.
  ///   - x: The left edge of the text's area in the frame.
  ///   - bottom: The row below the text; nil for the end of the frame.
  ///   - scale: The size of a dot in pixels.
  /// - Returns: The lines from top to bottom.
  package static func lines(
    in frame: MediaFrame, lineCount: Int, x: Int = 0, bottom: Int? = nil, scale: Int = 2
  ) -> [String] {
    let top = ((bottom ?? frame.height) - (lineCount * 9 + 2) * scale) & ~3
    let middle = 128 << (frame.pixelFormat.depth - 8)
    var known: [[UInt64]: UInt8] = [:]
    for character in UInt8(32)..<127 {
      known[(0..<7).map { DotFont.dots(of: character, line: $0) }] = character
    }
    return (0..<lineCount).map { line in
      var characters: [UInt8] = []
      for position in 0..<22 {
        let rows = (0..<7).map { row in
          (0..<5).reduce(UInt64(0)) { dots, column in
            let left = x + (2 + position * 6 + column) * scale
            let y = top + (2 + line * 9 + row) * scale
            var level = 0
            for offset in 0..<scale where left + offset < frame.width {
              level += FrameSamples.code(frame, x: left + offset, y: y)
            }
            return dots << 1 | (level > scale * middle ? 1 : 0)
          }
        }
        // Dots that are no known character belong to the scene after the text.
        guard let character = known[rows] else { break }
        characters.append(character)
      }
      var text = String(decoding: characters, as: UTF8.self)
      while text.hasSuffix(" ") { text.removeLast() }
      return text
    }
  }
}
