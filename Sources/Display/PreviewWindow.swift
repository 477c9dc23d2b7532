// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankPlayback
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
  /// Controls over the lower edge of the image, and lists at its right edge, which stay visible.
  public var controls: [ViewControl] = []
  /// The keys to show in a table over the image; empty for no table.
  package var keyHelp: [KeyDescription] = []
  /// The buttons that appear when the pointer moves; each reports its key.
  package var buttons: [ViewButton] = []
  /// Figures over the image, in pixels of the window.
  package var overlays: [ViewOverlay] = []
  /// A ring in the upper right corner; nil for none.
  package var gauge: ViewGauge?

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
    /// The number of wheel steps, positive if the wheel turns away from the user.
    case wheel(Double)
    /// The user operated a control of ``PreviewWindowContent/controls``, by its name.
    case control(String, ViewControl.Event)
  }

  private let window: SDLWindow
  private var scene: PreviewScene
  private var shown: PreviewScene?
  private var mustDraw = true
  private var waiting: [WindowEvent] = []
  private let clock: any HostClock

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
  public convenience init(title: String, width: Int, height: Int) throws(MediaError) {
    try self.init(title: title, width: width, height: height, clock: MonotonicHostClock())
  }

  /// Opens a window that hides its buttons by a given clock.
  init(title: String, width: Int, height: Int, clock: any HostClock) throws(MediaError) {
    self.clock = clock
    let rect = PreviewGeometry(
      imageWidth: max(1, width), imageHeight: max(1, height),
      viewWidth: Double(min(max(1, width), Self.largest.width)),
      viewHeight: Double(min(max(1, height), Self.largest.height))
    ).imageRect
    window = try SDLWindow(
      title: title,
      size: VideoSize(width: max(320, Int(rect.width)), height: max(180, Int(rect.height))))
    scene = PreviewScene(size: window.size, density: window.textDensity)
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
      switch scene.handle(event) {
      case .pressed(let name):
        let isControl = scene.content.controls.contains { $0.name == name }
        input.append(isControl ? .control(name, .pressed) : .key(name))
        continue
      case .held(let name, let isHeld):
        input.append(.control(name, isHeld ? .held : .released))
        continue
      case .changed(let name, let value):
        input.append(.control(name, .changed(value)))
        continue
      case .selected(let name, let index):
        input.append(.control(name, .selected(index)))
        continue
      case .handled: continue
      case .none: break
      }
      switch event {
      case .key(let name): input.append(.key(name))
      case .pressed(.left, let point): input.append(.pressed(point))
      case .wheel(let steps, _): input.append(.wheel(steps))
      case .closed: return nil
      case .exposed: mustDraw = true
      case .resized:
        (scene.size, scene.density) = (window.size, window.textDensity)
        mustDraw = true
      case .moved: scene.bar.show()
      case .pointerLeft: scene.bar.pointerLeft()
      case .pressed, .released, .doubleClicked, .dropped, .keyUp: break
      }
    }
    return input
  }

  /// The widgets of the last call of ``present(_:_:)``.
  var widgets: Widget { scene.widgets }

  /// The number of times the window was drawn and shown.
  var presentCount: Int { window.presentCount }

  /// Performs a step of a script, as if the user did it; ``takeInput()`` then handles it.
  ///
  /// - Returns: False if the window does not have the control that the step names.
  package func perform(_ step: ViewStep) -> Bool {
    guard let events = scene.events(of: step) else { return false }
    waiting += events
    return true
  }

  /// Adds an event, as if the window system had reported it.
  func post(_ event: WindowEvent) { waiting.append(event) }

  /// Sets the size of the window in pixels.
  public func resize(width: Int, height: Int) {
    window.resize(to: VideoSize(width: width, height: height))
    (scene.size, scene.density) = (window.size, window.textDensity)
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
    (scene.bar.buttons, scene.bar.controls) = (content.buttons, content.controls)
    scene.bar.update(at: clock.now)
    window.present(scene, instead: &shown, if: &mustDraw, \.drawing)
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
struct PreviewScene: WindowScene, Hashable {
  /// The size of the window.
  var size: VideoSize
  /// The number of pixels per unit of length of a usual screen, by which texts are larger.
  var density: Int
  /// The size of the last image that the window received, or nil before the first image.
  var image: VideoSize?
  var content = PreviewWindowContent()
  var bar = ButtonBar()

  private var font: InstalledFont { .standard }
  private var scale: Int { 2 * density }
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
    list += content.overlays.flatMap(drawing) + (content.gauge.map(drawing) ?? [])
    return list + panel + widgets.drawing(bar.focus)
  }

  private var whole: PixelRect { PixelRect(x: 0, y: 0, width: size.width, height: size.height) }

  /// The widgets over the image.
  var widgets: Widget {
    let help = Widget.help(content.keyHelp, over: whole, density: density)
    return Widget(
      kind: .window, name: "window", area: whole,
      children: help.map { [$0] } ?? bar.widgets(over: barArea, textScale: scale))
  }

  /// The area over whose lower edge the buttons are shown.
  private var barArea: PixelRect {
    PixelRect(x: 0, y: 0, width: size.width, height: max(0, panelTop))
  }

  /// Handles an event for the buttons, which the table of keys covers.
  mutating func handle(_ event: WindowEvent) -> WidgetFocus.Effect {
    guard content.keyHelp.isEmpty else { return .none }
    return bar.handle(event, over: barArea, textScale: scale)
  }

  /// Draws the outline of an object, and its text below it.
  private func drawing(_ overlay: ViewOverlay) -> [DrawingCommand] {
    let lines = DrawingCommand.lines(through: overlay.points, isClosed: overlay.isClosed)
    let list = DrawingCommand.outlined(lines, clip: whole)
    guard let lowest = overlay.points.max(by: { $0.y < $1.y }), !overlay.label.isEmpty,
      let left = overlay.points.map(\.x).min()
    else { return list }
    let height = TextMask.capHeight + 12
    let x = min(max(0, Int(left)), max(0, size.width - 80))
    let y = min(max(0, Int(lowest.y) + 6), max(0, panelTop - height))
    return list
      + DrawingCommand.label(overlay.label, x: x, y: y, scale, within: size.width - x)
  }

  /// Draws a ring, with a disc in it when it is full, and its text to the left.
  private func drawing(_ gauge: ViewGauge) -> [DrawingCommand] {
    let (radius, margin, count) = (14.0, 12.0, 36)
    let center = Point(x: Double(size.width) - radius - 2 * margin, y: radius + 2 * margin)
    func point(_ step: Int) -> Point {
      let angle = 2 * Double.pi * Double(step) / Double(count)
      return Point(x: center.x + radius * sin(angle), y: center.y - radius * cos(angle))
    }
    let filled = Int((min(max(0, gauge.part), 1) * Double(count)).rounded(.down))
    let points = (0...count).map(point)
    let lines = DrawingCommand.lines(through: points, isClosed: false)
    let text = InstalledFont.standard.width(of: gauge.label, scale: scale) + 12
    let left = max(0, Int(center.x - radius - margin) - text)
    let edge = Int(radius + margin)
    var list: [DrawingCommand] = [
      .fill(
        PixelRect(
          x: Int(center.x) - edge, y: Int(center.y) - edge, width: 2 * edge, height: 2 * edge),
        .shade)
    ]
    list += DrawingCommand.outlined(Array(lines), clip: whole, .normalSpeed)
    list += DrawingCommand.outlined(Array(lines.prefix(filled)), clip: whole, .text)
    if gauge.part >= 1 {
      for row in -8...8 {
        let half = Int((64 - Double(row * row)).squareRoot())
        list.append(
          .fill(
            PixelRect(
              x: Int(center.x) - half, y: Int(center.y) + row, width: 2 * half + 1, height: 1),
            .text))
      }
    }
    return list
      + DrawingCommand.label(
        gauge.label, x: left, y: Int(center.y) - TextMask.capHeight - 6, scale,
        within: size.width - left)
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

  /// The upper edge of the audio meters and the status text.
  private var panelTop: Int {
    size.height - TextMask.capHeight * scale - 2 * Self.border
      - content.meters.count * (Self.meterHeight + 2)
  }

  /// Draws the status text and the audio meters, from the window's lower edge upward, and the
  /// histogram at its upper edge.
  private var panel: [DrawingCommand] {
    var list: [DrawingCommand] = []
    let inner = max(0, size.width - 2 * Self.border)
    let textTop = size.height - TextMask.capHeight * scale - Self.border
    let top = panelTop
    list.append(
      .fill(PixelRect(x: 0, y: top, width: size.width, height: size.height - top), .shade))
    for (channel, meter) in content.meters.enumerated() {
      list += bar(meter, y: top + 2 + channel * (Self.meterHeight + 2), width: inner)
    }
    list.append(
      .text(
        font.fitting(content.status, width: inner, scale: scale), x: Self.border,
        y: textTop, scale: scale, .text))
    if let histogram = content.histogram {
      // The buttons are at the lower edge.
      list += bars(histogram, y: Self.border, width: inner)
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
