// SPDX-License-Identifier: Apache-2.0

/// A point of a window, in pixels from its upper left corner.
struct ViewPoint: Hashable, Sendable {
  var x: Double
  var y: Double
}
