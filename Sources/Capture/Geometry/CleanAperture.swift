// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The size of the part of a stored image that players show, which lies around the image's center.
///
/// Compressed frames cannot be cropped without decoding them. The bytes of a zoomed frame then
/// contain the whole image, and this value describes the part that the zoom shows.
public struct CleanAperture: Hashable, Sendable {
  /// The width of the shown part, in pixels of the whole image.
  public let width: Rational
  /// The height of the shown part, in pixels of the whole image.
  public let height: Rational

  /// Creates the part of an image that a zoom factor shows.
  ///
  /// The size is rounded to thousandths of a pixel. Nil for a factor of 1.
  package init?(width: Int, height: Int, factor: Double) {
    guard factor > 1 else { return nil }
    func part(_ length: Int) -> Rational {
      Rational(Int128((Double(length) / factor * 1_000).rounded()), over: 1_000)
    }
    (self.width, self.height) = (part(width), part(height))
  }
}

/// The zoom factor of a frame, and the part of the image that players show.
package struct FrameZoom: Sendable {
  /// The factor by which the zoom enlarges the image.
  var factor = 1.0
  /// The part of the image that the zoom shows, or nil if the frame was already cropped to that
  /// part.
  var cleanAperture: CleanAperture?

  init(factor: Double = 1, cleanAperture: CleanAperture? = nil) {
    (self.factor, self.cleanAperture) = (factor, cleanAperture)
  }

  /// Reads the zoom factor of a frame, for an output that crops frames itself.
  ///
  /// - Parameters:
  ///   - geometry: The geometry of the output's connection.
  ///   - time: The capture time of the frame in microseconds.
  package init(_ geometry: ConnectionGeometry, atMicroseconds time: Int64) {
    self.init(factor: geometry.factor(atMicroseconds: time))
  }
}
