// SPDX-License-Identifier: Apache-2.0

package import Overcrank

/// Opens windows that show players.
package protocol PlaybackWindowProvider: Sendable {
  /// Fails if there is no screen to open a window on.
  ///
  /// - Throws: `MediaError` with `.noDisplay`.
  func checkDisplay() throws(MediaError)

  /// Opens a window.
  ///
  /// - Parameters:
  ///   - players: The players, from left to right; the first one receives commands.
  ///   - clipNames: The name of each clip.
  /// - Returns: The window.
  /// - Throws: `MediaError` with `.noDisplay`, `.outOfMemory`.
  func open(
    _ players: [Player], clipNames: [String]
  ) throws(MediaError) -> any PlaybackWindow
}

/// A window of `play`.
///
/// Only the main thread may use it.
package protocol PlaybackWindow: AnyObject {
  /// The position that times are measured from; nil for none.
  var mark: PlayerTime? { get set }
  /// The composition times of all marks.
  var marks: [Rational] { get set }
  /// A text that is shown over the image; empty for none.
  var message: String { get set }
  /// True if the last refresh showed the frames of its time.
  var isCurrent: Bool { get }

  /// Takes the names of the keys that were pressed; nil if the window was closed.
  func takeKeys() -> [String]?

  /// Shows the frames of a refresh.
  ///
  /// `rate` is the rate for the text.
  func present(at time: MediaTime, rate: Rational?) throws(MediaError)

  /// Multiplies the zoom.
  func zoom(by factor: Double)

  /// Moves the image by a part of its pane.
  func pan(x: Double, y: Double)

  /// Shows the image whole again.
  func resetZoom()

  /// Changes between the whole screen and a window.
  func toggleFullScreen()

  /// Returns the window as a PNG file.
  func pngData() throws(MediaError) -> [UInt8]
}
