// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore
public import OvercrankPreview
public import OvercrankRaster

/// The overlays that a preview's window shows over the camera's image.
public struct PreviewWindowContent: Hashable, Sendable {
  /// The rectangle of the whole image in the window; see `PreviewGeometry.imageRect`.
  public var imageRect = Rect(x: 0, y: 0, width: 0, height: 0)
  /// A line of text at the lower edge; empty for no text.
  public var status = ""
  /// The histogram to show, or nil for no histogram.
  public var histogram: LumaHistogram?
  /// The meter of each audio channel.
  public var meters: [LevelMeterDisplay] = []
  /// The center, in the window, of a square that marks a point of interest; nil for no square.
  public var focusPoint: Point?
  /// Whether the image is hidden for a moment, to show that a photo is being taken.
  public var isBlinking = false
  /// The keys to show in a table over the image; empty for no table.
  package var keyHelp: [KeyDescription] = []

  /// Creates the content of a window without an image.
  public init() {}
}

/// A window that shows the live image of a camera.
///
/// The window draws the images and overlays that the program passes to it, and reports keys and
/// clicks. ``present(_:_:)`` does not wait for vertical synchronization, so a frame is visible as
/// soon as it is drawn.
///
/// ```swift
/// let window = try PreviewWindow(title: "Camera", width: 1_280, height: 720)
/// var content = PreviewWindowContent()
/// while let input = window.takeInput(), !input.contains(.key("q")) {
///   guard let geometry = preview.geometry(viewWidth: window.width, viewHeight: window.height),
///     let frame = try preview.nextFrame(as: .bgra) else { continue }
///   content.imageRect = geometry.imageRect
///   try window.present(frame.image, content)
/// }
/// ```
///
/// Only the thread that created the window may use it, which should be the main thread.
public final class PreviewWindow {
  /// Input that a preview's window reports.
  public enum Input: Hashable, Sendable {
    /// A key by its name, as in ``WindowInput/key(_:)``.
    case key(String)
    /// A click with the left button, in pixels of the window.
    case pressed(Point)
  }

  private let window: SDLWindow
  private var scene: PreviewScene
  private var shown: [DrawingCommand] = []
  private var mustDraw = true
  private var waiting: [WindowEvent] = []

  /// The largest size of a new window, in pixels.
  private static let largest = VideoSize(width: 1_280, height: 720)

  /// Throws if the process has no screen on which it could open a window.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  public static func checkDisplay() throws(MediaError) { try SDLWindow.check() }

  /// Opens a window for images of the given size.
  ///
  /// The window has at most 1280x720 pixels.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  public init(title: String, width: Int, height: Int) throws(MediaError) {
    let rect = PreviewGeometry(
      imageWidth: max(1, width), imageHeight: max(1, height),
      viewWidth: Double(min(max(1, width), Self.largest.width)),
      viewHeight: Double(min(max(1, height), Self.largest.height))
    ).imageRect
    window = try SDLWindow(
      title: title,
      size: VideoSize(width: max(320, Int(rect.width)), height: max(180, Int(rect.height))))
    scene = PreviewScene(size: window.size)
  }

  /// The width of the window in pixels.
  public var width: Double { Double(scene.size.width) }
  /// The height of the window in pixels.
  public var height: Double { Double(scene.size.height) }

  /// Returns the input since the last call.
  ///
  /// - Returns: The input, or nil if the user closed the window.
  public func takeInput() -> [Input]? {
    var input: [Input] = []
    let events = waiting + window.events()
    waiting = []
    for event in events {
      switch event {
      case .key(let name): input.append(.key(name))
      case .pressed(.left, let point): input.append(.pressed(point))
      case .closed: return nil
      case .exposed: mustDraw = true
      case .resized:
        scene.size = window.size
        mustDraw = true
      case .pressed, .moved, .released, .doubleClicked, .pointerLeft, .dropped, .wheel: break
      }
    }
    return input
  }

  /// Adds an event, as if the window system had reported it.
  func post(_ event: WindowEvent) { waiting.append(event) }

  /// Sets the size of the window in pixels.
  public func resize(width: Int, height: Int) {
    window.resize(to: VideoSize(width: width, height: height))
    scene.size = window.size
    mustDraw = true
  }

  /// Shows an image with overlays.
  ///
  /// Draws only if something has changed.
  ///
  /// - Parameters:
  ///   - image: A new image in the pixel format ``PixelFormat/bgra``, or nil to keep the previous
  ///     image.
  ///   - content: The overlays on the image.
  /// - Throws: `MediaError` with `.noDisplay` if the renderer fails, `.notConvertible` for another
  ///   pixel format.
  public func present(_ image: PixelBuffer?, _ content: PreviewWindowContent) throws(MediaError) {
    if let image {
      guard image.format == .bgra else {
        throw MediaError(
          .notConvertible, "a preview's window cannot show \(image.format.rawValue)",
          recovery: "convert the image to bgra")
      }
      try window.upload(image, to: .frame(pane: 0))
      scene.image = VideoSize(width: image.width, height: image.height)
      mustDraw = true
    }
    scene.content = content
    window.present(scene.drawing, instead: &shown, if: &mustDraw)
  }

  /// Draws the window again and returns its pixels in RGB.
  func pixels() throws(MediaError) -> MediaFrame {
    window.draw(scene.drawing)
    mustDraw = true
    return try window.pixels()
  }

  /// Returns the window as a PNG file.
  ///
  /// - Throws: `MediaError` with `.noDisplay` if the renderer cannot read its pixels.
  public func pngData() throws(MediaError) -> [UInt8] {
    try pixels().windowPNG()
  }
}

/// The content of a preview's window, as a value.
struct PreviewScene: Hashable {
  /// The size of the window.
  var size: VideoSize
  /// The size of the last image that the window received, or nil before the first image.
  var image: VideoSize?
  var content = PreviewWindowContent()

  private var font: InstalledFont { .standard }
  private static let scale = 2
  private static let border = 6
  private static let histogramHeight = 64
  private static let meterHeight = 8

  /// The commands that draw the window, from back to front.
  var drawing: [DrawingCommand] {
    var list: [DrawingCommand] = [
      .fill(PixelRect(x: 0, y: 0, width: size.width, height: size.height), .background)
    ]
    let rect = content.imageRect
    if let image {
      list.append(
        .image(
          .frame(pane: 0),
          source: PixelRect(x: 0, y: 0, width: image.width, height: image.height),
          destination: PixelRect(
            x: Int(rect.x.rounded()), y: Int(rect.y.rounded()), width: Int(rect.width.rounded()),
            height: Int(rect.height.rounded())),
          rotation: 0, isSmooth: true))
    }
    if content.isBlinking {
      list.append(
        .fill(PixelRect(x: 0, y: 0, width: size.width, height: size.height), .background))
    }
    if let point = content.focusPoint { list += Self.frame(around: point) }
    return list + panel + (widgets?.drawing(WidgetFocus()) ?? [])
  }

  /// The table of keys; nil while it is not shown.
  var widgets: Widget? {
    Widget.help(
      content.keyHelp, over: PixelRect(x: 0, y: 0, width: size.width, height: size.height))
  }

  /// Draws the outline of a square around a point.
  private static func frame(around point: Point) -> [DrawingCommand] {
    let (x, y, side, line) = (Int(point.x) - 24, Int(point.y) - 24, 48, 2)
    return [
      PixelRect(x: x, y: y, width: side, height: line),
      PixelRect(x: x, y: y + side - line, width: side, height: line),
      PixelRect(x: x, y: y, width: line, height: side),
      PixelRect(x: x + side - line, y: y, width: line, height: side),
    ].map { .fill($0, .loop) }
  }

  /// Draws the status text, the audio meters and the histogram, stacked from the window's lower
  /// edge upward.
  private var panel: [DrawingCommand] {
    var list: [DrawingCommand] = []
    let inner = max(0, size.width - 2 * Self.border)
    let textHeight = TextMask.capHeight * Self.scale
    var top = size.height - textHeight - 2 * Self.border
    let textTop = top + Self.border
    top -= content.meters.count * (Self.meterHeight + 2)
    list.append(
      .fill(PixelRect(x: 0, y: top, width: size.width, height: size.height - top), .shade))
    for (channel, meter) in content.meters.enumerated() {
      list += bar(meter, y: top + 2 + channel * (Self.meterHeight + 2), width: inner)
    }
    list.append(
      .text(
        font.fitting(content.status, width: inner, scale: Self.scale), x: Self.border,
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
      .fill(PixelRect(x: Self.border, y: y, width: width, height: Self.meterHeight), .panel),
      .fill(PixelRect(x: Self.border, y: y, width: level, height: Self.meterHeight), .slowSpeed),
    ]
    if meter.heldPeakPart > 0 {
      list.append(
        .fill(
          PixelRect(x: Self.border + held, y: y, width: 2, height: Self.meterHeight), .text))
    }
    if meter.hasClipped {
      list.append(
        .fill(
          PixelRect(x: Self.border + width - 6, y: y, width: 6, height: Self.meterHeight), .mark))
    }
    return list
  }

  private func bars(_ histogram: LumaHistogram, y: Int, width: Int) -> [DrawingCommand] {
    let highest = max(1, histogram.bins.max() ?? 1)
    let column = max(1, min(4, width / LumaHistogram.binCount))
    var list: [DrawingCommand] = [
      .fill(
        PixelRect(
          x: Self.border, y: y, width: column * LumaHistogram.binCount,
          height: Self.histogramHeight), .shade)
    ]
    for (bin, count) in histogram.bins.enumerated() where count > 0 {
      let height = max(1, count * Self.histogramHeight / highest)
      list.append(
        .fill(
          PixelRect(
            x: Self.border + bin * column, y: y + Self.histogramHeight - height, width: column,
            height: height), .text))
    }
    return list
  }
}
