// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankPreview
import OvercrankRaster

/// A part of a window that is read, pressed or focused.
///
/// The widgets of a window form a tree, which says where each of them is. A test finds a control in the
/// tree by its name, and presses it at its area.
struct Widget: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    /// The whole window, without pixels of its own.
    case window
    /// A shaded area with other widgets on it.
    case group
    case label
    case button
    /// A button that switches something on or off.
    case toggle(isOn: Bool)
    /// A position on a line, from 0 to 1, which the pointer moves.
    case slider(value: Double)
  }

  let kind: Kind
  /// The name by which the window knows the widget; for a button, the name of its key.
  let name: String
  var text = ""
  var hint = ""
  var area: PixelRect
  /// The number of screen pixels per dot of a character.
  var textScale = 1
  var children: [Widget] = []

  /// Whether the widget can be pressed and focused.
  var isButton: Bool {
    switch kind {
    case .button, .toggle: true
    case .window, .group, .label, .slider: false
    }
  }

  /// The buttons of the tree, in the order in which the keyboard focuses them.
  var buttons: [Widget] { isButton ? [self] : children.flatMap(\.buttons) }

  /// Returns the widget of a name in the tree, or nil if there is none.
  func find(_ name: String) -> Widget? {
    if self.name == name { return self }
    for child in children { if let found = child.find(name) { return found } }
    return nil
  }

  /// Returns the widget at a point: the innermost one, and of overlapping ones the last.
  func widget(at point: Point) -> Widget? {
    for child in children.reversed() {
      if let found = child.widget(at: point) { return found }
    }
    return area.contains(point) ? self : nil
  }
}

extension Widget {
  /// The commands that draw the tree, from back to front.
  ///
  /// State shows in shape or brightness, and never in color alone.
  func drawing(_ focus: WidgetFocus) -> [DrawingCommand] {
    switch kind {
    case .window: children.flatMap { $0.drawing(focus) }
    case .group: [.fill(area, .overlay)] + children.flatMap { $0.drawing(focus) }
    case .label: textDrawing(.text)
    case .slider: []
    case .button: buttonDrawing(focus, isOn: false)
    case .toggle(let isOn): buttonDrawing(focus, isOn: isOn)
    }
  }

  private func buttonDrawing(_ focus: WidgetFocus, isOn: Bool) -> [DrawingCommand] {
    let isLit = isOn || focus.held == name
    var list: [DrawingCommand] = []
    if focus.focused == name {
      list.append(
        .fill(
          PixelRect(x: area.x - 3, y: area.y - 3, width: area.width + 6, height: area.height + 6),
          .loop))
    }
    list.append(.fill(area, isLit ? .text : .dimText))
    let inner = PixelRect(
      x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2)
    list.append(.fill(inner, isLit ? .text : focus.hovered == name ? .normalSpeed : .panel))
    return list + textDrawing(isLit ? .panel : .text)
  }

  /// Draws the text in the middle of the height, after the padding of ``size(of:scale:)``.
  private func textDrawing(_ color: Color) -> [DrawingCommand] {
    let height = TextMask.capHeight * textScale
    return [
      .text(
        text, x: area.x + Self.padding, y: area.y + (area.height - height) / 2, scale: textScale,
        color)
    ]
  }

  /// The space between the text and the edge of a widget.
  static let padding = 7

  /// The size of a widget with a text.
  static func size(of text: String, scale: Int) -> VideoSize {
    VideoSize(
      width: InstalledFont.standard.width(of: text, scale: scale) + 2 * padding,
      height: TextMask.capHeight * scale + 2 * padding)
  }
}

extension Widget {
  /// A bar of buttons over the lower edge of an area, in as many rows as it needs.
  ///
  /// - Returns: The bar; nil if it would cover more than half of the area.
  static func bar(_ buttons: [ViewButton], over area: PixelRect, textScale: Int) -> Widget? {
    let gap = 4
    let inner = area.width - 4 * gap
    var rows: [[Widget]] = []
    var x = inner
    for button in buttons {
      let size = size(of: button.text, scale: textScale)
      if x + size.width > inner {
        rows.append([])
        x = 0
      }
      rows[rows.count - 1].append(
        Widget(
          kind: button.isOn.map { .toggle(isOn: $0) } ?? .button, name: button.key,
          text: button.text, hint: button.hint,
          area: PixelRect(x: x, y: 0, width: size.width, height: size.height),
          textScale: textScale))
      x += size.width + gap
    }
    let rowHeight = size(of: "", scale: textScale).height + gap
    let width = (rows.compactMap { $0.last?.area.right }.max() ?? 0) + 2 * gap
    let height = rows.count * rowHeight + gap
    if (rows.count > 2 || width > area.width), textScale > 1 {
      return bar(buttons, over: area, textScale: textScale - 1)
    }
    guard !rows.isEmpty, width <= area.width, height <= area.height / 2 else { return nil }
    let left = area.x + (area.width - width) / 2
    let top = area.bottom - height - 2 * gap
    for (index, row) in rows.enumerated() {
      for column in row.indices {
        rows[index][column].area.x += left + gap
        rows[index][column].area.y = top + gap + index * rowHeight
      }
    }
    return Widget(
      kind: .group, name: "bar", area: PixelRect(x: left, y: top, width: width, height: height),
      textScale: textScale, children: rows.flatMap(\.self))
  }

  /// The hint of a button of the bar, above the bar and within an area; nil without a hint.
  func hintLabel(of name: String?, within area: PixelRect) -> Widget? {
    guard let button = name.flatMap(find), !button.hint.isEmpty else { return nil }
    let text = InstalledFont.standard.fitting(
      button.hint, width: area.width - 2 * Self.padding, scale: textScale)
    let size = Self.size(of: text, scale: textScale)
    let left = min(max(area.x, button.area.x), area.right - size.width)
    let place = PixelRect(
      x: left, y: self.area.y - size.height, width: size.width, height: size.height)
    return Widget(
      kind: .group, name: "hint", area: place,
      children: [
        Widget(kind: .label, name: "hint text", text: text, area: place, textScale: textScale)
      ])
  }

  /// A table of keys in the middle of an area, in the largest text and the fewest columns that fit.
  static func help(_ lines: [KeyDescription], over area: PixelRect) -> Widget? {
    guard !lines.isEmpty else { return nil }
    for (scale, columns) in [(2, 1), (2, 2), (1, 1), (1, 2)] {
      let table = help(lines, over: area, textScale: scale, columnCount: columns)
      if table.area.width <= area.width, table.area.height <= area.height { return table }
    }
    return help(lines, over: area, textScale: 1, columnCount: 3)
  }

  private static func help(
    _ lines: [KeyDescription], over area: PixelRect, textScale: Int, columnCount: Int
  ) -> Widget {
    let gap = 8
    let rowHeight = TextMask.capHeight * textScale + 3 + 4 * textScale
    let rowCount = (lines.count + columnCount - 1) / columnCount
    var children: [Widget] = []
    var x = gap
    for start in stride(from: 0, to: lines.count, by: max(1, rowCount)) {
      let column = lines[start..<min(lines.count, start + rowCount)]
      func width(_ texts: [String]) -> Int {
        texts.map { size(of: $0, scale: textScale).width }.max() ?? 0
      }
      let (keys, texts) = (width(column.map(\.keys)), width(column.map(\.text)))
      for (row, line) in column.enumerated() {
        for (left, width, text, name) in [
          (x, keys, line.keys, "keys"), (x + keys, texts, line.text, line.keys),
        ] {
          children.append(
            Widget(
              kind: .label, name: name, text: text,
              area: PixelRect(x: left, y: gap + row * rowHeight, width: width, height: rowHeight),
              textScale: textScale))
        }
      }
      x += keys + texts + gap
    }
    let (width, height) = (x, rowCount * rowHeight + 2 * gap)
    let left = area.x + (area.width - width) / 2
    let top = area.y + (area.height - height) / 2
    for index in children.indices {
      children[index].area.x += left
      children[index].area.y += top
    }
    return Widget(
      kind: .group, name: "help", area: PixelRect(x: left, y: top, width: width, height: height),
      textScale: textScale, children: children)
  }
}

/// The pointer and the keyboard focus in a tree of widgets.
struct WidgetFocus: Hashable, Sendable {
  /// The effect of an event on the widgets.
  enum Effect: Hashable, Sendable {
    /// The event is not for the widgets.
    case none
    /// The event is for the widgets, and presses none.
    case handled
    /// The button of this name was pressed.
    case pressed(String)
  }

  /// The name of the button under the pointer; nil for none.
  private(set) var hovered: String?
  /// The name of the button that the pointer holds down; nil for none.
  private(set) var held: String?
  /// The name of the button that the keyboard focuses; nil for none.
  private(set) var focused: String?
  /// Whether the pointer is on a widget.
  private(set) var isInside = false

  /// Whether the widgets are in use, so that they should stay visible.
  var isActive: Bool { isInside || held != nil || focused != nil }

  /// The name of the button whose hint is shown; nil for none.
  var hinted: String? { hovered ?? focused }

  /// Handles an event of the window.
  ///
  /// Tab and shift-tab move the focus, return presses the focused button, and escape ends the focus.
  mutating func handle(_ event: WindowEvent, in tree: Widget) -> Effect {
    switch event {
    case .moved(let point):
      aim(at: tree.widget(at: point))
      return held == nil ? .none : .handled
    case .pointerLeft:
      aim(at: nil)
      return .none
    case .pressed(let button, let point):
      let widget = tree.widget(at: point)
      aim(at: widget)
      focused = nil
      guard widget != nil else { return .none }
      held = button == .left ? hovered : nil
      return .handled
    case .released(.left):
      guard let button = held else { return .none }
      held = nil
      return hovered == button ? .pressed(button) : .handled
    case .key("tab"): return moveFocus(by: 1, tree.buttons)
    case .key("shift+tab"): return moveFocus(by: -1, tree.buttons)
    case .key("return"):
      guard let focused, tree.find(focused) != nil else { return .none }
      return .pressed(focused)
    case .key("escape") where focused != nil:
      focused = nil
      return .handled
    default: return .none
    }
  }

  private mutating func aim(at widget: Widget?) {
    isInside = widget != nil
    hovered = widget.flatMap { $0.isButton ? $0.name : nil }
  }

  private mutating func moveFocus(by step: Int, _ buttons: [Widget]) -> Effect {
    guard !buttons.isEmpty else { return .none }
    let index = buttons.firstIndex { $0.name == focused } ?? (step > 0 ? -1 : buttons.count)
    focused = buttons[(index + step + buttons.count) % buttons.count].name
    return .handled
  }
}
