// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankPreview
import OvercrankRaster
import Testing

@testable import OvercrankDisplay

/// Trees of widgets, which need no window.
struct WidgetTests {
  private static let buttons = (1...12).map {
    ViewButton("key \($0)", String(repeating: "m", count: $0), "hint \($0)")
  }

  @Test(arguments: [320, 480, 640, 960, 1_280, 1_920])
  func `A bar holds its buttons in rows that do not overlap`(_ width: Int) throws {
    let area = PixelRect(x: 10, y: 20, width: width, height: 400)
    let bar = try #require(Widget.bar(Self.buttons, over: area, textScale: 2))
    #expect(bar.area.x >= 10 && bar.area.right <= 10 + width && bar.area.bottom <= 420)
    #expect(bar.buttons.map(\.name) == Self.buttons.map(\.key))
    for (index, button) in bar.buttons.enumerated() {
      #expect(bar.widget(at: button.area.middle)?.name == button.name)
      #expect(bar.area.columns.contains(button.area.x) && button.area.right <= bar.area.right)
      for other in bar.buttons[(index + 1)...] {
        let overlaps =
          button.area.columns.overlaps(other.area.columns)
          && button.area.rows.overlaps(other.area.rows)
        #expect(!overlaps)
      }
      let textWidth = InstalledFont.standard.width(of: button.text, scale: button.textScale)
      #expect(textWidth + 2 * Widget.padding <= button.area.width)
    }
  }

  @Test func `A bar without space or buttons is left out`() {
    let low = PixelRect(x: 0, y: 0, width: 640, height: 40)
    let narrow = PixelRect(x: 0, y: 0, width: 20, height: 400)
    #expect(Widget.bar(Self.buttons, over: low, textScale: 2) == nil)
    #expect(Widget.bar(Self.buttons, over: narrow, textScale: 2) == nil)
    let wide = PixelRect(x: 0, y: 0, width: 640, height: 400)
    #expect(Widget.bar([], over: wide, textScale: 1) == nil)
  }

  @Test func `A button is pressed where the pointer is released on it`() throws {
    let area = PixelRect(x: 0, y: 0, width: 960, height: 400)
    let bar = try #require(Widget.bar(Self.buttons, over: area, textScale: 1))
    let (first, last) = (bar.buttons[0].area.middle, bar.buttons[11].area.middle)
    let outside = Point(x: 5, y: 5)
    func effects(_ events: WindowEvent...) -> [WidgetFocus.Effect] {
      var focus = WidgetFocus()
      return events.map { focus.handle($0, in: bar) }
    }
    #expect(effects(.pressed(.left, last), .released(.left)) == [.handled, .pressed("key 12")])
    #expect(
      effects(.pressed(.left, first), .moved(last), .released(.left))
        == [.handled, .handled, .handled])
    #expect(
      effects(.pressed(.left, first), .moved(outside), .moved(first), .released(.left))
        == [.handled, .handled, .handled, .pressed("key 1")])
    // Other buttons of the mouse press nothing, but do not reach the image below.
    #expect(effects(.pressed(.right, first), .released(.right)) == [.handled, .none])
    #expect(effects(.pressed(.left, outside), .released(.left)) == [.none, .none])
  }

  /// A window with all kinds of controls.
  private static func controls(_ offsets: [String: Int] = [:]) -> Widget {
    let area = PixelRect(x: 0, y: 0, width: 640, height: 300)
    let controls = [
      ViewControl("photo", "Photo"), ViewControl("zoom in", "+", .hold),
      ViewControl("movie", "Movie", .toggle(isOn: true)),
      ViewControl("speed", "Speed", .slider(value: 0.5)),
      ViewControl("camera", "Camera", .list((0..<20).map { "camera \($0)" }, selected: 1)),
    ]
    return Widget(
      kind: .window, name: "window", area: area,
      children: Widget.controls(controls, over: area, textScale: 1, offsets: offsets))
  }

  @Test func `Controls report what the pointer does to them`() throws {
    let tree = Self.controls()
    func middle(_ name: String) throws -> Point { try #require(tree.find(name)).area.middle }
    func effects(_ events: WindowEvent...) -> [WidgetFocus.Effect] {
      var focus = WidgetFocus()
      return events.map { focus.handle($0, in: tree) }
    }
    let (photo, hold) = (try middle("photo"), try middle("zoom in"))
    #expect(effects(.pressed(.left, photo), .released(.left)).last == .pressed("photo"))
    // A held button is released wherever the pointer is.
    #expect(
      effects(.pressed(.left, hold), .moved(photo), .released(.left))
        == [.held("zoom in", true), .handled, .held("zoom in", false)])
    let track = try #require(tree.find("speed")).track
    let (left, right) = (
      Point(x: Double(track.x), y: track.middle.y), Point(x: Double(track.right), y: 0)
    )
    #expect(
      effects(.pressed(.left, left), .moved(right), .released(.left), .moved(left))
        == [.changed("speed", 0), .changed("speed", 1), .handled, .none])
    #expect(effects(.wheel(2, track.middle)) == [.changed("speed", 0.6)])
    // The text of a slider is no part of its track.
    let text = Point(x: left.x - 4, y: left.y)
    #expect(effects(.pressed(.left, text), .moved(right)) == [.handled, .none])
    let item = try middle("camera 3")
    #expect(effects(.pressed(.left, item), .released(.left)).last == .selected("camera", 3))
  }

  @Test func `The keyboard reaches every control`() throws {
    let tree = Self.controls()
    var focus = WidgetFocus()
    var names: [String] = []
    for _ in tree.buttons {
      #expect(focus.handle(.key("tab"), in: tree) == .handled)
      names.append(try #require(focus.focused))
    }
    #expect(
      names == tree.buttons.map(\.name)
        && names.prefix(4) == [
          "photo", "zoom in", "movie", "speed",
        ])
    func press(_ name: String, _ events: WindowEvent...) -> [WidgetFocus.Effect] {
      var focus = WidgetFocus()
      while focus.focused != name { _ = focus.handle(.key("tab"), in: tree) }
      return events.map { focus.handle($0, in: tree) }
    }
    #expect(press("photo", .key("return")) == [.pressed("photo")])
    #expect(
      press("zoom in", .key("return"), .key("return"), .keyUp("return"))
        == [.held("zoom in", true), .handled, .held("zoom in", false)])
    #expect(press("speed", .key("left"), .key("right")).first == .changed("speed", 0.45))
    #expect(press("camera 0", .key("down"), .key("return")).last == .selected("camera", 1))
    #expect(press("photo", .key("left")) == [.none])
  }

  @Test func `A list shows its other texts as it is turned`() throws {
    let tree = Self.controls()
    let list = try #require(tree.find("camera"))
    let visible = list.buttons.count
    #expect(visible > 3 && visible < 20 && list.buttons.first?.text == "camera 0")
    var focus = WidgetFocus()
    for _ in 0..<30 {
      _ = focus.handle(.wheel(-1, list.area.middle), in: Self.controls(focus.offsets))
    }
    let end = try #require(Self.controls(focus.offsets).find("camera"))
    #expect(end.buttons.last?.text == "camera 19" && end.buttons.count == visible)
    // The down key moves the focus past the last visible text.
    focus = WidgetFocus()
    while focus.focused != "camera 0" { _ = focus.handle(.key("tab"), in: tree) }
    for _ in 0..<19 { _ = focus.handle(.key("down"), in: Self.controls(focus.offsets)) }
    #expect(focus.focused == "camera 19")
    let shown = Self.controls(focus.offsets)
    #expect(focus.handle(.key("return"), in: shown) == .selected("camera", 19))
    // No control covers another one.
    let areas = shown.buttons.map(\.area)
    for (index, area) in areas.enumerated() {
      #expect(area.x >= 0 && area.right <= 640 && area.y >= 0 && area.bottom <= 300)
      for other in areas[(index + 1)...] {
        #expect(!(area.columns.overlaps(other.columns) && area.rows.overlaps(other.rows)))
      }
    }
  }

  @Test(arguments: [(320, 240), (640, 480), (960, 652), (1_280, 720), (480, 258)])
  func `The table of keys fits the window`(_ width: Int, _ height: Int) throws {
    let lines = (0..<24).map {
      KeyDescription("key\($0)", "what the key with number \($0) does")
    }
    let area = PixelRect(x: 0, y: 0, width: width, height: height)
    let help = try #require(Widget.help(lines, over: area))
    #expect(lines.allSatisfy { help.find($0.keys)?.text == $0.text })
    guard width >= 640 else { return }
    for label in help.children {
      #expect(area.columns.contains(label.area.x) && label.area.right <= width)
      #expect(label.area.y >= 0 && label.area.bottom <= height)
    }
    #expect(Widget.help([], over: area) == nil)
  }
}
