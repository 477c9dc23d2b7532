// SPDX-License-Identifier: Apache-2.0

/// A control that a window shows over its image, such as a slider.
///
/// The pointer, a finger and the keyboard operate it. The tab key moves the focus from control to
/// control, and return presses the focused one. The left and right keys move a focused slider, and the
/// up and down keys move in a list.
public struct ViewControl: Hashable, Sendable {
  /// A kind of control, with its state.
  public enum Kind: Hashable, Sendable {
    case button
    /// A button that acts while it is held.
    case hold
    case toggle(isOn: Bool)
    /// A value from 0 to 1.
    case slider(value: Double)
    /// A choice among texts; no text is selected if the index is nil.
    case list([String], selected: Int?)
  }

  /// An action of the user.
  public enum Event: Hashable, Sendable {
    /// A button or a toggle was pressed.
    case pressed
    /// A button of the kind ``Kind/hold`` is held from now on.
    case held
    /// The button is no longer held.
    case released
    /// A slider was moved to a value from 0 to 1.
    case changed(Double)
    /// The text at an index of a list was chosen.
    case selected(Int)
  }

  /// The name by which events refer to the control.
  public let name: String
  /// The text on the control, or next to it.
  public var text: String
  /// The kind of the control, with the state that is shown.
  public var kind: Kind

  /// Creates a control.
  public init(_ name: String, _ text: String, _ kind: Kind = .button) {
    (self.name, self.text, self.kind) = (name, text, kind)
  }
}
