// SPDX-License-Identifier: Apache-2.0

import OvercrankPreview
import OvercrankRaster

/// Drawing on an image with the pointer.
///
/// A click is a point, and a drag is a distance. A drag from the end of the last distance makes an
/// angle of it. A drag with the right button is a box.
struct ShapeGesture: Hashable, Sendable {
  /// The effect of an event on the drawing.
  enum Effect: Hashable, Sendable {
    /// The event is not for the drawing.
    case none
    case handled
    case finished(ViewShape)
  }

  private struct Press: Hashable {
    let button: WindowEvent.Button
    let start: Point
  }

  private var press: Press?
  /// The shape while the button is held; nil without a drag.
  private(set) var draft: ViewShape?

  /// The greatest distance of a click, and of the start of an angle from the end of a distance, in
  /// pixels of the window.
  private static let reach = 6.0

  /// Handles an event.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - last: The shape that was drawn last.
  ///   - imagePoint: Converts a point of the window to a point of the image; nil outside the image.
  /// - Returns: The effect.
  mutating func handle(
    _ event: WindowEvent, after last: ViewShape?, _ imagePoint: (Point) -> Point?
  ) -> Effect {
    switch event {
    case .pressed(let button, let point) where button != .middle && press == nil:
      guard imagePoint(point) != nil else { return .none }
      press = Press(button: button, start: point)
      return .handled
    case .moved(let point):
      guard let press else { return .none }
      guard draft != nil || point.distance(to: press.start) > Self.reach else { return .handled }
      if let start = imagePoint(press.start), let end = imagePoint(point) {
        let nearby = imagePoint(Point(x: press.start.x + Self.reach, y: press.start.y))
        let reach = nearby.map { $0.distance(to: start) } ?? 0
        draft = Self.shape(press.button, start, end, last, reach)
      }
      return .handled
    case .released(let button):
      guard let press, press.button == button else { return .none }
      defer { (self.press, draft) = (nil, nil) }
      if let draft { return .finished(draft) }
      guard button == .left, let point = imagePoint(press.start) else { return .handled }
      return .finished(ViewShape(.point, [point]))
    case .doubleClicked: return .handled
    default: return .none
    }
  }

  private static func shape(
    _ button: WindowEvent.Button, _ start: Point, _ end: Point, _ last: ViewShape?, _ reach: Double
  ) -> ViewShape {
    guard button == .left else {
      return ViewShape(
        .box,
        [
          Point(x: min(start.x, end.x), y: min(start.y, end.y)),
          Point(x: max(start.x, end.x), y: max(start.y, end.y)),
        ])
    }
    if let last, last.kind == .distance, last.points[1].distance(to: start) <= reach {
      return ViewShape(.angle, last.points + [end])
    }
    return ViewShape(.distance, [start, end])
  }
}
