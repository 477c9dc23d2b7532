// SPDX-License-Identifier: Apache-2.0

/// An event of a window, in types that do not depend on SDL.
enum WindowEvent: Hashable, Sendable {
  /// A mouse button.
  enum Button: Hashable, Sendable { case left, middle, right }

  /// A key by its name, such as `space`, `left`, `alt+left` or `.`.
  case key(String)
  case pressed(Button, ViewPoint)
  case moved(ViewPoint)
  case released(Button)
  /// The number of wheel steps, positive if the wheel turns away from the user.
  case wheel(Double, ViewPoint)
  case resized(PixelSize)
  /// The window system has lost the pixels of the window.
  case exposed
  case closed
}
