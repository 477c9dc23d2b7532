// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankLibAV
public import OvercrankMediaCore

/// The overlays that a preview's window shows over the camera's image.
public struct PreviewWindowContent: Hashable, Sendable {
  /// The rectangle of the whole image in the window; see `PreviewGeometry.imageRect`.
  public var imageRect = PreviewRect(x: 0, y: 0, width: 0, height: 0)
  /// A line of ASCII text at the lower edge; empty for no text.
  public var status = ""
  /// The histogram to show, or nil for no histogram.
  public var histogram: LumaHistogram?
  /// The meter of each audio channel.
  public var meters: [LevelMeterDisplay] = []
  /// The center, in the window, of a square that marks a point of interest; nil for no square.
  public var focusPoint: PreviewPoint?
  /// Whether the image is hidden for a moment, to show that a photo is being taken.
  public var isBlinking = false

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
    case pressed(PreviewPoint)
  }

  private let window: SDLWindow
  private var scene: PreviewScene
  private var shown: [DrawingCommand] = []
  private var mustDraw = true
  private var waiting: [WindowEvent] = []

  /// The largest size of a new window, in pixels.
  private static let largest = PixelSize(width: 1_280, height: 720)

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
      size: PixelSize(width: max(320, Int(rect.width)), height: max(180, Int(rect.height))))
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
      case .pressed(.left, let point): input.append(.pressed(PreviewPoint(x: point.x, y: point.y)))
      case .closed: return nil
      case .exposed: mustDraw = true
      case .resized:
        scene.size = window.size
        mustDraw = true
      case .pressed, .moved, .released, .wheel: break
      }
    }
    return input
  }

  /// Adds an event, as if the window system had reported it.
  func post(_ event: WindowEvent) { waiting.append(event) }

  /// Sets the size of the window in pixels.
  public func resize(width: Int, height: Int) {
    window.resize(to: PixelSize(width: width, height: height))
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
      scene.image = PixelSize(width: image.width, height: image.height)
      mustDraw = true
    }
    scene.content = content
    let drawing = scene.drawing
    guard mustDraw || drawing != shown else { return }
    window.draw(drawing)
    window.present()
    shown = drawing
    mustDraw = false
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
    let image = try pixels()
    do throws(CallFailure) { return try image.pngBytes() } catch {
      throw .noDisplay("its pixels cannot be written as PNG: \(error)")
    }
  }
}
