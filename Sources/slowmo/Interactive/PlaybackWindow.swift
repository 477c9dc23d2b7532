// SPDX-License-Identifier: Apache-2.0

package import Overcrank

/// Opens windows that show players.
package protocol PlaybackWindowProvider: Sendable {
  /// Throws if there is no screen to open a window on.
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

  /// Opens a window on which the user drops a file.
  ///
  /// - Parameters:
  ///   - lines: The table that the window shows.
  ///   - isOver: Returns true when the window should close.
  /// - Returns: The path of the file; nil if the window was closed.
  /// - Throws: `MediaError` with `.noDisplay`.
  func chooseFile(
    _ lines: [KeyDescription], until isOver: () -> Bool
  ) throws(MediaError) -> String?
}

/// A window of `play`.
///
/// Only the main thread may use it.
package protocol PlaybackWindow: AnyObject {
  /// The position from which times are measured; nil for none.
  var mark: PlayerTime? { get set }
  /// The composition times of all marks.
  var marks: [Rational] { get set }
  /// The start of the range in composition time; nil for no range.
  var rangeStart: Rational? { get set }
  /// The end of the range in composition time; nil for none.
  var rangeEnd: Rational? { get set }
  /// The buttons, each of which acts as a key.
  var buttons: [ViewButton] { get set }
  /// The keys that the help shows.
  var keyHelp: [KeyDescription] { get set }
  /// Whether the help is shown.
  var showsHelp: Bool { get set }
  /// Whether the pointer draws shapes on the first image.
  var isMeasuring: Bool { get set }
  /// The shapes that the first image shows.
  var shapes: [ViewShape] { get set }
  /// The shape that the pointer is drawing; nil for none.
  var draftShape: ViewShape? { get }
  /// The key that a click on the image presses; nil for none.
  var clickKey: String? { get set }
  /// The key that a double click on the image presses; nil for none.
  var doubleClickKey: String? { get set }
  /// A text to show instead of the position; empty for none.
  var message: String { get set }
  /// True if the last refresh showed the frames that were due.
  var isCurrent: Bool { get }
  /// Whether the window stays as it is until the next input, key or change.
  var isIdle: Bool { get }

  /// Returns the shapes that the pointer has drawn since the last call.
  func takeShapes() -> [ViewShape]

  /// Shows the buttons for a while, as if the pointer had moved.
  func showButtons()

  /// Returns the names of the keys pressed since the last call; nil if the window was closed.
  func takeKeys() -> [String]?

  /// Returns the path of a file that the user dropped since the last call; nil for none.
  func takeDroppedFile() -> String?

  /// Performs a step of a script, whose effect ``takeKeys()`` then returns.
  ///
  /// - Returns: False if the window does not have the control that the step names.
  func perform(_ step: ViewStep) -> Bool

  /// Waits until input arrives, but not longer than a number of milliseconds.
  func waitForInput(milliseconds: Int)

  /// Shows the frames that are due at a refresh.
  ///
  /// `rate` is the playback rate to show in the text; nil for none.
  func present(at time: MediaTime, rate: Rational?) throws(MediaError)

  /// Multiplies the zoom factor of the image by `factor`.
  func zoom(by factor: Double)

  /// Moves the image by fractions of the width and height of its pane.
  func pan(x: Double, y: Double)

  /// Shows the whole image again.
  func resetZoom()

  /// Switches between full screen and window.
  func toggleFullScreen()

  /// Returns the contents of the window as a PNG file.
  func pngData() throws(MediaError) -> [UInt8]
}
