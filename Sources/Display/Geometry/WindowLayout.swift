// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

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
/// In a low window, the image has precedence: thumbnails go first, then the other lines.
struct WindowLayout: Hashable, Sendable {
  /// One rectangle per image, side by side.
  let panes: [ViewRect]
  /// Everything below the panes; empty in a low window.
  let panel: ViewRect
  /// Empty in a low window.
  let thumbnails: ViewRect
  /// The segments; empty in a low window.
  let timeline: ViewRect
  /// Empty in a low window.
  let status: ViewRect
  /// Screen pixels per dot of a character.
  let textScale: Int

  private static let margin = 12
  private static let thumbnailHeight = 48
  /// The space between two images.
  static let gap = 4

  init(_ size: PixelSize, paneCount: Int) {
    textScale = size.width >= 700 ? 2 : 1
    let bandHeight = DrawingText.height(scale: textScale) + 8
    let statusHeight = DrawingText.height(scale: textScale) + 16
    let hasPanel = size.height >= 140
    let hasThumbnails = size.height >= 300
    let thumbnailHeight = hasThumbnails ? Self.thumbnailHeight : 0
    let panelHeight = hasPanel ? Self.margin + thumbnailHeight + bandHeight + statusHeight : 0
    let imageHeight = max(0, size.height - panelHeight)
    let count = max(1, paneCount)
    let usable = max(0, size.width - Self.gap * (count - 1))
    panes = (0..<count).map { index in
      let (left, right) = (usable * index / count, usable * (index + 1) / count)
      return ViewRect(
        x: left + Self.gap * index, y: 0, width: right - left, height: imageHeight)
    }
    panel = ViewRect(x: 0, y: imageHeight, width: size.width, height: panelHeight)
    let width = max(0, size.width - 2 * Self.margin)
    func line(_ y: Int, _ height: Int) -> ViewRect {
      ViewRect(x: Self.margin, y: y, width: width, height: hasPanel ? height : 0)
    }
    let top = imageHeight + Self.margin
    thumbnails = line(top, thumbnailHeight)
    timeline = line(top + thumbnailHeight, bandHeight)
    status = line(top + thumbnailHeight + bandHeight, statusHeight)
  }

  /// The area that a pointer drags on to change the time: thumbnails and segments.
  var scrubArea: ViewRect {
    ViewRect(
      x: timeline.x, y: thumbnails.y, width: timeline.width,
      height: thumbnails.height + timeline.height)
  }

  /// The pane at a point; nil outside.
  func pane(at point: ViewPoint) -> Int? { panes.firstIndex { $0.contains(point) } }

  /// The composition time at a column of the time line; the nearer end outside.
  func time(atColumn x: Double, duration: Rational) -> Rational {
    guard timeline.width > 0 else { return .zero }
    let column = min(max(0, Int((x - Double(timeline.x)).rounded(.down))), timeline.width)
    return duration * Rational(Int128(column), over: Int128(timeline.width))
  }

  /// The column of a composition time.
  func column(of time: Rational, duration: Rational) -> Int {
    guard duration > .zero else { return timeline.x }
    let share = min(max(0, (time / duration).doubleValue), 1)
    return timeline.x + Int((share * Double(timeline.width)).rounded())
  }

  /// The rectangles of thumbnails for an aspect (width by height), which fill their line.
  func thumbnailSlots(aspect: Double) -> [ViewRect] {
    guard !thumbnails.isEmpty, aspect > 0 else { return [] }
    let wanted = max(16, Double(thumbnails.height) * min(aspect, 8))
    let count = max(1, Int(Double(thumbnails.width) / wanted))
    return (0..<count).map { index in
      let left = thumbnails.width * index / count
      let right = thumbnails.width * (index + 1) / count
      return ViewRect(
        x: thumbnails.x + left, y: thumbnails.y, width: right - left, height: thumbnails.height)
    }
  }
}
