// SPDX-License-Identifier: Apache-2.0

/// How the bytes of a camera format are understood: FFmpeg's name for the same bytes.
///
/// There is a layout only where the camera's bytes are FFmpeg's, byte for byte, but for the
/// padding at the ends of lines. A format without one cannot be stored.
public struct PixelLayout: Hashable, Sendable {
  /// What a decoder of the bytes must know.
  public enum Coding: Hashable, Sendable {
    /// Compressed, by FFmpeg's name of the codec: `mjpeg`, `h264`.
    case codec(String)
    /// Uncompressed, by FFmpeg's name of the pixel format: `yuyv422`.
    case pixels(String)
  }

  /// What a format shows, the most useful first.
  public enum ColorModel: Int, Hashable, Sendable, Comparable {
    /// Compressed pictures: the only ones that fit many a cable at high rates.
    case compressed
    /// Colours at every pixel, or shared by neighbours.
    case color
    /// Brightness only.
    case gray
    /// A sensor's mosaic, which needs developing.
    case bayer

    /// Orders by usefulness: compressed first.
    public static func < (left: ColorModel, right: ColorModel) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// The camera's name of the format.
  public let fourcc: FourCC
  /// What the bytes are.
  public let coding: Coding
  /// Bits for each pixel in memory, unused ones included; 0 for compressed formats.
  public let bitsPerPixel: Int
  /// What the format shows.
  public let colorModel: ColorModel
  /// The planes of memory that a frame lies in, where each plane of the picture has its own; 1
  /// for all other formats.
  public let separatePlaneCount: Int

  /// Finds the layout of a format, or nil for one that FFmpeg has no like of.
  public init?(_ fourcc: FourCC) {
    guard let layout = Self.byFourCC[fourcc] else { return nil }
    self = layout
  }

  init(
    _ fourcc: FourCC, _ coding: Coding, _ bitsPerPixel: Int, _ colorModel: ColorModel
  ) {
    self.fourcc = fourcc
    self.coding = coding
    self.bitsPerPixel = bitsPerPixel
    self.colorModel = colorModel
    separatePlaneCount = fourcc.separatePlaneCount
  }

  private static let byFourCC = Dictionary(
    table.map { ($0.fourcc, $0) }, uniquingKeysWith: { first, _ in first })
}
