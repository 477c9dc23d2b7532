// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture

/// The content of a preview's window, as a value.
struct PreviewScene: Hashable {
  /// The size of the window.
  var size: PixelSize
  /// The size of the last image that the window received, or nil before the first image.
  var image: PixelSize?
  var content = PreviewWindowContent()

  private static let scale = 2
  private static let border = 6
  private static let histogramHeight = 64
  private static let meterHeight = 8

  /// The commands that draw the window, from back to front.
  var drawing: [DrawingCommand] {
    var list: [DrawingCommand] = [
      .fill(ViewRect(x: 0, y: 0, width: size.width, height: size.height), .background)
    ]
    let rect = content.imageRect
    if let image {
      list.append(
        .image(
          .frame(pane: 0),
          source: ViewRect(x: 0, y: 0, width: image.width, height: image.height),
          destination: ViewRect(
            x: Int(rect.x.rounded()), y: Int(rect.y.rounded()), width: Int(rect.width.rounded()),
            height: Int(rect.height.rounded())),
          rotation: 0, isSmooth: true))
    }
    if content.isBlinking {
      list.append(
        .fill(ViewRect(x: 0, y: 0, width: size.width, height: size.height), .background))
    }
    if let point = content.focusPoint { list += Self.frame(around: point) }
    return list + panel
  }

  /// Draws the outline of a square around a point.
  private static func frame(around point: PreviewPoint) -> [DrawingCommand] {
    let (x, y, side, line) = (Int(point.x) - 24, Int(point.y) - 24, 48, 2)
    return [
      ViewRect(x: x, y: y, width: side, height: line),
      ViewRect(x: x, y: y + side - line, width: side, height: line),
      ViewRect(x: x, y: y, width: line, height: side),
      ViewRect(x: x + side - line, y: y, width: line, height: side),
    ].map { .fill($0, .loop) }
  }

  /// Draws the status text, the audio meters and the histogram, stacked from the window's lower
  /// edge upward.
  private var panel: [DrawingCommand] {
    var list: [DrawingCommand] = []
    let inner = max(0, size.width - 2 * Self.border)
    let textHeight = DrawingText.height(scale: Self.scale)
    var top = size.height - textHeight - 2 * Self.border
    let textTop = top + Self.border
    top -= content.meters.count * (Self.meterHeight + 2)
    list.append(
      .fill(ViewRect(x: 0, y: top, width: size.width, height: size.height - top), .shade))
    for (channel, meter) in content.meters.enumerated() {
      list += bar(meter, y: top + 2 + channel * (Self.meterHeight + 2), width: inner)
    }
    list.append(
      .text(
        DrawingText.fitting(content.status, width: inner, scale: Self.scale), x: Self.border,
        y: textTop, scale: Self.scale, .text))
    if let histogram = content.histogram {
      list += bars(histogram, y: top - Self.histogramHeight - Self.border, width: inner)
    }
    return list
  }

  private func bar(_ meter: LevelMeterDisplay, y: Int, width: Int) -> [DrawingCommand] {
    let level = Int((meter.levelPart * Double(width)).rounded())
    let held = min(width - 2, Int((meter.heldPeakPart * Double(width)).rounded()))
    var list: [DrawingCommand] = [
      .fill(ViewRect(x: Self.border, y: y, width: width, height: Self.meterHeight), .panel),
      .fill(ViewRect(x: Self.border, y: y, width: level, height: Self.meterHeight), .slowSpeed),
    ]
    if meter.heldPeakPart > 0 {
      list.append(
        .fill(
          ViewRect(x: Self.border + held, y: y, width: 2, height: Self.meterHeight), .text))
    }
    if meter.hasClipped {
      list.append(
        .fill(
          ViewRect(x: Self.border + width - 6, y: y, width: 6, height: Self.meterHeight), .mark))
    }
    return list
  }

  private func bars(_ histogram: LumaHistogram, y: Int, width: Int) -> [DrawingCommand] {
    let highest = max(1, histogram.bins.max() ?? 1)
    let column = max(1, min(4, width / LumaHistogram.binCount))
    var list: [DrawingCommand] = [
      .fill(
        ViewRect(
          x: Self.border, y: y, width: column * LumaHistogram.binCount,
          height: Self.histogramHeight), .shade)
    ]
    for (bin, count) in histogram.bins.enumerated() where count > 0 {
      let height = max(1, count * Self.histogramHeight / highest)
      list.append(
        .fill(
          ViewRect(
            x: Self.border + bin * column, y: y + Self.histogramHeight - height, width: column,
            height: height), .text))
    }
    return list
  }
}
