// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// The division of a window into panes, thumbnails, time line and status line.
///
/// ```
/// ┌───────────┬───────────┐
/// │  pane 0   │  pane 1   │
/// ├───────────┴───────────┤
/// │ thumbnails            │
/// │ time line             │
/// │ status                │
/// └───────────────────────┘
/// ```
///
/// If the window is not high enough, the thumbnails are left out, and in a still lower window the
/// whole panel below the image.
struct WindowLayout: Hashable, Sendable {
  /// The rectangles of the panes in the window, one for each player, side by side.
  let panes: [PixelRect]
  /// The area below the panes, for thumbnails, time line and status line; empty if the window is
  /// too low.
  let panel: PixelRect
  /// The row of thumbnails; empty if the window is too low.
  let thumbnails: PixelRect
  /// The row of the composition's segments; empty if the window is too low.
  let timeline: PixelRect
  /// The status line; empty if the window is too low.
  let status: PixelRect
  /// The number of screen pixels per dot of a character.
  let textScale: Int

  private static let margin = 12
  private static let thumbnailHeight = 48
  /// The space between two panes, in pixels.
  static let gap = 4

  /// Divides a window.
  ///
  /// - Parameters:
  ///   - size: The size of the window in pixels.
  ///   - paneCount: The number of panes.
  ///   - density: The number of pixels per unit of length of a usual screen.
  init(_ size: VideoSize, paneCount: Int, density: Int = 1) {
    textScale = (size.width >= 700 * density ? 2 : 1) * density
    let bandHeight = TextMask.capHeight * textScale + 8
    let statusHeight = TextMask.capHeight * textScale + 16
    let hasPanel = size.height >= 140
    let hasThumbnails = size.height >= 300
    let thumbnailHeight = hasThumbnails ? Self.thumbnailHeight : 0
    let panelHeight = hasPanel ? Self.margin + thumbnailHeight + bandHeight + statusHeight : 0
    let imageHeight = max(0, size.height - panelHeight)
    let count = max(1, paneCount)
    let usable = max(0, size.width - Self.gap * (count - 1))
    panes = (0..<count).map { index in
      let (left, right) = (usable * index / count, usable * (index + 1) / count)
      return PixelRect(
        x: left + Self.gap * index, y: 0, width: right - left, height: imageHeight)
    }
    panel = PixelRect(x: 0, y: imageHeight, width: size.width, height: panelHeight)
    let width = max(0, size.width - 2 * Self.margin)
    func line(_ y: Int, _ height: Int) -> PixelRect {
      PixelRect(x: Self.margin, y: y, width: width, height: hasPanel ? height : 0)
    }
    let top = imageHeight + Self.margin
    thumbnails = line(top, thumbnailHeight)
    timeline = line(top + thumbnailHeight, bandHeight)
    status = line(top + thumbnailHeight + bandHeight, statusHeight)
  }

  /// The area in which dragging the pointer changes the time: the rows of thumbnails and segments.
  var scrubArea: PixelRect {
    PixelRect(
      x: timeline.x, y: thumbnails.y, width: timeline.width,
      height: thumbnails.height + timeline.height)
  }

  /// The index of the pane at a point, or nil if the point is in no pane.
  func pane(at point: Point) -> Int? { panes.firstIndex { $0.contains(point) } }

  /// The composition time at a pixel column of the window.
  ///
  /// A column outside the time line gives the time at its nearer end.
  func time(atColumn x: Double, duration: Rational) -> Rational {
    guard timeline.width > 0 else { return .zero }
    let column = min(max(0, Int((x - Double(timeline.x)).rounded(.down))), timeline.width)
    return duration * Rational(Int128(column), over: Int128(timeline.width))
  }

  /// The pixel column of the window that shows a composition time.
  func column(of time: Rational, duration: Rational) -> Int {
    guard duration > .zero else { return timeline.x }
    let share = min(max(0, (time / duration).doubleValue), 1)
    return timeline.x + Int((share * Double(timeline.width)).rounded())
  }

  /// The rectangles of the thumbnails, which fill their row.
  ///
  /// The aspect ratio of each rectangle is about `aspect`, which is width divided by height.
  func thumbnailSlots(aspect: Double) -> [PixelRect] {
    guard !thumbnails.isEmpty, aspect > 0 else { return [] }
    let wanted = max(16, Double(thumbnails.height) * min(aspect, 8))
    let count = max(1, Int(Double(thumbnails.width) / wanted))
    return (0..<count).map { index in
      let left = thumbnails.width * index / count
      let right = thumbnails.width * (index + 1) / count
      return PixelRect(
        x: thumbnails.x + left, y: thumbnails.y, width: right - left, height: thumbnails.height)
    }
  }
}
