// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// A color of the scene.
struct SceneColor {
  let luma: UInt8
  var cb: UInt8 = 128
  var cr: UInt8 = 128
}

/// A 4:2:0 image that the scene is drawn into.
///
/// The planes are padded to multiples of 16 pixels, the block size of JPEG. Drawing may reach into
/// the padding.
struct SceneImage: Sendable {
  let width: Int
  let height: Int
  /// The bytes per row of luma.
  ///
  /// A row of chroma has half as many.
  let stride: Int
  /// The number of luma rows, including the padding.
  let rows: Int
  var luma: [UInt8]
  var cb: [UInt8]
  var cr: [UInt8]

  init(width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    stride = (width + 15) & ~15
    rows = (height + 15) & ~15
    luma = Array(repeating: 16, count: stride * rows)
    cb = Array(repeating: 128, count: stride * rows / 4)
    cr = cb
  }

  /// Calls a closure with the bytes of the three planes.
  func withPlanes(
    _ body: (
      _ luma: UnsafeBufferPointer<UInt8>, _ cb: UnsafeBufferPointer<UInt8>,
      _ cr: UnsafeBufferPointer<UInt8>
    ) -> Void
  ) {
    luma.withUnsafeBufferPointer { luma in
      cb.withUnsafeBufferPointer { cb in
        cr.withUnsafeBufferPointer { cr in body(luma, cb, cr) }
      }
    }
  }

  /// Fills a rectangle with a luma value.
  ///
  /// The part outside the image is ignored.
  mutating func fill(_ rect: PixelRect, luma value: UInt8) {
    let rect = rect.clamped(width: stride, height: rows)
    let stride = stride
    luma.withUnsafeMutableBufferPointer { luma in
      guard let start = luma.baseAddress else { return }
      for y in rect.rows {
        (start + y * stride + rect.x).update(repeating: value, count: rect.width)
      }
    }
  }

  /// Fills a rectangle with a color.
  ///
  /// The part outside the image is ignored.
  ///
  /// Two neighboring pixels share one chroma value. At an odd edge of the rectangle, the chroma of
  /// the pixel outside it therefore changes too.
  mutating func fill(_ rect: PixelRect, _ color: SceneColor) {
    fill(rect, luma: color.luma)
    let even = rect.even.clamped(width: stride, height: rows)
    for y in even.y / 2..<even.bottom / 2 {
      for x in even.x / 2..<even.right / 2 {
        cb[y * stride / 2 + x] = color.cb
        cr[y * stride / 2 + x] = color.cr
      }
    }
  }

  /// Draws a character with dots of `scale` by `scale` pixels, clipped to the image.
  mutating func draw(_ character: UInt8, x left: Int, y top: Int, scale: Int, luma ink: UInt8) {
    DotFont.forEachRectangle(of: character, x: left, y: top, scale: scale) { fill($0, luma: ink) }
  }

  /// Draws a line of text.
  ///
  /// Each character is six dots wide, including the space after it.
  mutating func draw(_ text: String, x: Int, y: Int, scale: Int, luma ink: UInt8) {
    for (index, character) in text.utf8.enumerated() {
      draw(character, x: x + index * (DotFont.width + 1) * scale, y: y, scale: scale, luma: ink)
    }
  }

  /// Copies a rectangle with even coordinates from an image of the same size.
  mutating func copy(_ rect: PixelRect, from other: borrowing SceneImage) {
    for y in rect.rows {
      let range = y * stride + rect.x..<y * stride + rect.right
      for index in range { luma[index] = other.luma[index] }
    }
    for y in rect.y / 2..<rect.bottom / 2 {
      let start = y * stride / 2
      for index in start + rect.x / 2..<start + rect.right / 2 {
        cb[index] = other.cb[index]
        cr[index] = other.cr[index]
      }
    }
  }
}
