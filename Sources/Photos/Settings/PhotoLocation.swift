// SPDX-License-Identifier: Apache-2.0

/// A position on the earth, stored in a photo as GPS metadata.
public struct PhotoLocation: Hashable, Sendable, Codable {
  /// Degrees north of the equator, from -90 to 90.
  public var latitude: Double
  /// Degrees east of Greenwich, from -180 to 180.
  public var longitude: Double
  /// The height above sea level in meters, or nil if it is unknown.
  public var altitude: Double?

  /// Makes a position in WGS 84.
  public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
    self.latitude = latitude
    self.longitude = longitude
    self.altitude = altitude
  }

  var isValid: Bool {
    (-90...90).contains(latitude) && (-180...180).contains(longitude)
      && (altitude.map { abs($0) < 100_000 } ?? true)
  }
}
