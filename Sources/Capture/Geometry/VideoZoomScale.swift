// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCameraControls
public import OvercrankMediaCore

/// The relation between the position of a slider and a zoom factor.
///
/// The factor at position `x` is `maximum` to the power of `x`. Equal steps of the slider then
/// multiply the factor by equal amounts, and zooming looks even.
public struct VideoZoomScale: Hashable, Sendable {
  /// The zoom factor at slider position 1.
  public let maximum: Double

  /// Creates a scale from factor 1 to a maximum.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` unless the maximum is a number of at least 1.
  public init(maximum: Double) throws(MediaError) {
    guard maximum.isFinite, maximum >= 1 else {
      throw .zoomOutOfRange("the greatest zoom factor", maximum, takes: "numbers of at least 1")
    }
    self.maximum = maximum
  }

  /// The zoom factor at a position of the slider.
  ///
  /// - Parameter position: From 0 to 1.
  /// - Returns: From 1 to ``maximum``.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  public func factor(atPosition position: Double) throws(MediaError) -> Double {
    guard (0...1).contains(position) else {
      throw .zoomOutOfRange("the position of the zoom slider", position, takes: "0 to 1")
    }
    return position == 1 ? maximum : pow(maximum, position)
  }

  /// The position of the slider at a zoom factor.
  ///
  /// - Parameter factor: From 1 to ``maximum``.
  /// - Returns: From 0 to 1.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  public func position(ofFactor factor: Double) throws(MediaError) -> Double {
    guard factor >= 1, factor <= maximum else {
      throw .zoomOutOfRange("the zoom factor", factor, takes: "1 to \(maximum)")
    }
    return maximum == 1 ? 0 : min(log2(factor) / log2(maximum), 1)
  }
}

extension MediaError {
  /// The error for a zoom factor, rate or position outside its range.
  static func zoomOutOfRange(_ what: String, _ value: Double, takes range: String) -> MediaError {
    MediaError(.controlOutOfRange, "\(what) cannot be \(value)", recovery: "it takes \(range)")
  }
}
