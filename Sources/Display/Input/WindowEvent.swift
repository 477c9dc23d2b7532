// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// An event of a window, in types that do not depend on SDL.
enum WindowEvent: Hashable, Sendable {
  /// A mouse button.
  enum Button: Hashable, Sendable { case left, middle, right }

  /// A key by its name, such as `space`, `left`, `alt+left` or `.`.
  case key(String)
  case pressed(Button, Point)
  case moved(Point)
  case released(Button)
  /// The second of two quick presses of the left button has ended; its release comes first.
  case doubleClicked(Point)
  case pointerLeft
  /// The user dropped the file of this path on the window.
  case dropped(String)
  /// The number of wheel steps, positive if the wheel turns away from the user.
  case wheel(Double, Point)
  case resized(VideoSize)
  /// The window system has lost the pixels of the window.
  case exposed
  case closed
}

/// Input that a window does not handle itself but reports to the program.
public enum WindowInput: Hashable, Sendable {
  /// A key, by the character that it types, or by its name: `space`, `backspace`, `left`, `right`,
  /// `up`, `down`, `home`, `end`, `tab`, `return`, `f1` or `escape`. Modifier keys come first, as in
  /// `alt+left` and `ctrl+s`.
  case key(String)
  /// The user dropped the file of this path on the window.
  case dropped(String)
  /// The user closed the window.
  case closed
}
