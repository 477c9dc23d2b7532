// SPDX-License-Identifier: Apache-2.0

/// A metadata item of a movie: a key and its value.
///
/// ```swift
/// settings.metadata = [
///   try MetadataItem(.description, "third attempt, new stick"),
///   try MetadataItem(.location, "+46.9481+007.4474/"),
/// ]
/// ```
///
/// Every item can be stored, because the initializer rejects what a movie cannot hold.
public struct MetadataItem: Hashable, Sendable {
  /// The key of an item, as it is stored in the file.
  public struct Key: RawRepresentable, Hashable, Sendable, Codable {
    /// The stored key, such as `com.apple.quicktime.make`.
    public let rawValue: String

    /// Makes a key that is stored under this name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Makes a key from the short name of a common key, such as `make`, or from the stored key.
    public init(named name: String) { self = Self.common[name] ?? Self(rawValue: name) }

    /// The title of the movie.
    public static let title = Key(rawValue: "title")
    /// A description of the content of the movie.
    public static let description = Key(rawValue: "com.apple.quicktime.description")
    /// Keywords for a search, separated by commas.
    public static let keywords = Key(rawValue: "com.apple.quicktime.keywords")
    /// The manufacturer of the camera.
    public static let make = Key(rawValue: "com.apple.quicktime.make")
    /// The model of the camera.
    public static let model = Key(rawValue: "com.apple.quicktime.model")
    /// The place of the capture, in the form of ISO 6709; see ``GeographicLocation``.
    public static let location = Key(rawValue: "com.apple.quicktime.location.ISO6709")

    private static let common = [
      "title": title, "description": description, "keywords": keywords, "make": make,
      "model": model, "location": location,
    ]
  }

  /// The key.
  public let key: Key
  /// The value.
  public let value: MetadataValue

  /// The keys that the library or the container writes itself.
  private static let reserved: Set<String> = [
    "com.android.capture.fps", "creation_time", "timecode", "major_brand", "minor_version",
    "compatible_brands", "encoder",
  ]
  private static let reservedPrefix = "com.overcrank."
  private static let longestKey = 255
  private static let longestText = 65_535

  /// Makes an item.
  ///
  /// The text of a location must follow ISO 6709, and is stored in decimal degrees.
  ///
  /// - Throws: `MediaError` with `.invalidMetadata` for an empty or reserved key, a key of more
  ///   than 255 bytes, a text of more than 65 535 bytes, a zero byte in the key or the text, a
  ///   number that is not finite, and a place that is not on Earth.
  public init(_ key: Key, _ value: MetadataValue) throws(MediaError) {
    try Self.check(key.rawValue)
    guard !Self.reserved.contains(key.rawValue), !key.rawValue.hasPrefix(Self.reservedPrefix)
    else {
      throw MediaError(
        .invalidMetadata, "the metadata key \(key.rawValue) is reserved",
        recovery: "choose another key")
    }
    var value = value
    if key == .location {
      guard case .text(let text) = value else {
        throw GeographicLocation.invalid("\(value)")
      }
      value = .text(try GeographicLocation(parsing: text).iso6709)
    }
    try Self.check(value, of: key.rawValue)
    (self.key, self.value) = (key, value)
  }

  /// Makes the item of a location.
  public init(_ location: GeographicLocation) {
    (key, value) = (.location, .text(location.iso6709))
  }

  /// Checks the key of a metadata item, either of a whole file or of one frame.
  static func check(_ key: String) throws(MediaError) {
    let isReadable = key.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
    guard !key.isEmpty, key.utf8.count <= longestKey, isReadable else {
      throw MediaError(
        .invalidMetadata,
        "a metadata key of \(key.utf8.count) bytes is empty, too long, or has a space or a "
          + "control character",
        recovery: "choose a key of 1 to \(longestKey) bytes, such as com.example.speed")
    }
  }

  /// Checks the value of a metadata item, either of a whole file or of one frame.
  static func check(_ value: MetadataValue, of key: String) throws(MediaError) {
    let problem: String? =
      switch value {
      case .text(let text) where text.utf8.contains(0): "has a zero byte"
      case .text(let text) where text.utf8.count > longestText:
        "has more than \(longestText) bytes"
      case .number(let number) where !number.isFinite: "is not a finite number"
      case .text, .number, .integer: nil
      }
    guard let problem else { return }
    throw MediaError(
      .invalidMetadata, "the value of the metadata key \(key) \(problem)",
      recovery: "choose another value")
  }
}

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

/// A named part of a movie.
public struct Chapter: Hashable, Sendable {
  /// The chapter's title; empty if the file has none.
  public let title: String
  /// The start of the chapter in seconds, on the time axis of the file.
  public let start: Rational
  /// The end of the chapter in seconds, on the time axis of the file.
  public let end: Rational

  package init(title: String, start: Rational, end: Rational) {
    (self.title, self.start, self.end) = (title, start, end)
  }
}
