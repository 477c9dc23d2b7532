// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankRaster

/// A measured number with its uncertainty.
public struct MeasuredValue: Hashable, Sendable, Codable {
  /// The value.
  public let value: Double
  /// Half the width of the interval around the value that contains the true value with a
  /// probability of at least 95 %, if the errors of the points are normally distributed.
  public let uncertainty: Double

  /// Creates a measured number.
  public init(_ value: Double, uncertainty: Double) {
    (self.value, self.uncertainty) = (value, uncertainty)
  }
}

/// Distances and angles between marked points, with their uncertainties.
///
/// The distortion of the lens and the perspective are not corrected: points and scale must lie in
/// one plane, parallel to the sensor.
public struct ImageMeasurement: Hashable, Sendable, Codable {
  /// Half the width of the 95 % confidence interval of each coordinate of a point, in pixels.
  public var pointUncertainty: Double

  /// Creates measurements of points that are marked this precisely.
  ///
  /// - Parameter pointUncertainty: Half the width of the 95 % interval of a coordinate, in pixels.
  public init(pointUncertainty: Double = 1) { self.pointUncertainty = pointUncertainty }

  /// The distance between two points in pixels; zero if it is below 1e-9 pixels.
  public func distance(from first: Point, to second: Point) -> MeasuredValue {
    let distance = first.distance(to: second)
    return MeasuredValue(
      distance < Self.shortestLine ? 0 : distance,
      uncertainty: pointUncertainty.magnitude * 2.0.squareRoot())
  }

  /// The distance between two points in meters.
  public func distance(
    from first: Point, to second: Point, scale: LengthScale
  ) -> MeasuredValue {
    scale.meters(of: distance(from: first, to: second))
  }

  /// The length in pixels below which a line has no usable direction.
  ///
  /// No image resolves a shorter line, and the square of a shorter line's length may be zero.
  private static let shortestLine = 1e-9

  /// The angle at a vertex between the directions to two points, in degrees from 0 to 180.
  ///
  /// Both values are NaN if a point is less than 1e-9 pixels from the vertex.
  public func angle(
    at vertex: Point, between first: Point, and second: Point
  ) -> MeasuredValue {
    let one = (x: first.x - vertex.x, y: first.y - vertex.y)
    let other = (x: second.x - vertex.x, y: second.y - vertex.y)
    let (a, b) = (hypot(one.x, one.y), hypot(other.x, other.y))
    guard a >= Self.shortestLine, b >= Self.shortestLine else {
      return MeasuredValue(.nan, uncertainty: .nan)
    }
    let angle = abs(
      atan2(one.x * other.y - one.y * other.x, one.x * other.x + one.y * other.y))
    // An error in a marked point turns its side of the angle by the error divided by the side's
    // length. An error in the vertex turns both sides.
    let vertexX = one.y / (a * a) - other.y / (b * b)
    let vertexY = one.x / (a * a) - other.x / (b * b)
    let squares = 1 / (a * a) + 1 / (b * b) + vertexX * vertexX + vertexY * vertexY
    return MeasuredValue(
      angle * 180 / .pi,
      uncertainty: pointUncertainty.magnitude * squares.squareRoot() * 180 / .pi)
  }
}

/// The length of a pixel, from a distance of known length in the image.
public struct LengthScale: Hashable, Sendable, Codable {
  /// Meters per pixel.
  public let metersPerPixel: Double
  /// Half the width of the 95 % interval of ``metersPerPixel``, divided by ``metersPerPixel``.
  public let relativeUncertainty: Double

  /// Creates a scale; nil unless both lengths are above zero and finite.
  ///
  /// - Parameters:
  ///   - pixels: The known distance in the image.
  ///   - meters: The true length of this distance.
  public init?(pixels: MeasuredValue, meters: MeasuredValue) {
    let scale = meters.value / pixels.value
    guard pixels.value > 0, meters.value > 0, scale.isFinite, scale > 0 else { return nil }
    let relative = hypot(
      pixels.uncertainty / pixels.value, meters.uncertainty / meters.value)
    guard relative.isFinite else { return nil }
    (metersPerPixel, relativeUncertainty) = (scale, relative)
  }

  /// Converts a length from pixels to meters.
  public func meters(of pixels: MeasuredValue) -> MeasuredValue {
    let value = pixels.value * metersPerPixel
    return MeasuredValue(
      value, uncertainty: hypot(pixels.uncertainty * metersPerPixel, value * relativeUncertainty))
  }
}
