// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The part of an image that a pane shows: a zoom and a center.
///
/// At zoom 1 the whole image fits the pane, with its aspect ratio kept. At a larger zoom, a scale
/// of two or more screen pixels per image pixel is rounded to an integer, so that all pixels are
/// squares of equal size.
struct ImageViewport: Hashable, Sendable {
  /// The magnification, relative to the size at which the whole image fits the pane.
  private(set) var zoom = 1.0
  /// The point of the image at the center of the pane, in fractions of the image's width and
  /// height.
  private(set) var center = Point(x: 0.5, y: 0.5)

  /// The greatest number of screen pixels per image pixel, in each direction.
  static let largestScale = 64.0

  /// A rectangular part of an image, and the rectangle of the window that shows it.
  struct Part: Hashable, Sendable {
    /// The rectangle in the image, in image pixels.
    let source: PixelRect
    /// The rectangle in the window, in window pixels.
    let destination: PixelRect
  }

  /// The position of an image in the window, along one axis: horizontal or vertical.
  private struct Axis {
    let length: Int
    let scale: Double
    /// The position of the image's first pixel, in window pixels.
    let origin: Double
    let pane: Range<Int>

    /// The parts of the image that are visible along this axis, in image pixels and in window
    /// pixels.
    ///
    /// An enlarged image pixel that the edge of the pane cuts becomes a separate part. All other
    /// image pixels then keep their exact size on the screen.
    var parts: [(source: Range<Int>, destination: Range<Int>)] {
      let (start, end) = (Double(pane.lowerBound), Double(pane.upperBound))
      let first = max(0, Int(((start - origin) / scale).rounded(.down)))
      let last = min(length, Int(((end - origin) / scale).rounded(.up)))
      guard first < last else { return [] }
      func edge(_ pixel: Int) -> Int {
        min(max(Int((origin + Double(pixel) * scale).rounded()), pane.lowerBound), pane.upperBound)
      }
      var bounds = [first, last]
      if scale >= 1 {
        if origin + Double(first) * scale < start { bounds.insert(first + 1, at: 1) }
        if origin + Double(last) * scale > end { bounds.insert(last - 1, at: bounds.count - 1) }
      }
      return zip(bounds, bounds.dropFirst()).compactMap { lower, upper in
        guard lower < upper, edge(lower) < edge(upper) else { return nil }
        return (lower..<upper, edge(lower)..<edge(upper))
      }
    }
  }

  /// The number of window pixels per image pixel, in each direction.
  func scale(of image: VideoSize, in pane: PixelRect) -> Double {
    let fit = Self.fit(image, pane)
    guard zoom != 1 else { return fit }
    let scale = min(fit * zoom, max(Self.largestScale, fit))
    return scale >= 2 ? scale.rounded() : scale
  }

  /// True if image pixels are shown as squares, and false if they are interpolated.
  func showsPixels(of image: VideoSize, in pane: PixelRect) -> Bool {
    zoom != 1 && scale(of: image, in: pane) >= 1
  }

  /// Returns the visible parts of an image, which lie in the pane and do not overlap.
  func parts(of image: VideoSize, in pane: PixelRect) -> [Part] {
    guard image.width > 0, image.height > 0, !pane.isEmpty else { return [] }
    let axes = axes(image, pane)
    return axes.y.parts.flatMap { row in
      axes.x.parts.map { column in
        Part(
          source: PixelRect(x: column.source, y: row.source),
          destination: PixelRect(x: column.destination, y: row.destination))
      }
    }
  }

  /// Converts a point of the window to a point of the image, in image pixels.
  ///
  /// A point outside the image gives a coordinate that is negative, or not less than the image's
  /// width or height.
  func imagePoint(at point: Point, of image: VideoSize, in pane: PixelRect) -> Point {
    let (x, y) = axes(image, pane)
    return Point(x: (point.x - x.origin) / x.scale, y: (point.y - y.origin) / y.scale)
  }

  /// Converts a point of the image, in image pixels, to a point of the window.
  func windowPoint(at point: Point, of image: VideoSize, in pane: PixelRect) -> Point {
    let (x, y) = axes(image, pane)
    return Point(x: x.origin + point.x * x.scale, y: y.origin + point.y * y.scale)
  }

  /// Multiplies the zoom by a factor, and keeps the image point that is at a given point of the
  /// window in place.
  mutating func zoom(
    by factor: Double, around point: Point, of image: VideoSize, in pane: PixelRect
  ) {
    let fixed = imagePoint(at: point, of: image, in: pane)
    let fit = Self.fit(image, pane)
    let largest = max(1, Self.largestScale / fit)
    zoom = min(max(1, zoom * factor), largest)
    let scale = scale(of: image, in: pane)
    move(
      to: Point(
        x: (fixed.x - (point.x - pane.middle.x) / scale) / Double(image.width),
        y: (fixed.y - (point.y - pane.middle.y) / scale) / Double(image.height)),
      image, pane)
  }

  /// Moves the image by a distance in window pixels.
  mutating func pan(x: Double, y: Double, of image: VideoSize, in pane: PixelRect) {
    let scale = scale(of: image, in: pane)
    move(
      to: Point(
        x: center.x - x / scale / Double(image.width),
        y: center.y - y / scale / Double(image.height)),
      image, pane)
  }

  /// Moves the center, but never so far that the pane shows avoidable empty space beside the image.
  private mutating func move(to center: Point, _ image: VideoSize, _ pane: PixelRect) {
    let scale = scale(of: image, in: pane)
    func limited(_ value: Double, _ length: Int, _ pane: Int) -> Double {
      let half = Double(pane) / 2 / (Double(length) * scale)
      return half >= 0.5 ? 0.5 : min(max(value, half), 1 - half)
    }
    self.center = Point(
      x: limited(center.x, image.width, pane.width),
      y: limited(center.y, image.height, pane.height))
  }

  private static func fit(_ image: VideoSize, _ pane: PixelRect) -> Double {
    min(
      Double(max(1, pane.width)) / Double(max(1, image.width)),
      Double(max(1, pane.height)) / Double(max(1, image.height)))
  }

  private func axes(_ image: VideoSize, _ pane: PixelRect) -> (x: Axis, y: Axis) {
    let scale = scale(of: image, in: pane)
    let middle = pane.middle
    return (
      Axis(
        length: image.width, scale: scale,
        origin: (middle.x - center.x * Double(image.width) * scale).rounded(),
        pane: pane.x..<pane.right),
      Axis(
        length: image.height, scale: scale,
        origin: (middle.y - center.y * Double(image.height) * scale).rounded(),
        pane: pane.y..<pane.bottom)
    )
  }
}

extension PixelRect {
  /// The center of the rectangle.
  var middle: Point {
    Point(x: Double(x) + Double(width) / 2, y: Double(y) + Double(height) / 2)
  }
}
