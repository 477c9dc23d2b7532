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
    /// A button that acts while it is held.
    case hold
    /// A position in time, from 0 to 1, which the window draws itself.
    case timeLine(value: Double)
    /// A value from 0 to 1 on a line, which the pointer moves.
    case slider(value: Double)
    /// A list of this many texts, of which the children are the visible ones, from an index.
    case list(count: Int, first: Int)
    /// The text at an index of a list.
    case item(index: Int, isSelected: Bool)
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
    case .button, .toggle, .hold, .slider, .item: true
    case .window, .group, .label, .timeLine, .list: false
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

  /// Returns the button with a text in the tree, or nil if there is none.
  func button(ofText text: String) -> Widget? {
    buttons.first { $0.text.split(separator: " ").joined(separator: " ") == text }
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
    case .timeLine: []
    case .button, .hold: buttonDrawing(focus, isOn: false)
    case .toggle(let isOn), .item(_, let isOn): buttonDrawing(focus, isOn: isOn)
    case .slider(let value): sliderDrawing(focus, value)
    case .list(let count, let first): listDrawing(focus, count, first)
    }
  }

  /// The part of a slider that the pointer moves in: the right half.
  var track: PixelRect {
    let width = min(Self.trackWidth, area.width)
    return PixelRect(
      x: area.right - width, y: area.y, width: width - Self.padding, height: area.height)
  }

  /// The width of a slider without its text.
  static let trackWidth = 140

  private func sliderDrawing(_ focus: WidgetFocus, _ value: Double) -> [DrawingCommand] {
    let track = track
    let x = track.x + Int((min(max(0, value), 1) * Double(track.width)).rounded())
    let middle = track.y + track.height / 2
    let line = { (left: Int, right: Int, color: Color) in
      DrawingCommand.fill(
        PixelRect(x: left, y: middle - 2, width: right - left, height: 4), color)
    }
    let isLit = focus.held == name || focus.hovered == name
    return buttonDrawing(focus, isOn: false) + [
      line(track.x, x, .text), line(x, track.right, .dimText),
      .fill(
        PixelRect(x: x - 4, y: track.y + 3, width: 8, height: track.height - 6),
        isLit ? .loop : .text),
    ]
  }

  /// Draws a list, with a bar at its right edge if it has more texts than are visible.
  private func listDrawing(
    _ focus: WidgetFocus, _ count: Int, _ first: Int
  ) -> [DrawingCommand] {
    let list = [.fill(area, .overlay)] + children.flatMap { $0.drawing(focus) }
    guard children.count < count else { return list }
    let (top, height) = (area.height * first / count, area.height * children.count / count)
    return list + [
      .fill(PixelRect(x: area.right - 3, y: area.y + top, width: 3, height: height), .text)
    ]
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
    bar(over: area, textScale: textScale) { scale in
      buttons.map { button in
        Widget(
          kind: button.isOn.map { .toggle(isOn: $0) } ?? .button, name: button.key,
          text: button.text, hint: button.hint, scale: scale)
      }
    }
  }

  /// A bar of controls over the lower edge of an area, and the lists above it at the right edge.
  ///
  /// - Parameters:
  ///   - controls: The controls.
  ///   - area: The area.
  ///   - textScale: The greatest scale of the texts.
  ///   - offsets: The index of the first visible text of each list; 0 for others.
  /// - Returns: The widgets; none that would cover more than half of the area.
  static func controls(
    _ controls: [ViewControl], over area: PixelRect, textScale: Int, offsets: [String: Int]
  ) -> [Widget] {
    let bar = bar(over: area, textScale: textScale) { scale in
      controls.compactMap { control in
        let kind: Kind
        switch control.kind {
        case .button: kind = .button
        case .hold: kind = .hold
        case .toggle(let isOn): kind = .toggle(isOn: isOn)
        case .slider(let value): kind = .slider(value: value)
        case .list: return nil
        }
        var widget = Widget(
          kind: kind, name: control.name, text: control.text, scale: scale)
        if case .slider = kind { widget.area.width += trackWidth }
        return widget
      }
    }
    var right = area.right - 8
    let bottom = (bar?.area.y ?? area.bottom) - 8
    var lists: [Widget] = []
    for control in controls.reversed() {
      guard case .list(let texts, let selected) = control.kind else { continue }
      let list = list(
        control.name, [control.text] + texts, selected, right: right, bottom: bottom,
        top: area.y + 8, scale: bar?.textScale ?? textScale, offset: offsets[control.name] ?? 0)
      guard let list, list.area.x >= area.x else { continue }
      lists.insert(list, at: 0)
      right = list.area.x - 8
    }
    return (bar.map { [$0] } ?? []) + lists
  }

  /// A list whose first text is its title.
  ///
  /// - Returns: The list with as many texts as fit; nil without space for one.
  private static func list(
    _ name: String, _ texts: [String], _ selected: Int?, right: Int, bottom: Int, top: Int,
    scale: Int, offset: Int
  ) -> Widget? {
    let (gap, count) = (4, texts.count - 1)
    let width = (texts.map { size(of: $0, scale: scale).width }.max() ?? 0) + 3
    let height = size(of: "", scale: scale).height
    let visible = min(count, (bottom - top - gap) / (height + gap) - 1)
    guard visible > 0 else { return nil }
    let first = min(max(0, offset), count - visible)
    let area = PixelRect(
      x: right - width - 2 * gap, y: bottom - (visible + 1) * (height + gap) - gap,
      width: width + 2 * gap, height: (visible + 1) * (height + gap) + gap)
    func row(_ index: Int) -> PixelRect {
      PixelRect(
        x: area.x + gap, y: area.y + gap + index * (height + gap), width: width, height: height)
    }
    let title = Widget(
      kind: .label, name: "\(name) title", text: texts[0], area: row(0), textScale: scale)
    let items = (0..<visible).map { line in
      let index = first + line
      return Widget(
        kind: .item(index: index, isSelected: index == selected), name: itemName(name, index),
        text: texts[index + 1], area: row(line + 1), textScale: scale)
    }
    return Widget(
      kind: .list(count: count, first: first), name: name, area: area, textScale: scale,
      children: [title] + items)
  }

  /// The name of the text at an index of a list.
  static func itemName(_ list: String, _ index: Int) -> String { "\(list) \(index)" }

  /// A widget of the size of its text.
  private init(
    kind: Kind, name: String, text: String, hint: String = "", scale: Int
  ) {
    let size = Self.size(of: text, scale: scale)
    self.init(
      kind: kind, name: name, text: text, hint: hint,
      area: PixelRect(x: 0, y: 0, width: size.width, height: size.height), textScale: scale)
  }

  /// Arranges widgets in rows over the lower edge of an area.
  ///
  /// - Returns: The bar; nil if it would cover more than half of the area.
  private static func bar(
    over area: PixelRect, textScale: Int, _ items: (_ scale: Int) -> [Widget]
  ) -> Widget? {
    let gap = 4
    let inner = area.width - 4 * gap
    var rows: [[Widget]] = []
    var x = inner
    for item in items(textScale) {
      if x + item.area.width > inner {
        rows.append([])
        x = 0
      }
      var item = item
      item.area.x = x
      rows[rows.count - 1].append(item)
      x += item.area.width + gap
    }
    let rowHeight = size(of: "", scale: textScale).height + gap
    let width = (rows.compactMap { $0.last?.area.right }.max() ?? 0) + 2 * gap
    let height = rows.count * rowHeight + gap
    if (rows.count > 2 || width > area.width), textScale > 1 {
      return bar(over: area, textScale: textScale - 1, items)
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
  static func help(
    _ lines: [KeyDescription], over area: PixelRect, density: Int = 1
  ) -> Widget? {
    guard !lines.isEmpty else { return nil }
    for (scale, columns) in (1...2 * density).reversed().flatMap({ [($0, 1), ($0, 2)] }) {
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
    /// The button of this name is held from now on, or no longer.
    case held(String, Bool)
    /// The slider of this name was moved.
    case changed(String, Double)
    /// The text at an index of the list of this name was chosen.
    case selected(String, Int)
  }

  /// The name of the button under the pointer; nil for none.
  private(set) var hovered: String?
  /// The name of the button that the pointer or the keyboard holds down; nil for none.
  private(set) var held: String?
  /// The name of the button that the keyboard focuses; nil for none.
  private(set) var focused: String?
  /// Whether the pointer is on a widget.
  private(set) var isInside = false
  /// The index of the first visible text of each list that was moved.
  private(set) var offsets: [String: Int] = [:]

  /// Whether the widgets are in use, so that they should stay visible.
  var isActive: Bool { isInside || held != nil || focused != nil }

  /// The name of the button whose hint is shown; nil for none.
  var hinted: String? { hovered ?? focused }

  /// The part of a slider by which a key or a step of the wheel moves it.
  private static let step = 0.05

  /// Handles an event of the window.
  ///
  /// Tab and shift-tab move the focus, return presses the focused button, and escape ends the focus.
  mutating func handle(_ event: WindowEvent, in tree: Widget) -> Effect {
    switch event {
    case .moved(let point):
      aim(at: tree.widget(at: point))
      guard let held else { return .none }
      return tree.find(held)?.change(at: point) ?? .handled
    case .pointerLeft:
      aim(at: nil)
      return .none
    case .pressed(let button, let point):
      let widget = tree.widget(at: point)
      aim(at: widget)
      focused = nil
      guard let widget else { return .none }
      held = button == .left ? hovered : nil
      guard let held else { return .handled }
      if widget.kind == .hold { return .held(held, true) }
      guard let change = widget.change(at: point) else { return .handled }
      // A press of the text of a slider does not move it.
      guard point.x >= Double(widget.track.x) else {
        self.held = nil
        return .handled
      }
      return change
    case .released(.left): return release(in: tree, isOnButton: hovered == held)
    case .wheel(let steps, let point):
      guard let widget = tree.widget(at: point) else { return .none }
      return wheel(steps, over: widget, in: tree)
    case .key(let name): return press(name, in: tree)
    case .keyUp("return"): return release(in: tree, isOnButton: false)
    default: return .none
    }
  }

  private mutating func release(in tree: Widget, isOnButton: Bool) -> Effect {
    guard let name = held else { return .none }
    held = nil
    guard let widget = tree.find(name) else { return .handled }
    switch widget.kind {
    case .hold: return .held(name, false)
    case .slider: return .handled
    default: return isOnButton ? effect(of: widget, in: tree) : .handled
    }
  }

  /// The effect of a press of a button.
  private func effect(of widget: Widget, in tree: Widget) -> Effect {
    if case .item(let index, _) = widget.kind, let list = tree.list(of: widget.name) {
      return .selected(list.name, index)
    }
    return .pressed(widget.name)
  }

  private mutating func press(_ key: String, in tree: Widget) -> Effect {
    switch key {
    case "tab": return moveFocus(by: 1, tree.buttons)
    case "shift+tab": return moveFocus(by: -1, tree.buttons)
    default: break
    }
    guard let widget = focused.flatMap(tree.find) else { return .none }
    switch (key, widget.kind) {
    case ("escape", _):
      focused = nil
      return .handled
    case ("return", .hold):
      // A key that is held is reported again and again.
      guard held == nil else { return .handled }
      held = widget.name
      return .held(widget.name, true)
    case ("return", .slider): return .handled
    case ("return", _): return effect(of: widget, in: tree)
    case ("left", .slider(let value)), ("right", .slider(let value)):
      let moved = value + (key == "left" ? -Self.step : Self.step)
      return .changed(widget.name, min(max(0, moved), 1))
    case ("up", .item(let index, _)), ("down", .item(let index, _)):
      guard let list = tree.list(of: widget.name) else { return .handled }
      focusItem(index + (key == "up" ? -1 : 1), of: list)
      return .handled
    default: return .none
    }
  }

  private mutating func wheel(_ steps: Double, over widget: Widget, in tree: Widget) -> Effect {
    if case .slider(let value) = widget.kind {
      return .changed(widget.name, min(max(0, value + steps * Self.step), 1))
    }
    if let list = tree.list(of: widget.name) {
      scroll(list, by: steps > 0 ? -1 : 1)
      return .handled
    }
    return .none
  }

  /// Moves the focus to the text at an index of a list, which becomes visible.
  private mutating func focusItem(_ index: Int, of list: Widget) {
    guard case .list(let count, let first) = list.kind, (0..<count).contains(index) else { return }
    let visible = list.buttons.count
    if index < first { scroll(list, by: index - first) }
    if index >= first + visible { scroll(list, by: index - first - visible + 1) }
    focused = Widget.itemName(list.name, index)
  }

  private mutating func scroll(_ list: Widget, by step: Int) {
    guard case .list(let count, let first) = list.kind else { return }
    offsets[list.name] = min(max(0, first + step), count - list.buttons.count)
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

extension Widget {
  /// Returns the list in the tree that has a name, or an item of that name; nil if there is none.
  fileprivate func list(of name: String) -> Widget? {
    if case .list = kind { return self.name == name || find(name) != nil ? self : nil }
    for child in children { if let found = child.list(of: name) { return found } }
    return nil
  }

  /// The effect of the pointer on a slider; nil for another widget.
  fileprivate func change(at point: Point) -> WidgetFocus.Effect? {
    guard case .slider = kind, track.width > 0 else { return nil }
    return .changed(
      name, min(max(0, (point.x - Double(track.x)) / Double(track.width)), 1))
  }
}
