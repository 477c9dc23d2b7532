// SPDX-License-Identifier: Apache-2.0

/// Input that a window does not handle itself but reports to the program.
public enum WindowInput: Hashable, Sendable {
  /// A key, by the character that it types, or by its name: `space`, `backspace`, `left`, `right`,
  /// `up`, `down`, `home`, `end` or `escape`. Modifier keys come first, as in `alt+left` and
  /// `ctrl+s`.
  case key(String)
  /// The user closed the window.
  case closed
}
