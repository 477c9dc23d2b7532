// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankPreview
import OvercrankRaster

/// A bar of buttons that appears when the pointer moves, and hides after a while.
struct ButtonBar: Hashable, Sendable {
  var buttons: [ViewButton] = []
  /// Controls that are always visible, and which take the place of the buttons.
  var controls: [ViewControl] = []
  private(set) var focus = WidgetFocus()
  private(set) var isVisible = false
  private var hasPointerMoved = false
  /// The time of the last movement of the pointer; nil if it was long ago, or the pointer has left.
  private var pointerTime: MediaTime?

  /// The time for which the bar stays visible after a movement of the pointer, in seconds.
  private static let duration: Rational = 3

  /// Whether the bar hides after some time without input.
  var isHiding: Bool { hasPointerMoved || pointerTime != nil }

  /// The bar and the hint of a button, over the lower edge of an area; none while the bar is hidden.
  func widgets(over area: PixelRect, textScale: Int) -> [Widget] {
    guard controls.isEmpty else {
      return Widget.controls(
        controls, over: area, textScale: textScale, offsets: focus.offsets)
    }
    guard isVisible, let bar = Widget.bar(buttons, over: area, textScale: textScale) else {
      return []
    }
    return [bar] + [bar.hintLabel(of: focus.hinted, within: area)].compactMap { $0 }
  }

  /// Handles an event of the window.
  mutating func handle(
    _ event: WindowEvent, over area: PixelRect, textScale: Int
  ) -> WidgetFocus.Effect {
    // The keyboard reaches buttons that are not visible yet.
    if [.key("tab"), .key("shift+tab")].contains(event) { isVisible = true }
    let shown = widgets(over: area, textScale: textScale).filter { $0.name != "hint" }
    guard !shown.isEmpty else {
      focus = WidgetFocus()
      return .none
    }
    let nowhere = PixelRect(x: 0, y: 0, width: 0, height: 0)
    return focus.handle(event, in: Widget(kind: .window, name: "", area: nowhere, children: shown))
  }

  /// Shows the bar because the pointer has moved.
  mutating func show() { (hasPointerMoved, isVisible) = (true, true) }

  /// Hides the bar with the next update, unless it is in use.
  mutating func pointerLeft() { (hasPointerMoved, pointerTime) = (false, nil) }

  /// Hides the bar if the pointer has rested for long, and the bar is not in use.
  mutating func update(at time: MediaTime) {
    if hasPointerMoved { (hasPointerMoved, pointerTime) = (false, time) }
    if let moved = pointerTime, time - moved >= Self.duration { pointerTime = nil }
    isVisible = pointerTime != nil || focus.isActive
  }
}
