// SPDX-License-Identifier: Apache-2.0

/// A metadata value that belongs to a frame of a movie, such as the reading of a speed gun.
public struct TimedMetadataItem: Hashable, Sendable, Codable {
  /// The key, such as `com.example.speed`.
  public let key: String
  /// The value.
  public let value: MetadataValue
  /// The index of the frame, from 0.
  public let frameIndex: Int64
  /// The time at which the file stores the value.
  ///
  /// For values that this library stored, this is the time of the frame.
  public let time: MediaTime

  private enum CodingKeys: String, CodingKey {
    case key, value, time
    case frameIndex = "frame"
  }

  package init(key: String, value: MetadataValue, frameIndex: Int64, time: MediaTime) {
    (self.key, self.value, self.frameIndex, self.time) = (key, value, frameIndex, time)
  }

  /// Checks the key and the value of an item to be stored.
  package static func check(_ key: String, _ value: MetadataValue) throws(MediaError) {
    try MetadataItem.check(key)
    try MetadataItem.check(value, of: key)
  }
}
