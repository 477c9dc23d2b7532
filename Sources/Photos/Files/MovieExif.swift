// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankCapture
public import OvercrankMediaCore

/// The Exif values for frames of a movie, which are read from the movie's metadata tags.
public struct MovieExif: Sendable {
  private let tags: [String: String]
  private let start: Int64?

  /// The location at which the movie was recorded; nil if the movie does not state it.
  public let location: GeographicLocation?

  /// Reads the metadata tags of a movie, such as `Asset.metadata`.
  public init(tags: [String: String]) {
    self.tags = tags
    start = tags["creation_time"].flatMap { text in
      // FFmpeg adds a fraction of a second to the date, which the expected date format does not
      // contain.
      let whole = text.split(separator: ".").first.map { $0.hasSuffix("Z") ? "\($0)" : "\($0)Z" }
      return whole.flatMap { try? Date($0, strategy: .iso8601) }
        .map { Int64($0.timeIntervalSince1970) * 1_000_000 }
    }
    location = tags[MetadataItem.Key.location.rawValue].flatMap {
      try? GeographicLocation(parsing: $0)
    }
  }

  /// Returns the Exif values for a frame.
  ///
  /// - Parameters:
  ///   - time: The time of the frame in the movie.
  ///   - orientation: The value of `Orientation`, or nil if the image is upright.
  /// - Returns: The values by Exif names, without `SubSecTimeOriginal`, because the date of a movie
  ///   is in whole seconds.
  public func values(at time: MediaTime, orientation: Int? = nil) -> [String: String] {
    var values: [String: String] = [:]
    if let start {
      values = SampleBuffer.exifDate(microseconds: start + time.wholeMicroseconds)
      values["SubSecTimeOriginal"] = nil
    }
    values["Make"] = tags[MetadataItem.Key.make.rawValue]
    values["Model"] = tags[MetadataItem.Key.model.rawValue]
    values["ImageDescription"] = tags[MetadataItem.Key.description.rawValue]
    values["Orientation"] = orientation.map { "\($0)" }
    return values
  }
}
