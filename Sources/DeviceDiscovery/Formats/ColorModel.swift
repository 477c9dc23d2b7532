// SPDX-License-Identifier: Apache-2.0

/// The color model of a camera's format.
///
/// The cases are ordered, the most useful one first.
public enum ColorModel: Int, Hashable, Sendable, Comparable {
  /// Compressed frames. At high rates, often only these fit the bandwidth of the cable.
  case compressed
  /// Color at every pixel, or shared by neighboring pixels.
  case color
  /// Luma only.
  case gray
  /// A Bayer mosaic from the sensor, which needs demosaicing.
  case bayer

  /// Whether the first model is more useful than the second, in the order of the cases.
  public static func < (left: ColorModel, right: ColorModel) -> Bool {
    left.rawValue < right.rawValue
  }
}
