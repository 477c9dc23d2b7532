// SPDX-License-Identifier: Apache-2.0

/// A button of a view that acts as a key.
package struct ViewButton: Hashable, Sendable {
  /// The name of the key, which also identifies the button.
  package let key: String
  package let text: String
  /// The effect of the button, shown while the pointer or the focus is on it.
  package let hint: String
  /// Whether what the button switches is on; nil for a button that switches nothing.
  package let isOn: Bool?

  package init(_ key: String, _ text: String, _ hint: String, isOn: Bool? = nil) {
    (self.key, self.text, self.hint, self.isOn) = (key, text, hint, isOn)
  }
}
