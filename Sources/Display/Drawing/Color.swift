// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The colors of the windows.
extension Color {
  static let background = Color(0x0B0C0E)
  static let panel = Color(0x1A1D21)
  static let text = Color(0xE8EAED)
  static let dimText = Color(0x9AA0A6)
  static let shade = Color(0x000000, alpha: 160)
  static let overlay = Color(0x000000, alpha: 225)
  static let playhead = Color(0xFFFFFF)
  static let mark = Color(0xEF5350)
  static let loop = Color(0xF2C94C)
  static let range = Color(0x56CCF2)
  static let outside = Color(0x000000, alpha: 140)
  static let normalSpeed = Color(0x47515C)
  static let slowSpeed = Color(0x2F6FB0)
  static let fastSpeed = Color(0xB06A2C)
  static let frozen = Color(0x6D4FA3)
  static let gap = Color(0x000000)
}
