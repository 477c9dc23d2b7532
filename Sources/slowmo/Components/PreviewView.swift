// SPDX-License-Identifier: Apache-2.0

package import Overcrank

/// Opens windows that show a camera.
package protocol PreviewWindowProvider: Sendable {
  /// Fails if there is no screen to open a window on.
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
  /// The width of the view in its pixels.
  var width: Int { get }
  /// The height of the area for the image, in pixels of the view.
  var height: Int { get }
  /// Whether the view takes a new image now.
  var isReady: Bool { get }

  /// Takes the input since the last call; nil if the view was closed.
  func takeInput() -> [PreviewInput]?

  /// Shows an image with its marks.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  func present(_ content: PreviewContent) throws(MediaError)

  /// Returns the view as a PNG file, or nil if it has no pixels.
  func pngData() throws(MediaError) -> [UInt8]?
}

/// Input of a view.
package enum PreviewInput: Hashable, Sendable {
  /// A key by its name.
  case key(String)
  /// A click at a point of the view.
  case tap(PreviewPoint)
}

/// The content of a view.
package struct PreviewContent {
  /// The image in BGRA; nil before the first frame.
  package var image: PixelBuffer?
  /// Whether the image is another one than in the call before.
  package var isNewImage = false
  /// The rectangle of the whole image in the view.
  package var imageRect = PreviewRect(x: 0, y: 0, width: 0, height: 0)
  /// The line of text.
  package var status = ""
  /// The histogram; nil if it is not shown.
  package var histogram: LumaHistogram?
  /// The meter of each audio channel.
  package var meters: [LevelMeterDisplay] = []
  /// The point that was tapped last, in the view; nil if it is not shown any more.
  package var focusPoint: PreviewPoint?
  /// Whether the image is dark because a photo is being taken.
  package var isBlinking = false
}
