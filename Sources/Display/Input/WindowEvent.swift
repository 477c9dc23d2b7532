// SPDX-License-Identifier: Apache-2.0

import OvercrankPreview
import OvercrankRaster

/// An event of a window, in types that do not depend on SDL.
enum WindowEvent: Hashable, Sendable {
  /// A mouse button.
  enum Button: Hashable, Sendable { case left, middle, right }

  /// A key by its name, such as `space`, `left`, `alt+left` or `.`.
  case key(String)
  /// A key that was held is released.
  case keyUp(String)
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

extension ViewStep {
  /// Whether the step aims at a control, which must be visible.
  var needsControls: Bool {
    switch self {
    case .click(let target), .move(let target), .hold(let target), .wheel(_, let target):
      target.isControl
    case .drag(let start, let end, _): start.isControl || end.isControl
    case .key, .release, .wait, .frames, .image: false
    }
  }

  /// Returns the events by which a user performs the step.
  ///
  /// - Parameter tree: The widgets of the window.
  /// - Returns: The events; nil if the tree has no such control. A step without the pointer and the
  ///   keyboard has no events.
  func events(in tree: Widget) -> [WindowEvent]? {
    switch self {
    case .key(let name): return [.key(name)]
    case .move(let target): return target.point(in: tree).map { [.moved($0)] }
    case .click(let target):
      return target.point(in: tree).map { [.moved($0), .pressed(.left, $0), .released(.left)] }
    case .hold(let target): return target.point(in: tree).map { [.moved($0), .pressed(.left, $0)] }
    case .release: return [.released(.left), .released(.right)]
    case .drag(let first, let last, let isRight):
      guard let start = first.point(in: tree), let end = last.point(in: tree) else { return nil }
      let button = isRight ? WindowEvent.Button.right : .left
      let middle = Point(x: (start.x + end.x) / 2, y: (start.y + end.y) / 2)
      return [
        .moved(start), .pressed(button, start), .moved(middle), .moved(end), .released(button),
      ]
    case .wheel(let steps, let target): return target.point(in: tree).map { [.wheel(steps, $0)] }
    case .wait, .frames, .image: return []
    }
  }
}

extension ViewStep.Target {
  fileprivate var isControl: Bool { if case .control = self { true } else { false } }

  /// Returns the middle of a control, or the point in a tree of widgets; nil without such a control.
  fileprivate func point(in tree: Widget) -> Point? {
    switch self {
    case .control(let name): (tree.find(name) ?? tree.button(ofText: name))?.area.middle
    case .point(let point):
      Point(
        x: Double(tree.area.x) + point.x * Double(tree.area.width),
        y: Double(tree.area.y) + point.y * Double(tree.area.height))
    }
  }
}
