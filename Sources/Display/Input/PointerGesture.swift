// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// The meaning of pointer events: dragging on the time line scrubs, dragging on an image moves it,
/// and the wheel zooms.
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
  }

  private enum State: Hashable {
    case idle
    case scrubbing(WindowEvent.Button)
    case panning(WindowEvent.Button, pane: Int, last: Point)
  }

  private var state = State.idle
  /// The zoom factor of one wheel step.
  ///
  /// Four steps double the zoom.
  private static let wheelFactor = 1.189_207_115_002_721

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
      state = .panning(button, pane: pane, last: point)
      return []
    case (.moved(let point), .scrubbing):
      return [.scrub(layout.time(atColumn: point.x, duration: duration))]
    case (.moved(let point), .panning(let button, let pane, let last)):
      state = .panning(button, pane: pane, last: point)
      return [.pan(pane: pane, x: point.x - last.x, y: point.y - last.y)]
    case (.released(let button), .scrubbing(let held)) where button == held:
      state = .idle
      return [.endScrub]
    case (.released(let button), .panning(let held, _, _)) where button == held:
      state = .idle
      return []
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
