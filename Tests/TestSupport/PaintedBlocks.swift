// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore

/// A frame number painted as sixteen adjacent black or white blocks, one per bit.
package enum PaintedBlocks {
  /// The width of the smallest frame that contains the blocks.
  ///
  /// A block has 8x8 pixels, as in JPEG.
  package static let width = 128
  package static let height = 32

  /// Makes a frame with a painted number from 0 to 65 535.
  ///
  /// The luma is 32 or 208.
  package static func frame(
    number: Int, width: Int = width, height: Int = height, format: LibAVPixelFormat
  ) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: format)
    if let luma = frame.planeData(0) {
      for y in 0..<height {
        for x in 0..<width {
          let bit = x / 8 < 16 ? number >> (x / 8) & 1 : 0
          luma[y * frame.bytesPerRow(0) + x] = bit == 1 ? 208 : 32
        }
      }
    }
    let chromaHeight = format.isWideChroma ? height : (height + 1) / 2
    for plane in 1...2 {
      frame.planeData(plane)?.update(
        repeating: 128, count: frame.bytesPerRow(plane) * chromaHeight)
    }
    return frame
  }

  /// Reads the painted number of an image with one or four bytes per pixel.
  package static func number(in image: PixelBuffer) -> Int {
    (0..<16).reduce(0) { number, block in
      let pixel =
        image.planes[0].bytesPerRow * 4 + (block * 8 + 4) * image.bytes.count / image.width
        / image.height
      return number | (image.bytes[pixel] > 120 ? 1 << block : 0)
    }
  }

  /// Reads the painted number of a decoded frame; nil if a block is neither black nor white.
  package static func number(in frame: MediaFrame) -> Int? {
    guard let luma = frame.planeData(0), frame.width >= width, frame.height >= 8 else { return nil }
    var number = 0
    for block in 0..<16 {
      var sum = 0
      for y in 2..<6 {
        for x in 2..<6 { sum += Int(luma[y * frame.bytesPerRow(0) + block * 8 + x]) }
      }
      switch sum / 16 {
      case ..<100: break
      case 140...: number |= 1 << block
      default: return nil
      }
    }
    return number
  }
}
