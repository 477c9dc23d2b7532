// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// Converts frames to indices into a palette.
///
/// Ordered dithering approximates colors that the palette lacks. The pattern is the same in every
/// frame, so unchanged parts of frames have equal indices, and the file stays small.
struct PaletteRenderer: ~Copyable {
  private let palette: ColorPalette
  /// The offset in color levels at each position of the 8x8 dithering pattern.
  private let offsets: [Int]
  /// The palette index of each color with 6 bits per component; -1 if it is not known yet.
  private var known = [Int16](repeating: -1, count: 1 << 18)

  /// The distance to a palette color up to which a color is not dithered, in levels per component.
  private static let tolerance = 2

  init(_ palette: ColorPalette) {
    self.palette = palette
    let spread = palette.spread
    offsets = (0..<64).map { position in
      // A Bayer matrix: the bits of x xor y and of y, interleaved and reversed, give the rank of a
      // position.
      let (x, y) = (position % 8, position / 8)
      var number = 0
      for bit in 0..<3 {
        number = number << 2 | ((x ^ y) >> bit & 1) << 1 | y >> bit & 1
      }
      return Int((spread * ((Double(number) + 0.5) / 64 - 0.5)).rounded())
    }
  }

  /// Converts a frame in the format `bgra` to palette indices.
  ///
  /// - Throws: `CallFailure` if memory cannot be allocated.
  mutating func convert(_ frame: MediaFrame) throws(CallFailure) -> MediaFrame {
    let result = try MediaFrame.video(
      width: frame.width, height: frame.height, pixelFormat: .pal8)
    guard let source = frame.planeData(0), let target = result.planeData(0),
      let table = result.planeData(1)
    else { return result }
    table.withMemoryRebound(to: UInt32.self, capacity: 256) { table in
      // Only the last index is transparent. The encoder uses it for pixels that do not change.
      for index in 0..<256 { table[index] = index == ColorPalette.maximumColors ? 0 : 0xFF00_0000 }
      for (index, color) in palette.colors.enumerated() {
        table[index] |= UInt32(color.red) << 16 | UInt32(color.green) << 8 | UInt32(color.blue)
      }
    }
    for y in 0..<frame.height {
      let from = source + y * frame.bytesPerRow(0)
      let to = target + y * result.bytesPerRow(0)
      for x in 0..<frame.width {
        let pixel = from + 4 * x
        to[x] = index(
          red: Int(pixel[2]), green: Int(pixel[1]), blue: Int(pixel[0]),
          offset: offsets[(y & 7) << 3 | x & 7])
      }
    }
    return result
  }

  private mutating func index(red: Int, green: Int, blue: Int, offset: Int) -> UInt8 {
    let plain = nearest(red: red, green: green, blue: blue)
    let color = palette.colors[plain]
    if abs(Int(color.red) - red) <= Self.tolerance,
      abs(Int(color.green) - green) <= Self.tolerance,
      abs(Int(color.blue) - blue) <= Self.tolerance
    {
      return UInt8(plain)
    }
    return UInt8(nearest(red: red + offset, green: green + offset, blue: blue + offset))
  }

  private mutating func nearest(red: Int, green: Int, blue: Int) -> Int {
    let (red, green, blue) = (
      min(max(red, 0), 255), min(max(green, 0), 255), min(max(blue, 0), 255)
    )
    let bin = (red >> 2) << 12 | (green >> 2) << 6 | blue >> 2
    if known[bin] < 0 {
      known[bin] = Int16(
        palette.nearest(red: red & ~3 | 2, green: green & ~3 | 2, blue: blue & ~3 | 2))
    }
    return Int(known[bin])
  }
}
