// SPDX-License-Identifier: Apache-2.0

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
