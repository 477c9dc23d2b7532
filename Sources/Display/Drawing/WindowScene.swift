// SPDX-License-Identifier: Apache-2.0

import OvercrankPreview

/// The content of a window with a bar of buttons, as a value.
protocol WindowScene {
  var bar: ButtonBar { get set }
  /// The widgets of the window.
  var widgets: Widget { get }
}

extension WindowScene {
  /// Returns the events of a step of a script, after the buttons that it may need were shown.
  ///
  /// - Returns: The events, or nil if the window does not have the control that the step names.
  mutating func events(of step: ViewStep) -> [WindowEvent]? {
    if step.needsControls { bar.show() }
    return step.events(in: widgets)
  }
}
