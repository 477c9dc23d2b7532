// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import Testing

@testable import OvercrankDisplay

/// Pointer events and the actions that they cause, as tables.
struct PointerGestureTests {
  private let layout = WindowLayout(VideoSize(width: 1_280, height: 720), paneCount: 2)
  private let duration = Rational(1_256)

  private func actions(_ events: [WindowEvent]) -> [PointerGesture.Action] {
    var gesture = PointerGesture()
    return events.flatMap { gesture.handle($0, layout, duration: duration) }
  }

  @Test func `A drag that starts on the timeline scrubs until release`() {
    let found = actions([
      .moved(Point(x: 100, y: 670)), .pressed(.left, Point(x: 112, y: 670)),
      .moved(Point(x: 212, y: 100)), .moved(Point(x: -50, y: 700)),
      .released(.right), .released(.left), .moved(Point(x: 300, y: 670)),
    ])
    #expect(
      found == [.beginScrub, .scrub(100), .scrub(200), .scrub(0), .endScrub])
  }

  @Test func `A press scrubs on a thumbnail but not on the status line`() {
    #expect(
      actions([.pressed(.left, Point(x: 13, y: 621))]) == [.beginScrub, .scrub(1)])
    #expect(actions([.pressed(.left, Point(x: 13, y: 700))]).isEmpty)
    #expect(actions([.pressed(.right, Point(x: 13, y: 621))]).isEmpty)
  }

  @Test func `A drag on an image pans that image`() {
    let found = actions([
      .pressed(.left, Point(x: 700, y: 100)), .moved(Point(x: 710, y: 95)),
      .moved(Point(x: 0, y: 0)), .released(.left), .moved(Point(x: 5, y: 5)),
    ])
    #expect(
      found == [.pan(pane: 1, x: 10, y: -5), .pan(pane: 1, x: -710, y: -95)])
  }

  @Test func `A press that hardly moves is a click`() {
    let point = Point(x: 700, y: 100)
    #expect(
      actions([
        .pressed(.left, point), .moved(Point(x: 702, y: 103)), .released(.left),
        .pressed(.left, point), .released(.left), .doubleClicked(point),
      ]) == [.click, .click, .doubleClick])
    // The right button drags only, and the time line has no clicks.
    #expect(actions([.pressed(.right, point), .released(.right)]).isEmpty)
    let line = Point(x: 112, y: 670)
    #expect(
      actions([.pressed(.left, line), .released(.left), .doubleClicked(line)])
        == [.beginScrub, .scrub(100), .endScrub])
  }

  @Test func `Four wheel steps double the zoom`() throws {
    let point = Point(x: 10, y: 20)
    guard
      case .zoom(0, let four, point)? = actions([.wheel(4, point)]).first,
      case .zoom(0, let back, point)? = actions([.wheel(-4, point)]).first
    else {
      Issue.record("no zoom")
      return
    }
    #expect(abs(four - 2) < 1e-12 && abs(back - 0.5) < 1e-12)
    #expect(actions([.wheel(0, point), .wheel(1, Point(x: 10, y: 650))]).isEmpty)
  }
}
