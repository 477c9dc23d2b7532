// SPDX-License-Identifier: Apache-2.0

/// A color of the screen with 8 bits per channel.
struct DisplayColor: Hashable, Sendable {
  var red: UInt8
  var green: UInt8
  var blue: UInt8
  var alpha: UInt8 = 255

  /// Creates a color from the number `0xRRGGBB`, opaque by default.
  init(_ rgb: UInt32, alpha: UInt8 = 255) {
    red = UInt8(truncatingIfNeeded: rgb >> 16)
    green = UInt8(truncatingIfNeeded: rgb >> 8)
    blue = UInt8(truncatingIfNeeded: rgb)
    self.alpha = alpha
  }

  static let background = DisplayColor(0x0B0C0E)
  static let panel = DisplayColor(0x1A1D21)
  static let text = DisplayColor(0xE8EAED)
  static let dimText = DisplayColor(0x9AA0A6)
  static let shade = DisplayColor(0x000000, alpha: 160)
  static let playhead = DisplayColor(0xFFFFFF)
  static let mark = DisplayColor(0xEF5350)
  static let loop = DisplayColor(0xF2C94C)
  static let outside = DisplayColor(0x000000, alpha: 140)
  static let normalSpeed = DisplayColor(0x47515C)
  static let slowSpeed = DisplayColor(0x2F6FB0)
  static let fastSpeed = DisplayColor(0xB06A2C)
  static let frozen = DisplayColor(0x6D4FA3)
  static let gap = DisplayColor(0x000000)
}
