// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// How often each brightness occurs in a preview image.
public struct LumaHistogram: Hashable, Sendable {
  /// The number of luma ranges in ``bins``.
  public static let binCount = 64
  /// The number of pixels in each range of four luma values, from dark to bright.
  public let bins: [Int]
  /// The number of pixels that were counted.
  public let pixelCount: Int
  /// The fraction of the pixels with a luma of at least 252, from 0 to 1.
  public var clippedPart: Double { part(bins.last ?? 0) }
  /// The fraction of the pixels with a luma below 4, from 0 to 1.
  public var blackPart: Double { part(bins.first ?? 0) }

  /// Counts the pixels of an image.
  ///
  /// - Parameters:
  ///   - image: An image in the pixel format ``PixelFormat/bgra``. No pixel of an image in another
  ///     format is counted.
  ///   - step: The distance between counted columns, and between counted rows, in pixels, above
  ///     zero. A distance of 4 is accurate enough for display.
  public init(_ image: PixelBuffer, step: Int = 4) {
    precondition(step > 0, "columns are counted in steps")
    var bins = [Int](repeating: 0, count: Self.binCount)
    let isCounted = image.format == .bgra && image.width > 0
    let luma = isCounted ? PreviewAids.luma(of: image, step: step) : []
    for value in luma { bins[Int(value) * Self.binCount / 256] += 1 }
    (self.bins, pixelCount) = (bins, luma.count)
  }

  private func part(_ count: Int) -> Double {
    pixelCount > 0 ? Double(count) / Double(pixelCount) : 0
  }
}
