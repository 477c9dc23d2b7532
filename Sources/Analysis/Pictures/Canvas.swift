// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore
public import OvercrankRaster

/// An RGB image that other images and text are drawn on.
struct Canvas {
  let width: Int
  let height: Int
  var bytes: [UInt8]

  static let white = Color(0xEBEBEB)
  static let gray = Color(0x969696)
  static let black = Color(0x101010)

  init(width: Int, height: Int, filledWith color: Color = Canvas.black) {
    (self.width, self.height) = (width, height)
    let color = color.components
    bytes = [UInt8](unsafeUninitializedCapacity: width * height * 3) { target, count in
      for index in 0..<width * height {
        for channel in 0..<3 {
          target.initializeElement(at: 3 * index + channel, to: color[channel])
        }
      }
      count = width * height * 3
    }
  }

  /// Makes a canvas of an RGB image.
  init(_ image: UprightFrames.Image) {
    (width, height, bytes) = (image.width, image.height, image.bytes)
  }

  /// Copies an RGB image to a position; pixels outside the canvas are left out.
  mutating func draw(_ image: UprightFrames.Image, x: Int, y: Int) {
    let columns = max(0, -x)..<max(max(0, -x), min(image.width, width - x))
    for row in max(0, -y)..<max(max(0, -y), min(image.height, height - y)) {
      let (from, to) = (3 * (row * image.width), 3 * ((y + row) * width + x))
      for index in 3 * columns.lowerBound..<3 * columns.upperBound {
        bytes[to + index] = image.bytes[from + index]
      }
    }
  }

  /// Fills a rectangle; pixels outside the canvas are left out.
  mutating func fill(x: Range<Int>, y: Range<Int>, _ color: Color) {
    let color = color.components
    for row in y.clamped(to: 0..<height) {
      for column in x.clamped(to: 0..<width) {
        for channel in 0..<3 { bytes[3 * (row * width + column) + channel] = color[channel] }
      }
    }
  }

  /// The width of a text in pixels.
  static func width(of text: String, scale: Int) -> Int {
    InstalledFont.standard.width(of: text, scale: scale)
  }

  /// The height of capital letters in pixels.
  static func textHeight(scale: Int) -> Int { TextMask.capHeight * scale }

  /// Draws text, with the upper left corner of its capital letters at a position.
  mutating func draw(_ text: String, x: Int, y: Int, scale: Int, _ color: Color = Canvas.white) {
    let color = color.components
    InstalledFont.standard.mask(of: text, scale: scale).forEachPixel(x: x, y: y) { x, y, coverage in
      guard (0..<width).contains(x), (0..<height).contains(y) else { return }
      for channel in 0..<3 {
        let index = 3 * (y * width + x) + channel
        let (old, new) = (Int(bytes[index]), Int(color[channel]))
        bytes[index] = UInt8((old * (255 - Int(coverage)) + new * Int(coverage) + 127) / 255)
      }
    }
  }

  /// Draws text on a dark background.
  mutating func drawLabel(_ text: String, x: Int, y: Int, scale: Int) {
    let (right, bottom) = (
      x + Self.width(of: text, scale: scale), y + Self.textHeight(scale: scale)
    )
    fill(x: x - 2 * scale..<right + 2 * scale, y: y - 2 * scale..<bottom + 2 * scale, Self.black)
    draw(text, x: x, y: y, scale: scale)
  }

  /// The scale of text that stays legible in an image of this width.
  static func textScale(forWidth width: Int) -> Int { max(1, width / 300) }

  /// The image as a frame.
  ///
  /// - Throws: `MediaError` if memory is exhausted.
  func frame() throws(MediaError) -> MediaFrame {
    do throws(CallFailure) {
      return try MediaFrame.rgb(bytes, width: width, height: height)
    } catch {
      throw MediaError(
        error, at: .resources, message: "an image of \(width)x\(height) pixels: \(error)")
    }
  }
}

/// A finished image.
public struct StillImage: Sendable {
  /// The pixels of the image in ``PixelFormat/rgb24``.
  public let pixels: PixelBuffer
  /// The frames of the movie that the image shows.
  public let frames: [Frame]

  /// A frame of the movie, and where it is in the image.
  public struct Frame: Hashable, Sendable, Codable {
    /// The index of the frame, from 0.
    public let index: Int
    /// The presentation time of the frame.
    public let time: MediaTime
    /// The part of the image that shows the frame, in pixels.
    public let box: PixelRect
  }

  init(_ canvas: Canvas, frames: [Frame]) throws(MediaError) {
    pixels = try canvas.frame().pixelBuffer(as: .rgb24)
    self.frames = frames
  }

  /// Encodes the image as a PNG file.
  ///
  /// - Returns: The bytes of the file.
  /// - Throws: `MediaError` with `.outOfMemory`, and `.writeFailed` if FFmpeg has no PNG encoder.
  public func pngData() throws(MediaError) -> [UInt8] {
    do throws(CallFailure) {
      return try MediaFrame.rgb(pixels.bytes, width: pixels.width, height: pixels.height).pngBytes()
    } catch {
      throw MediaError(
        error, at: CallStage(other: .init(.writeFailed)),
        message: "the image cannot be encoded: \(error)")
    }
  }
}

extension MediaFrame {
  /// Makes a frame of RGB pixels without padding.
  fileprivate static func rgb(
    _ bytes: [UInt8], width: Int, height: Int
  ) throws(CallFailure) -> MediaFrame {
    try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in
      try MediaFrame.video(
        copying: bytes, width: width, height: height, pixelFormat: .rgb24, bytesPerRow: 3 * width)
    }
  }
}
