// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// An image with alpha in the upper right corner of frames.
struct LogoOverlay: Sendable {
  /// The samples of one color component of the image: their values, and their opacities from 0 to
  /// 1.
  private struct Plane: Sendable {
    let width: Int
    let codes: [Double]
    let shares: [Double]
  }

  private let planes: [Plane]
  /// The position of the image's upper left corner in the frame, in multiples of 4 pixels.
  private let x: Int
  private let y: Int

  /// Reads an image file, and converts it for frames of one size.
  ///
  /// - Throws: `MediaError` if the file cannot be read, or `CallFailure`.
  init(_ path: String, in size: VideoSize, _ pixels: PixelCodes, margin: Int) throws {
    let asset = try Asset(path: path)
    var reader = try FrameReader(asset)
    let image = try reader.mediaFrame(at: 0)
    let largest = (width: max(4, size.width / 4), height: max(4, size.height / 4))
    let factor = min(
      1, Double(largest.width) / Double(image.width), Double(largest.height) / Double(image.height))
    let width = max(1, Int((Double(image.width) * factor).rounded()))
    let height = max(1, Int((Double(image.height) * factor).rounded()))
    guard let rgba = LibAVPixelFormat(named: "rgba") else {
      throw MediaError.hasNoFrames(path)
    }
    var converter = FrameConverter(to: rgba, isFullRange: true, width: width, height: height)
    let scaled = try converter.convert(image)
    guard let bytes = scaled.planeData(0) else { throw MediaError.hasNoFrames(path) }
    let stride = scaled.bytesPerRow(0)
    x = max(0, size.width - width - margin) & ~3
    y = min(margin, max(0, size.height - height)) & ~3
    planes = pixels.layout.components.enumerated().map { number, component in
      let shift = component.isSubsampled ? pixels.layout.chromaShift : (0, 0)
      let columns = (width + (1 << shift.0) - 1) >> shift.0
      let rows = (height + (1 << shift.1) - 1) >> shift.1
      var codes = [Double](repeating: 0, count: columns * rows)
      var shares = [Double](repeating: 0, count: columns * rows)
      for py in 0..<height {
        for px in 0..<width {
          let pixel = bytes + py * stride + 4 * px
          let share = Double(pixel[3]) / 255 / Double(1 << (shift.0 + shift.1))
          let index = (py >> shift.1) * columns + px >> shift.0
          codes[index] +=
            share
            * pixels.code(
              number, red: Double(pixel[0]) / 255, green: Double(pixel[1]) / 255,
              blue: Double(pixel[2]) / 255)
          shares[index] += share
        }
      }
      for index in codes.indices where shares[index] > 0 { codes[index] /= shares[index] }
      return Plane(width: columns, codes: codes, shares: shares)
    }
  }

  /// Blends the image into a frame.
  func draw(on frame: MediaFrame, _ pixels: PixelCodes) {
    for (component, plane) in zip(pixels.layout.components, planes) {
      let shift = component.isSubsampled ? pixels.layout.chromaShift : (0, 0)
      let size = pixels.layout.size(of: component, width: frame.width, height: frame.height)
      for (index, code) in plane.codes.enumerated() {
        let (column, row) = (
          x >> shift.0 + index % plane.width, y >> shift.1 + index / plane.width
        )
        guard column < size.width, row < size.height else { continue }
        pixels.mix(code, share: plane.shares[index], component, column, row, frame)
      }
    }
  }
}
