// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankLibAV

/// A smooth texture of waves, which can be moved by fractions of a pixel.
package struct MovingTexture {
  private let waves: [(x: Double, y: Double, phase: Double, height: Double)]

  package init(seed: UInt64, longest: Double = 60, shortest: Double = 7) {
    var random = SeededGenerator(seed: seed)
    waves = (0..<14).map { _ in
      let length = Double.random(in: shortest...longest, using: &random)
      let angle = Double.random(in: 0..<2 * .pi, using: &random)
      return (
        cos(angle) * 2 * .pi / length, sin(angle) * 2 * .pi / length,
        Double.random(in: 0..<2 * .pi, using: &random), Double.random(in: 6...16, using: &random)
      )
    }
  }

  /// The brightness at a point, about 30 to 220.
  package func luma(_ x: Double, _ y: Double) -> Double {
    min(max(waves.reduce(125) { $0 + $1.height * sin($1.x * x + $1.y * y + $1.phase) }, 1), 254)
  }

  /// Makes a frame.
  ///
  /// A function gives its 8-bit luma, and chroma is derived from luma.
  package static func frame(
    _ width: Int, _ height: Int, _ format: LibAVPixelFormat = .yuv420p,
    _ luma: (Double, Double) -> Double
  ) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: format)
    guard let layout = PixelComponents(format) else { return frame }
    for (number, component) in layout.components.enumerated() {
      let size = layout.size(of: component, width: width, height: height)
      let (shiftX, shiftY) = component.isSubsampled ? layout.chromaShift : (0, 0)
      guard let plane = frame.planeData(component.plane) else { continue }
      for y in 0..<size.height {
        let row = plane + y * frame.bytesPerRow(component.plane)
        for x in 0..<size.width {
          let value = luma(Double(x << shiftX), Double(y << shiftY))
          let mean = number == 0 ? value : number == 1 ? 60 + value / 2 : 190 - value / 2
          let code = Int((mean * Double(1 << (layout.depth - 8))).rounded())
          row[x * component.step] = UInt8(truncatingIfNeeded: code)
          if layout.bytesPerSample == 2 { row[x * 2 + 1] = UInt8(truncatingIfNeeded: code >> 8) }
        }
      }
    }
    return frame
  }

  /// Makes a frame of the texture, moved by some pixels.
  package func frame(
    _ width: Int, _ height: Int, _ format: LibAVPixelFormat = .yuv420p, movedBy x: Double,
    _ y: Double = 0
  ) throws -> MediaFrame {
    try Self.frame(width, height, format) { luma($0 - x, $1 - y) }
  }
}

extension MediaFrame {
  /// The luma samples as 8-bit values, row by row.
  package var lumaRows: [[UInt8]] {
    (0..<height).map { y in
      (0..<width).map { x in planeData(0).map { $0[y * bytesPerRow(0) + x] } ?? 0 }
    }
  }

  /// The peak signal-to-noise ratio of the luma in decibels, without pixels at the border.
  package func signalToNoise(_ other: MediaFrame, border: Int = 0) -> Double {
    let (mine, others) = (lumaRows, other.lumaRows)
    var (sum, count) = (0.0, 0.0)
    for y in border..<height - border {
      for x in border..<width - border {
        let difference = Double(mine[y][x]) - Double(others[y][x])
        sum += difference * difference
        count += 1
      }
    }
    return 10 * log10(255 * 255 * count / max(sum, 1e-9))
  }
}
