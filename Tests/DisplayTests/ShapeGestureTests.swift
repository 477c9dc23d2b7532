// SPDX-License-Identifier: Apache-2.0

import OvercrankPreview
import OvercrankRaster
import Testing

@testable import OvercrankDisplay

/// Shapes that the pointer draws, on an image at twice its size.
struct ShapeGestureTests {
  private func shapes(_ events: [WindowEvent], after last: ViewShape? = nil) -> [ViewShape] {
    var gesture = ShapeGesture()
    var shapes = last.map { [$0] } ?? []
    for event in events {
      let effect = gesture.handle(event, after: shapes.last) { point in
        (0...200).contains(point.x) ? Point(x: point.x / 2, y: point.y / 2) : nil
      }
      if case .finished(let shape) = effect { shapes.append(shape) }
    }
    return shapes
  }

  private func drag(
    _ from: Point, _ to: Point, _ button: WindowEvent.Button = .left
  ) -> [WindowEvent] {
    [.pressed(button, from), .moved(to), .released(button)]
  }

  @Test func `Clicks and drags draw points and distances and boxes`() {
    let (first, last) = (Point(x: 20, y: 60), Point(x: 100, y: 20))
    #expect(
      shapes([.pressed(.left, first), .moved(Point(x: 22, y: 61)), .released(.left)])
        == [ViewShape(.point, [Point(x: 10, y: 30)])])
    #expect(
      shapes(drag(first, last))
        == [ViewShape(.distance, [Point(x: 10, y: 30), Point(x: 50, y: 10)])])
    #expect(
      shapes(drag(first, last, .right))
        == [ViewShape(.box, [Point(x: 10, y: 10), Point(x: 50, y: 30)])])
    // The middle button moves the image, and nothing begins outside the image.
    #expect(shapes(drag(first, last, .middle)).isEmpty)
    #expect(shapes(drag(Point(x: 300, y: 0), last)).isEmpty)
  }

  @Test func `A drag from the end of a distance makes an angle`() {
    let corner = Point(x: 100, y: 20)
    let drawn = shapes(
      drag(Point(x: 20, y: 60), corner) + drag(Point(x: 103, y: 20), Point(x: 180, y: 60)))
    #expect(
      drawn.last
        == ViewShape(.angle, [Point(x: 10, y: 30), Point(x: 50, y: 10), Point(x: 90, y: 30)]))
    // Farther from the end, another distance begins.
    #expect(
      shapes(drag(Point(x: 20, y: 60), corner) + drag(Point(x: 120, y: 20), Point(x: 180, y: 60)))
        .map(\.kind) == [.distance, .distance])
  }
}
