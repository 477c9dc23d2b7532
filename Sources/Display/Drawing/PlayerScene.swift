// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankPreview
import OvercrankRaster

/// Everything that a player's window shows, as a value.
struct PlayerScene: WindowScene, Hashable, Sendable {
  /// One of the images in the window, with its title and its zoom.
  struct Pane: Hashable, Sendable {
    /// The frame on screen; nil in a gap of the composition.
    var frame: Frame?
    /// The text in the pane's lower left corner; empty for no text.
    var title = ""
    var viewport = ImageViewport()
  }

  /// A frame, without its pixels.
  struct Frame: Hashable, Sendable {
    let path: String
    let index: Int
    /// The composition time of a synthesized frame; nil for a captured frame.
    var synthesizedTime: Rational?
    /// The size of the frame before its rotation, in pixels.
    let stored: VideoSize
    /// The clockwise rotation of the frame in degrees.
    let rotation: Int

    /// The size after the rotation, in pixels of the frame.
    var size: VideoSize { stored.rotated(by: rotation) }
  }

  var size: VideoSize
  /// The number of pixels per unit of length of a usual screen, by which texts are larger.
  var density = 1
  var panes: [Pane]
  var timeline: TimelineContent
  /// The composition time of the playhead.
  var position = Rational.zero
  var loop: TimeRange?
  /// The composition times of the marks on the time line.
  var marks: [Rational] = []
  /// The start of the selected range, in composition time; nil for no range.
  var rangeStart: Rational?
  /// The end of the selected range; nil while it is not set.
  var rangeEnd: Rational?
  var isPlaying = false
  /// The shapes on the first image.
  var shapes: [ViewShape] = []
  var bar = ButtonBar()
  var keyHelp: [KeyDescription] = []
  var showsHelp = false
  /// The text of the status line.
  var status = ""
  /// A text that the status line shows for a moment; empty for no text.
  var message = ""
  /// The aspect ratio of thumbnails: width divided by height.
  var thumbnailAspect = 16.0 / 9
  /// The size of each thumbnail in pixels, or nil for a thumbnail that is not decoded yet.
  var thumbnails: [VideoSize?] = []

  private var font: InstalledFont { .standard }

  var layout: WindowLayout { WindowLayout(size, paneCount: panes.count, density: density) }

  /// The widgets over the images and the time line.
  var widgets: Widget {
    let layout = layout
    let whole = PixelRect(x: 0, y: 0, width: size.width, height: size.height)
    var children: [Widget] = []
    if !layout.panel.isEmpty, timeline.duration > .zero {
      children.append(
        Widget(
          kind: .timeLine(value: (position / timeline.duration).doubleValue), name: "time line",
          area: layout.scrubArea))
    }
    // The table of keys would cover some of the buttons.
    if !showsHelp { children += bar.widgets(over: barArea, textScale: layout.textScale) }
    if showsHelp, let help = Widget.help(keyHelp, over: whole, density: density) {
      children.append(help)
    }
    return Widget(kind: .window, name: "window", area: whole, children: children)
  }

  /// The area over whose lower edge the buttons are shown.
  private var barArea: PixelRect {
    PixelRect(x: 0, y: 0, width: size.width, height: layout.panes[0].bottom)
  }

  /// Handles an event for the buttons.
  mutating func handle(_ event: WindowEvent) -> WidgetFocus.Effect {
    bar.handle(event, over: barArea, textScale: layout.textScale)
  }

  /// The commands that draw the window, from back to front.
  var drawing: [DrawingCommand] {
    let layout = layout
    var list: [DrawingCommand] = [
      .fill(PixelRect(x: 0, y: 0, width: size.width, height: size.height), .background)
    ]
    for index in panes.indices { list += paneDrawing(index, layout) }
    list += shapes.flatMap { shapeDrawing($0, layout) }
    if !layout.panel.isEmpty {
      list.append(.fill(layout.panel, .panel))
      list += thumbnailDrawing(layout)
      list += segmentDrawing(layout)
      list += overlayDrawing(layout)
      list += statusDrawing(layout)
    }
    return list + widgets.drawing(bar.focus)
  }

  private func paneDrawing(_ index: Int, _ layout: WindowLayout) -> [DrawingCommand] {
    let (pane, area) = (panes[index], layout.panes[index])
    var list: [DrawingCommand] = []
    if let frame = pane.frame {
      let isSmooth = !pane.viewport.showsPixels(of: frame.size, in: area)
      list = pane.viewport.parts(of: frame.size, in: area).map { part in
        .image(
          .frame(pane: index),
          source: part.source.unrotated(by: frame.rotation, in: frame.stored),
          destination: part.destination, rotation: frame.rotation, isSmooth: isSmooth)
      }
    }
    let bottom = area.bottom - 24 - TextMask.capHeight * layout.textScale
    guard !pane.title.isEmpty, bottom >= area.y else { return list }
    return list
      + DrawingCommand.label(
        pane.title, x: area.x + 12, y: bottom, layout.textScale, within: area.width - 24)
  }

  /// Returns the point of the first image at a point of the window, or nil outside the image.
  func imagePoint(at point: Point) -> Point? {
    let pane = layout.panes[0]
    guard pane.contains(point), let image = panes[0].frame?.size else { return nil }
    let found = panes[0].viewport.imagePoint(at: point, of: image, in: pane)
    guard (0...Double(image.width)).contains(found.x), (0...Double(image.height)).contains(found.y)
    else { return nil }
    return found
  }

  private func shapeDrawing(_ shape: ViewShape, _ layout: WindowLayout) -> [DrawingCommand] {
    let pane = layout.panes[0]
    guard let image = panes[0].frame?.size else { return [] }
    var points = shape.points.map { panes[0].viewport.windowPoint(at: $0, of: image, in: pane) }
    let end = points.last ?? pane.middle
    var lines: [(Point, Point)] = []
    for point in points where shape.kind != .box {
      for (x, y) in [(5.0, 0.0), (0, 5)] {
        lines.append((Point(x: point.x - x, y: point.y - y), Point(x: point.x + x, y: point.y + y)))
      }
    }
    if shape.kind == .box, points.count == 2 {
      let (first, last) = (points[0], points[1])
      points = [first, Point(x: last.x, y: first.y), last, Point(x: first.x, y: last.y), first]
    }
    lines += DrawingCommand.lines(through: points, isClosed: false)
    let drawn = DrawingCommand.outlined(lines, clip: pane)
    guard pane.contains(end), !shape.label.isEmpty else { return drawn }
    let width = font.width(of: shape.label, scale: layout.textScale) + 12
    let x = max(pane.x, min(Int(end.x) + 10, pane.right - width))
    let y = min(max(pane.y, Int(end.y) - 10), pane.bottom - 26)
    return drawn
      + DrawingCommand.label(shape.label, x: x, y: y, layout.textScale, within: pane.right - x)
  }

  // MARK: Time line

  private func thumbnailDrawing(_ layout: WindowLayout) -> [DrawingCommand] {
    layout.thumbnailSlots(aspect: thumbnailAspect).enumerated().compactMap { index, slot in
      guard thumbnails.indices.contains(index), let size = thumbnails[index] else {
        return .fill(slot, .background)
      }
      return .image(
        .thumbnail(index), source: PixelRect(x: 0, y: 0, width: size.width, height: size.height),
        destination: slot, rotation: 0, isSmooth: true)
    }
  }

  private func segmentDrawing(_ layout: WindowLayout) -> [DrawingCommand] {
    let band = layout.timeline
    return timeline.segments.flatMap { segment -> [DrawingCommand] in
      let left = layout.column(of: segment.start, duration: timeline.duration)
      let right = layout.column(of: segment.end, duration: timeline.duration)
      guard left < right else { return [] }
      let isLast = right == band.right
      // The last pixel column of a segment of the time line keeps the panel's color, to separate
      // the segment from the next one. A segment narrower than 4 pixels is filled completely.
      let width = right - left - (isLast || right - left < 4 ? 0 : 1)
      let area = PixelRect(x: left, y: band.y, width: width, height: band.height)
      let textWidth = font.width(of: segment.label, scale: layout.textScale)
      guard !segment.label.isEmpty, textWidth + 8 <= width else {
        return [.fill(area, segment.kind.color)]
      }
      return [
        .fill(area, segment.kind.color),
        .text(
          segment.label, x: left + (width - textWidth) / 2, y: band.y + 4,
          scale: layout.textScale, .text),
      ]
    }
  }

  /// Draws the range of loop playback, the markers and the playhead over the thumbnails and
  /// segments.
  private func overlayDrawing(_ layout: WindowLayout) -> [DrawingCommand] {
    let area = layout.scrubArea
    var list: [DrawingCommand] = []
    func line(_ time: Rational, width: Int, _ color: Color) {
      let column = layout.column(of: time, duration: timeline.duration)
      let left = min(max(area.x, column - width / 2), area.right - width)
      list.append(.fill(PixelRect(x: left, y: area.y, width: width, height: area.height), color))
    }
    /// Draws a handle of a line, over its upper end or at its lower one.
    func handle(_ time: Rational, y: Int, height: Int, _ color: Color) {
      let column = layout.column(of: time, duration: timeline.duration)
      list.append(.fill(PixelRect(x: column - 4, y: y, width: 8, height: height), color))
    }
    /// Draws a bracket at an end of the range.
    func bracket(_ time: Rational, opensRight: Bool) {
      line(time, width: 4, .range)
      let column = layout.column(of: time, duration: timeline.duration)
      let left = min(max(area.x, opensRight ? column - 2 : column - 12), area.right - 14)
      for y in [area.y, area.bottom - 4] {
        list.append(.fill(PixelRect(x: left, y: y, width: 14, height: 4), .range))
      }
    }
    if let loop {
      let left = layout.column(of: loop.start.seconds, duration: timeline.duration)
      let right = layout.column(of: loop.end.seconds, duration: timeline.duration)
      for part in [area.x..<max(area.x, left), min(right, area.right)..<area.right]
      where !part.isEmpty {
        list.append(.fill(PixelRect(x: part, y: area.rows), .outside))
      }
      for y in [area.y, area.bottom - 2] where left < right {
        list.append(
          .fill(PixelRect(x: left, y: y, width: right - left, height: 2), .loop))
      }
    }
    if let rangeStart { bracket(rangeStart, opensRight: true) }
    if let rangeEnd { bracket(rangeEnd, opensRight: false) }
    for marker in timeline.markers { line(marker, width: 2, .loop) }
    for mark in marks {
      line(mark, width: 2, .mark)
      // It stays visible where the playhead covers the line.
      handle(mark, y: area.bottom - 5, height: 5, .mark)
    }
    line(position, width: 4, .shade)
    line(position, width: 2, .playhead)
    handle(position, y: area.y - 6, height: 6, .playhead)
    return list
  }

  // MARK: Status

  private func statusDrawing(_ layout: WindowLayout) -> [DrawingCommand] {
    let area = layout.status
    let scale = layout.textScale
    let height = TextMask.capHeight * scale
    let y = area.y + (area.height - height) / 2
    var list = isPlaying ? playSign(area.x, y, height) : pauseSign(area.x, y, height)
    let left = area.x + height + 14
    let total = rangeText ?? "\(decimals(position)) / \(decimals(timeline.duration)) s"
    let width = font.width(of: total, scale: scale)
    let text = message.isEmpty ? status : message
    let hasTotal = left + font.width(of: text, scale: scale) + 24 + width <= area.right
    let available = hasTotal ? area.right - width - 24 - left : area.right - left
    list.append(
      .text(
        font.fitting(text, width: available, scale: scale), x: left, y: y, scale: scale,
        message.isEmpty ? .text : .loop))
    if hasTotal {
      list.append(.text(total, x: area.right - width, y: y, scale: scale, .dimText))
    }
    return list
  }

  /// The ends of the range in seconds, as in `--range`; nil for no range.
  private var rangeText: String? {
    rangeStart.map { "range \(decimals($0)).." + (rangeEnd.map(decimals) ?? "") }
  }

  /// Draws the triangle of the play symbol row by row.
  private func playSign(_ x: Int, _ y: Int, _ height: Int) -> [DrawingCommand] {
    (0..<height).map { row in
      let width = min(row, height - 1 - row) * 2 * height / max(1, height) + 2
      return .fill(PixelRect(x: x, y: y + row, width: width, height: 1), .text)
    }
  }

  private func pauseSign(_ x: Int, _ y: Int, _ height: Int) -> [DrawingCommand] {
    let width = max(1, height * 2 / 7)
    return [0, height - width - height / 7].map { left in
      .fill(PixelRect(x: x + left, y: y, width: width, height: height), .text)
    }
  }

  /// Formats a time as seconds with three decimals, rounded down.
  private func decimals(_ time: Rational) -> String {
    Rational.decimals((try? (time * 1_000).rounded(.towardNegativeInfinity)) ?? 0, count: 3)
  }
}

extension TimelineContent.Segment.Kind {
  fileprivate var color: Color {
    switch self {
    case .normal: .normalSpeed
    case .slow: .slowSpeed
    case .fast: .fastSpeed
    case .frozen: .frozen
    case .gap: .gap
    }
  }
}
