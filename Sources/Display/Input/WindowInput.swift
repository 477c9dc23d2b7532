// SPDX-License-Identifier: Apache-2.0

/// Input of a window that its owner decides about.
public enum WindowInput: Hashable, Sendable {
  /// A key, by the character that it types, or by its name: `space`, `backspace`, `left`, `right`,
  /// `up`, `down`, `home`, `end` or `escape`. Keys that are held with it come first, as in `alt+left`
  /// and `ctrl+s`.
  case key(String)
  /// The window was closed by its user.
  case closed
}
