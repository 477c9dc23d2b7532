// SPDX-License-Identifier: Apache-2.0

/// The luma of an image, in memory that belongs to another object and does not change.
package struct LumaImage: @unchecked Sendable {
  package let base: UnsafePointer<UInt8>
  package let width: Int
  package let height: Int
  package let bytesPerRow: Int
  /// Bytes from one pixel to the next: 2 in packed 4:2:2.
  package let bytesPerPixel: Int

  package init(
    base: UnsafePointer<UInt8>, width: Int, height: Int, bytesPerRow: Int, bytesPerPixel: Int = 1
  ) {
    self.base = base
    (self.width, self.height) = (width, height)
    (self.bytesPerRow, self.bytesPerPixel) = (bytesPerRow, bytesPerPixel)
  }

  /// Returns the part of the image in a rectangle, without copying; nil if it has no pixel.
  package func cropped(to rect: PixelRect) -> LumaImage? {
    let rect = rect.clamped(width: width, height: height)
    guard !rect.isEmpty else { return nil }
    return LumaImage(
      base: base + rect.y * bytesPerRow + rect.x * bytesPerPixel, width: rect.width,
      height: rect.height, bytesPerRow: bytesPerRow, bytesPerPixel: bytesPerPixel)
  }
}
