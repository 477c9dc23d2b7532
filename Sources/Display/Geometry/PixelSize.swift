// SPDX-License-Identifier: Apache-2.0

/// A size in whole pixels.
struct PixelSize: Hashable, Sendable {
  var width: Int
  var height: Int

  /// The size after a clockwise rotation by a multiple of 90 degrees.
  func rotated(by degrees: Int) -> PixelSize {
    degrees % 180 == 0 ? self : PixelSize(width: height, height: width)
  }
}
