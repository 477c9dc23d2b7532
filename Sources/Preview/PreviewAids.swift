// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Marks in a preview image that show which areas are in focus and which are too bright.
///
/// ```swift
/// var image = frame.image
/// PreviewAids(showsFocusPeaking: true, showsZebra: true).apply(to: &image)
/// ```
public struct PreviewAids: Hashable, Sendable {
  /// Whether sharp edges are red.
  public var showsFocusPeaking: Bool
  /// Whether bright areas have stripes.
  public var showsZebra: Bool
  /// The smallest sharpness of a pixel that is marked.
  ///
  /// The sharpness is the absolute difference between four times the pixel's luma and the sum of
  /// the lumas of its four neighbors, from 0 to 1020. Default: 64.
  public var peakingThreshold = 64
  /// The smallest luma of a pixel that gets stripes, from 0 to 255.
  ///
  /// Default: 243, which is 95 % of 255.
  public var zebraThreshold: UInt8 = 243

  /// Creates preview aids.
  public init(showsFocusPeaking: Bool = false, showsZebra: Bool = false) {
    (self.showsFocusPeaking, self.showsZebra) = (showsFocusPeaking, showsZebra)
  }

  /// The width of a zebra stripe in pixels.
  private static let stripe = 4

  /// Marks an image.
  ///
  /// - Parameter image: An image in the pixel format ``PixelFormat/bgra``. An image in another
  ///   format is not changed.
  public func apply(to image: inout PixelBuffer) {
    let (width, height) = (image.width, image.height)
    guard image.format == .bgra, showsFocusPeaking || showsZebra, width > 0, height > 0 else {
      return
    }
    // All luma values are computed before any mark is drawn, because marks on neighboring pixels
    // would change the measured sharpness.
    let luma = Self.luma(of: image)
    image.withUnsafeMutableBytes(ofPlane: 0) { pixels in
      luma.withUnsafeBufferPointer { luma in
        if showsZebra { stripe(pixels, luma, width, height) }
        if showsFocusPeaking { peak(pixels, luma, width, height) }
      }
    }
  }

  private func stripe(
    _ pixels: UnsafeMutableRawBufferPointer, _ luma: UnsafeBufferPointer<UInt8>, _ width: Int,
    _ height: Int
  ) {
    for y in 0..<height {
      for x in 0..<width
      where luma[y * width + x] >= zebraThreshold && (x + y) / Self.stripe % 2 == 0 {
        Self.set(pixels, y * width + x, blue: 0, green: 0, red: 0)
      }
    }
  }

  private func peak(
    _ pixels: UnsafeMutableRawBufferPointer, _ luma: UnsafeBufferPointer<UInt8>, _ width: Int,
    _ height: Int
  ) {
    guard width > 2, height > 2 else { return }
    for y in 1..<(height - 1) {
      for x in 1..<(width - 1) {
        let index = y * width + x
        let around =
          Int(luma[index - 1]) + Int(luma[index + 1]) + Int(luma[index - width])
          + Int(luma[index + width])
        if abs(4 * Int(luma[index]) - around) >= peakingThreshold {
          Self.set(pixels, index, blue: 0, green: 0, red: 255)
        }
      }
    }
  }

  private static func set(
    _ pixels: UnsafeMutableRawBufferPointer, _ index: Int, blue: UInt8, green: UInt8, red: UInt8
  ) {
    (pixels[index * 4], pixels[index * 4 + 1], pixels[index * 4 + 2]) = (blue, green, red)
  }

  /// The luma of each pixel of a BGRA image, by the weights of BT.709.
  static func luma(of image: PixelBuffer, step: Int = 1) -> [UInt8] {
    let (width, height) = (image.width, image.height)
    var luma: [UInt8] = []
    luma.reserveCapacity((width / step + 1) * (height / step + 1))
    image.withUnsafeBytes(ofPlane: 0) { pixels in
      for y in stride(from: 0, to: height, by: step) {
        for x in stride(from: 0, to: width, by: step) {
          let offset = (y * width + x) * 4
          let sum =
            Int(pixels[offset]) * 18 + Int(pixels[offset + 1]) * 183 + Int(pixels[offset + 2]) * 55
          luma.append(UInt8(sum >> 8))
        }
      }
    }
    return luma
  }
}

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
