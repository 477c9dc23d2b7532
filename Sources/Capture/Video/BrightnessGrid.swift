// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The mean luma of each cell of an image, in a grid of at most 32 by 24 cells.
package struct BrightnessGrid: Sendable {
  private static let (columns, rows) = (32, 24)

  /// The mean luma of each cell, from 0 to 255.
  ///
  /// Empty for an image without pixels.
  package let averages: [Double]

  /// Measures a gray image with 8 bits per pixel.
  package init(_ image: PixelBuffer) {
    let (width, height, pixels) = (image.width, image.height, image.bytes)
    let (columns, rows) = (min(Self.columns, width), min(Self.rows, height))
    var averages: [Double] = []
    if columns > 0, rows > 0, width * height <= pixels.count {
      for row in 0..<rows {
        let lines = row * height / rows..<(row + 1) * height / rows
        for column in 0..<columns {
          let places = column * width / columns..<(column + 1) * width / columns
          var sum = 0
          for line in lines {
            for position in places { sum += Int(pixels[line * width + position]) }
          }
          averages.append(Double(sum) / Double(lines.count * places.count))
        }
      }
    }
    self.averages = averages
  }

  init(averages: [Double]) { self.averages = averages }

  /// The mean luma of the image, from 0 (black) to 1.
  package var meanLevel: Double {
    averages.isEmpty ? 0 : averages.reduce(0, +) / Double(averages.count) / 255
  }
}
