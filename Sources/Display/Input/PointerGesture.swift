// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// The meaning of pointer events: dragging on the time line scrubs, dragging on an image moves it,
/// and the wheel zooms.
///
/// A press on an image that ends where it began is a click.
struct PointerGesture: Hashable, Sendable {
  /// The action that a pointer event requests.
  enum Action: Hashable, Sendable {
    /// Begins to scrub.
    case beginScrub
    /// Scrubs to a composition time.
    case scrub(Rational)
    /// Ends scrubbing at the last time that the pointer selected.
    case endScrub
    case pan(pane: Int, x: Double, y: Double)
    case zoom(pane: Int, factor: Double, around: Point)
    case click
    case doubleClick
  }

  private enum State: Hashable {
    case idle
    case scrubbing(WindowEvent.Button)
    /// A button is held on an image, and the pointer has not moved far enough for a drag.
    case pressed(WindowEvent.Button, pane: Int, Point)
    case panning(WindowEvent.Button, pane: Int, last: Point)
  }

  private var state = State.idle
  /// The zoom factor of one wheel step.
  ///
  /// Four steps double the zoom.
  private static let wheelFactor = 1.189_207_115_002_721
  /// The greatest distance between press and release of a click, in pixels.
  private static let clickDistance = 4.0

  /// Returns the actions that an event requests.
  mutating func handle(
    _ event: WindowEvent, _ layout: WindowLayout, duration: Rational
  ) -> [Action] {
    switch (event, state) {
    case (.pressed(.left, let point), .idle) where layout.scrubArea.contains(point):
      state = .scrubbing(.left)
      return [.beginScrub, .scrub(layout.time(atColumn: point.x, duration: duration))]
    case (.pressed(let button, let point), .idle):
      guard let pane = layout.pane(at: point) else { return [] }
      state = .pressed(button, pane: pane, point)
      return []
    case (.moved(let point), .scrubbing):
      return [.scrub(layout.time(atColumn: point.x, duration: duration))]
    case (.moved(let point), .pressed(_, _, let start))
    where point.distance(to: start) <= Self.clickDistance:
      return []
    case (.moved(let point), .pressed(let button, let pane, let last)),
      (.moved(let point), .panning(let button, let pane, let last)):
      state = .panning(button, pane: pane, last: point)
      return [.pan(pane: pane, x: point.x - last.x, y: point.y - last.y)]
    case (.released(let button), .scrubbing(let held)) where button == held:
      state = .idle
      return [.endScrub]
    case (.released(let button), .pressed(let held, _, _)) where button == held:
      state = .idle
      return button == .left ? [.click] : []
    case (.released(let button), .panning(let held, _, _)) where button == held:
      state = .idle
      return []
    case (.doubleClicked(let point), .idle) where layout.pane(at: point) != nil:
      return [.doubleClick]
    case (.wheel(let steps, let point), _):
      guard let pane = layout.pane(at: point), steps != 0 else { return [] }
      var factor = 1.0
      let count = min(16, max(1, Int(steps.magnitude.rounded())))
      for _ in 0..<count { factor *= Self.wheelFactor }
      return [.zoom(pane: pane, factor: steps > 0 ? factor : 1 / factor, around: point)]
    default: return []
    }
  }
}
