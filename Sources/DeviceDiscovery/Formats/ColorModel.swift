// SPDX-License-Identifier: Apache-2.0

/// The color model of a format, the most useful first.
public enum ColorModel: Int, Hashable, Sendable, Comparable {
  /// Compressed frames, often the only ones that a cable can carry at high rates.
  case compressed
  /// Color at every pixel, or shared by neighboring pixels.
  case color
  /// Luma only.
  case gray
  /// A Bayer mosaic from the sensor, which needs demosaicing.
  case bayer

  /// Orders by usefulness: compressed first.
  public static func < (left: ColorModel, right: ColorModel) -> Bool {
    left.rawValue < right.rawValue
  }
}
