// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The part of an image that is shown, around its center.
///
/// Compressed frames cannot be cropped without decoding them. Their bytes then keep the whole
/// image, and this value names the part that the zoom shows.
public struct CleanAperture: Hashable, Sendable {
  /// The width in pixels of the image.
  public let width: Rational
  /// The height in pixels of the image.
  public let height: Rational

  /// Creates the part of an image that a zoom factor shows.
  ///
  /// It is rounded to thousandths of a pixel. Nil for a factor of 1.
  package init?(width: Int, height: Int, factor: Double) {
    guard factor > 1 else { return nil }
    func part(_ length: Int) -> Rational {
      Rational(Int128((Double(length) / factor * 1_000).rounded()), over: 1_000)
    }
    (self.width, self.height) = (part(width), part(height))
  }
}

/// The zoom of a frame.
package struct FrameZoom: Sendable {
  /// The factor by which the zoom enlarges the image.
  var factor = 1.0
  /// The part of the image that the zoom shows, if the bytes contain all of it.
  var cleanAperture: CleanAperture?

  init(factor: Double = 1, cleanAperture: CleanAperture? = nil) {
    (self.factor, self.cleanAperture) = (factor, cleanAperture)
  }

  /// The zoom of a frame whose output crops the image.
  ///
  /// - Parameters:
  ///   - geometry: The geometry of the output's connection.
  ///   - time: The capture time of the frame in microseconds.
  package init(_ geometry: ConnectionGeometry, atMicroseconds time: Int64) {
    self.init(factor: geometry.factor(atMicroseconds: time))
  }
}
