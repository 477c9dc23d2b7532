// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Where the stack of tracks of a document is.
enum OpenTimelineRoot {
  /// The stack that a document plays: a timeline's, or one around a track or a clip by itself.
  ///
  /// - Throws: `MediaError` with `.invalidProject` for a document of another kind.
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
        throw .invalidProject("it is a collection of \(timelines.count) timelines, not of one")
      }
      return try stack(of: timeline)
    default: break
    }
    throw .invalidProject("it is no OpenTimelineIO timeline")
  }
}

extension JSONValue {
  /// The name of an object's schema without its version, by its present name; empty for what is
  /// no object of OpenTimelineIO.
  var otioKind: String {
    let name = self["OTIO_SCHEMA"]?.string?.split(separator: ".").first.map(String.init) ?? ""
    return switch name {
    // Names of the first versions, which its library still takes.
    case "Sequence": "Track"
    case "Filler": "Gap"
    case "SerializeableCollection": "SerializableCollection"
    default: name
    }
  }

  /// Whether an item or an effect is switched on.
  func otioIsEnabled(_ location: String) throws(MediaError) -> Bool {
    guard let value = self["enabled"] else { return true }
    guard let isEnabled = value.bool else { throw value.otioUnreadable("enabled", of: location) }
    return isEnabled
  }

  /// The kind of a track; what stands in a stack without one is pictures.
  func otioTrackKind(_ location: String) throws(MediaError) -> String {
    guard otioKind == "Track", let value = self["kind"] else { return "Video" }
    guard let kind = value.string else { throw value.otioUnreadable("kind", of: location) }
    return kind
  }

  /// The elements of a member; none where there is no such member.
  func otioItems(_ key: String, _ location: String) throws(MediaError) -> [JSONValue] {
    switch self[key] {
    case nil: return []
    case .array(let items): return items
    // Some programs write none like this.
    case .null where key != "children": return []
    case .some(let value): throw value.otioUnreadable(key, of: location)
    }
  }

  /// The address of a movie; nil where there is none.
  func otioAddress(_ location: String) throws(MediaError) -> String? {
    guard let value = self["target_url"], value != .null else { return nil }
    guard let address = value.string else { throw value.otioUnreadable("target_url", of: location) }
    return address.contains { !$0.isWhitespace } ? address : nil
  }

  /// A member that is a range; nil where there is none, or it is null.
  ///
  /// - Throws: `MediaError` with `.invalidProject` for one that cannot be read: without it, other
  ///   frames would be shown.
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

  /// A member that is a time; nil where there is none.
  func otioTime(_ key: String, _ location: String) throws(MediaError) -> Rational? {
    guard let value = self[key], value != .null else { return nil }
    guard let time = value.otioTime else { throw value.otioUnreadable(key, of: location) }
    return time
  }

  /// What is said of a value that is there and cannot be read.
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

  /// The movie that a clip plays; nil where it plays another kind of media or none.
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

  /// Why a clip shows nothing; nil where it names media.
  ///
  /// The project itself says that the media is missing, or a program would generate it.
  var otioWhyNothing: String? {
    guard let reference = otioAnyReference else { return "has no media" }
    switch reference.otioKind {
    // Of a movie only where its address is empty.
    case "MissingReference", "ExternalReference": return "has no media"
    case "GeneratorReference": return "is a generated picture"
    default: return nil
    }
  }

  /// What a clip plays that is no movie, for messages.
  var otioReferenceDescription: String {
    switch otioAnyReference?.otioKind {
    case "ImageSequenceReference": "a sequence of images, which is not read"
    default: "media of an unknown kind"
    }
  }

  /// A range of plain values.
  var otioRange: (start: Rational, duration: Rational)? {
    guard let start = self["start_time"]?.otioTime, let length = self["duration"]?.otioTime else {
      return nil
    }
    return (start, length)
  }

  /// A time of a value and a rate, both in floating point.
  var otioTime: Rational? {
    guard let count = self["value"]?.number.flatMap(ProjectTime.nearest),
      let rate = ProjectTime.rate(self["rate"]?.number)
    else { return nil }
    return (count / rate).ifValid
  }

  /// The frames per second in which an item's range is counted.
  var otioRate: Rational? {
    let range = [self["source_range"], otioReference?["available_range"]].compactMap(\.self)
    return ProjectTime.rate(range.first { $0 != .null }?["duration"]?["rate"]?.number)
  }

  /// A fraction of the exact values.
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
