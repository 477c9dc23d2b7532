// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The text of a stop-watch, `MM:SS.mmm`, which starts again at zero after an hour.
struct StopWatchText: Sendable {
  /// The number of characters in the text of the stop-watch.
  static let count = 9
  /// The time after which the stop-watch starts again at zero, in milliseconds.
  static let period: Int128 = 3_600_000

  private let milliseconds: Int

  init(milliseconds: Int) { self.milliseconds = milliseconds }

  subscript(index: Int) -> UInt8 {
    switch index {
    case 0: DotFont.digit(milliseconds / 600_000)
    case 1: DotFont.digit(milliseconds / 60_000)
    case 2: UInt8(ascii: ":")
    case 3: DotFont.digit(milliseconds / 10_000 % 6)
    case 4: DotFont.digit(milliseconds / 1_000)
    case 5: UInt8(ascii: ".")
    case 6: DotFont.digit(milliseconds / 100)
    case 7: DotFont.digit(milliseconds / 10)
    default: DotFont.digit(milliseconds)
    }
  }
}

/// The positions of the characters of the stop-watch in an image.
struct StopWatchLayout: Sendable {
  static let paper = SceneColor(luma: 44, cb: 132, cr: 122)
  static let ink: UInt8 = 226

  /// The width and height of one dot of a character, in pixels.
  let scale: Int
  let textX: Int
  let textY: Int

  init(width: Int, geometry: SceneGeometry) {
    scale = max(1, min(width / 160, (geometry.ground - geometry.top) / 56))
    let margin = max(2, width / 40)
    textX = margin + 2 * scale
    textY = geometry.top + margin + 2 * scale
  }

  /// The rectangle of the panel behind the characters of the stop-watch.
  var panel: PixelRect {
    let end = x(ofCharacter: StopWatchText.count) + scale
    return PixelRect(
      x: textX - 2 * scale..<end, y: textY - 2 * scale..<textY + (DotFont.height + 2) * scale)
  }

  func x(ofCharacter index: Int) -> Int { textX + index * (DotFont.width + 1) * scale }

  func rect(ofCharacter index: Int) -> PixelRect {
    let x = x(ofCharacter: index)
    return PixelRect(
      x: x..<x + DotFont.width * scale, y: textY..<textY + DotFont.height * scale)
  }
}
