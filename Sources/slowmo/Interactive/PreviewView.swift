// SPDX-License-Identifier: Apache-2.0

package import Overcrank

/// Opens windows that show a camera.
package protocol PreviewWindowProvider: Sendable {
  /// Throws if there is no screen to open a window on.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  func checkDisplay() throws(MediaError)

  /// Opens a window for images of a size.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  func open(title: String, width: Int, height: Int) throws(MediaError) -> any PreviewView
}

/// A view of a camera: a window, or a terminal.
///
/// Only the main thread may use it.
package protocol PreviewView: AnyObject {
  /// The width of the view in its own pixels.
  var width: Int { get }
  /// The height of the area for the image, in pixels of the view.
  var height: Int { get }
  /// Whether the view can show a new image now.
  var isReady: Bool { get }

  /// Returns the input since the last call; nil if the view was closed.
  func takeInput() -> [PreviewInput]?

  /// Performs a step of a script, whose effect ``takeInput()`` then returns.
  ///
  /// - Returns: False if the view does not have the control that the step names.
  func perform(_ step: ViewStep) -> Bool

  /// Shows an image with its overlays, such as the histogram.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  func present(_ content: PreviewContent) throws(MediaError)

  /// Returns the contents of the view as a PNG file, or nil if the view has no pixels.
  func pngData() throws(MediaError) -> [UInt8]?
}

/// An input event of a view.
package enum PreviewInput: Hashable, Sendable {
  /// A key by its name.
  case key(String)
  /// A click or tap at a point of the view.
  case tap(Point)
  /// A number of steps of the wheel, positive if it turns away from the user.
  case wheel(Double)
}

/// The content of a view.
package struct PreviewContent {
  /// The image in BGRA; nil before the first frame.
  package var image: PixelBuffer?
  /// Whether the image differs from that of the previous call.
  package var isNewImage = false
  /// The rectangle of the view in which the whole image is shown.
  package var imageRect = Rect(x: 0, y: 0, width: 0, height: 0)
  /// The status line.
  package var status = ""
  /// The histogram; nil if it is not shown.
  package var histogram: LumaHistogram?
  /// The meter of each audio channel.
  package var meters: [LevelMeterDisplay] = []
  /// The last tapped point in view coordinates; nil if it is no longer shown.
  package var focusPoint: Point?
  /// The keys to show over the image; empty while the help is not shown.
  package var keyHelp: [KeyDescription] = []
  /// The buttons, which appear when the pointer moves; each acts as a key.
  package var buttons: [ViewButton] = []
  /// The outlines of objects in the image, in view coordinates.
  package var overlays: [ViewOverlay] = []
  /// The fill of the memory before a trigger; nil if it is not shown.
  package var gauge: ViewGauge?
  /// Whether the image is dimmed because a photo is being taken.
  package var isBlinking = false
}
