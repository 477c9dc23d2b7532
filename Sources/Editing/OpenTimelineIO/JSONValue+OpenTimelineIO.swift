// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Finds the root stack of an OpenTimelineIO document.
enum OpenTimelineRoot {
  /// Returns the root stack: a timeline's tracks, or a stack around a single track or clip.
  ///
  /// - Throws: `MediaError` with `.invalidProject` for any other document.
  static func stack(of document: JSONValue) throws(MediaError) -> JSONValue {
    switch document.otioKind {
    case "Timeline":
      guard let tracks = document["tracks"] else { break }
      return try stack(of: tracks)
    case "Stack": return document
    case "Track", "Clip": return .object(["children": .array([document])])
    case "SerializableCollection":
      let timelines = (document["children"]?.elements ?? []).filter { $0.otioKind == "Timeline" }
      guard let timeline = timelines.first, timelines.count == 1 else {
        throw .invalidProject("it is a collection of \(timelines.count) timelines instead of one")
      }
      return try stack(of: timeline)
    default: break
    }
    throw .invalidProject("it is not an OpenTimelineIO timeline")
  }
}

extension JSONValue {
  /// The schema name of this value without the version; empty for JSON without a schema.
  ///
  /// Names of early schema versions are replaced by their current names.
  var otioKind: String {
    let name = self["OTIO_SCHEMA"]?.string?.split(separator: ".").first.map(String.init) ?? ""
    return switch name {
    // Names of early schema versions that the OpenTimelineIO library still accepts.
    case "Sequence": "Track"
    case "Filler": "Gap"
    case "SerializeableCollection": "SerializableCollection"
    default: name
    }
  }

  /// Returns true if an item or effect is enabled, which is the default, and false if it is
  /// disabled.
  func otioIsEnabled(_ location: String) throws(MediaError) -> Bool {
    guard let value = self["enabled"] else { return true }
    guard let isEnabled = value.bool else { throw value.otioUnreadable("enabled", of: location) }
    return isEnabled
  }

  /// Returns the kind of a track; a stack item without a kind counts as video.
  func otioTrackKind(_ location: String) throws(MediaError) -> String {
    guard otioKind == "Track", let value = self["kind"] else { return "Video" }
    guard let kind = value.string else { throw value.otioUnreadable("kind", of: location) }
    return kind
  }

  /// Returns the elements of an array member; empty if the member is missing.
  func otioItems(_ key: String, _ location: String) throws(MediaError) -> [JSONValue] {
    switch self[key] {
    case nil: return []
    case .array(let items): return items
    // Some programs write null for an empty list.
    case .null where key != "children": return []
    case .some(let value): throw value.otioUnreadable(key, of: location)
    }
  }

  /// Returns the URL of a movie, or nil if the URL is missing or blank.
  func otioAddress(_ location: String) throws(MediaError) -> String? {
    guard let value = self["target_url"], value != .null else { return nil }
    guard let address = value.string else { throw value.otioUnreadable("target_url", of: location) }
    return address.contains { !$0.isWhitespace } ? address : nil
  }

  /// Returns a range member, or nil if it is missing or null.
  ///
  /// - Throws: `MediaError` with `.invalidProject` for an unreadable range, because ignoring it
  ///   would show other frames.
  func otioRange(
    _ key: String, _ location: String
  ) throws(MediaError) -> (start: Rational, duration: Rational)? {
    guard let value = self[key], value != .null else { return nil }
    if let range = value.otioRange { return range }
    for part in ["start_time", "duration"] {
      let time = value[part]
      guard time?.otioTime == nil else { continue }
      for number in ["value", "rate"] {
        let found = time?[number]
        let isReadable =
          number == "rate"
          ? ProjectTime.rate(found?.number) != nil
          : found?.number.flatMap(ProjectTime.nearest) != nil
        if !isReadable {
          throw (found ?? .null).otioUnreadable("\(key).\(part).\(number)", of: location)
        }
      }
    }
    throw value.otioUnreadable(key, of: location)
  }

  /// Returns a time member, or nil if it is missing.
  func otioTime(_ key: String, _ location: String) throws(MediaError) -> Rational? {
    guard let value = self[key], value != .null else { return nil }
    guard let time = value.otioTime else { throw value.otioUnreadable(key, of: location) }
    return time
  }

  /// Creates the error for a value that is present but unreadable.
  func otioUnreadable(_ name: String, of location: String) -> MediaError {
    let shown =
      switch self {
      case .null: "null"
      case .bool(let value): "\(value)"
      case .number(let number): "\(number)"
      case .string(let text): "\"\(text.prefix(40))\""
      case .array: "a list"
      case .object: "an object"
      }
    return .invalidProject("\(name) of \(location) is \(shown), which cannot be read")
  }

  /// The reference of a clip to a movie file; nil if the clip has no media or media of another
  /// kind.
  var otioReference: JSONValue? {
    let found = otioAnyReference
    return found?.otioKind == "ExternalReference" ? found : nil
  }

  private var otioAnyReference: JSONValue? {
    if let plain = self["media_reference"], plain != .null { return plain }
    let key = self["active_media_reference_key"]?.string ?? "DEFAULT_MEDIA"
    let found = self["media_references"]?[key]
    return found == .null ? nil : found
  }

  /// The reason why a clip shows nothing; nil if the clip refers to media.
  ///
  /// A clip shows nothing if it has no media reference, or if the project marks its media as
  /// missing or generated.
  var otioWhyNothing: String? {
    guard let reference = otioAnyReference else { return "has no media" }
    switch reference.otioKind {
    // A clip gets here only without a usable URL, and then an external reference is the same as
    // missing media.
    case "MissingReference", "ExternalReference": return "has no media"
    case "GeneratorReference": return "is a generated image"
    default: return nil
    }
  }

  /// The unsupported media of a clip, as text for messages.
  var otioReferenceDescription: String {
    switch otioAnyReference?.otioKind {
    case "ImageSequenceReference": "an image sequence, which is not supported"
    default: "media of an unknown kind"
    }
  }

  /// This value as a range in seconds, converted from OpenTimelineIO's floating-point values.
  var otioRange: (start: Rational, duration: Rational)? {
    guard let start = self["start_time"]?.otioTime, let length = self["duration"]?.otioTime else {
      return nil
    }
    return (start, length)
  }

  /// This value as a time in seconds, converted from OpenTimelineIO's floating-point value and
  /// rate.
  var otioTime: Rational? {
    guard let count = self["value"]?.number.flatMap(ProjectTime.nearest),
      let rate = ProjectTime.rate(self["rate"]?.number)
    else { return nil }
    return (count / rate).ifValid
  }

  /// The frame rate in which an item's range is given, or nil if the item has no range.
  var otioRate: Rational? {
    let range = [self["source_range"], otioReference?["available_range"]].compactMap(\.self)
    return ProjectTime.rate(range.first { $0 != .null }?["duration"]?["rate"]?.number)
  }

  /// The rational if this value is a string such as `1/240`; otherwise nil.
  ///
  /// The metadata stores exact values in this form.
  var otioFraction: Rational? { string.flatMap { try? Rational(parsing: $0) } }

  var otioMarker: CompositionMarker? {
    let exact = (self["metadata"]?[OpenTimelineDocument.key]?["range"]?.elements ?? [])
      .compactMap(\.otioFraction)
    guard let plain = self["marked_range"]?.otioRange else { return nil }
    let ends =
      exact.count == 2 && abs(exact[0].doubleValue - plain.start.doubleValue) < 1e-6
      ? exact : [plain.start, (plain.start + plain.duration).ifValid ?? plain.start]
    guard let start = try? ProjectTime.rounded(ends[0]),
      let end = try? ProjectTime.rounded(ends[1]),
      let range = try? TimeRange(start: start, end: end)
    else { return nil }
    return CompositionMarker(
      self["name"]?.string ?? "", range, color: self["color"]?.string ?? "GREEN",
      comment: self["comment"]?.string ?? "")
  }
}
