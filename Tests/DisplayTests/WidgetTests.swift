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
