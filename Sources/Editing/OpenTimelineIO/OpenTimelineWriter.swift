// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore

/// A writer of OpenTimelineIO objects.
enum OpenTimelineWriter {
  static func timeline(_ project: OpenTimelineDocument) throws(MediaError) -> JSONValue {
    let tracks = try project.composition.tracks.map(track)
    let markers = project.composition.markers.map(marker)
    return object(
      "Timeline.1", name: project.name,
      [
        "global_start_time": .null,
        "tracks": item(
          "Stack.1", name: "tracks", range: .null, markers: markers,
          ["children": .array(tracks)]),
      ])
  }

  private static func track(_ track: CompositionTrack) throws(MediaError) -> JSONValue {
    var exact: [String: JSONValue] = [:]
    if let rotation = track.rotation { exact["rotation"] = .number(Double(rotation)) }
    if let language = track.language { exact["language"] = .string(language) }
    var children: [JSONValue] = []
    for segment in track.segments { children += try clips(segment) }
    return item(
      "Track.1", name: track.mediaType.rawValue, range: .null, exact: exact,
      [
        "kind": .string(track.mediaType == .video ? "Video" : "Audio"),
        "children": .array(children),
      ])
  }

  /// Returns the items of a segment: one item, or a row of clips for a ramp.
  static func clips(_ segment: TrackSegment) throws(MediaError) -> [JSONValue] {
    let length = segment.target.duration
    guard let source = segment.source, let mapping = segment.mapping else {
      return [
        item(
          "Gap.1", name: "", range: range(.zero, length),
          exact: ["segment": .object(["duration": .string(length.description)])], [:])
      ]
    }
    let pieces = try exactly("the ramp \(segment)") { () throws(MediaError) in
      try mapping.linearPieces(perSecond: 25, atLeast: 8)
    }
    var exact: [String: JSONValue] = [
      "motion": .string("constant"), "reversed": .bool(mapping.isReversed),
      "duration": .string(length.description),
      "source": strings([mapping.whole.start.seconds, mapping.whole.end.seconds]),
      "pieces": .number(Double(pieces.count)),
    ]
    switch mapping.motion {
    case .constant: break
    case .hold: exact["motion"] = .string("hold")
    case .ramp(let ramp):
      exact["motion"] = .string("ramp")
      exact["ramp"] = strings([ramp.from.fraction, ramp.to.fraction])
      exact["easing"] = .string(ramp.easing.rawValue)
      exact["part"] = strings([mapping.part.lower, mapping.part.upper])
    }
    var clips: [JSONValue] = []
    for (number, piece) in pieces.enumerated() {
      exact["piece"] = .number(Double(number))
      let effects = try effects(piece)
      clips.append(
        item(
          "Clip.2", name: source.path.lastPathComponent,
          range: range(piece.sourceStart, piece.target.duration), effects: effects,
          exact: ["segment": .object(exact)],
          [
            "active_media_reference_key": .string("DEFAULT_MEDIA"),
            "media_references": .object(["DEFAULT_MEDIA": reference(source)]),
          ]))
    }
    return clips
  }

  private static func effects(_ piece: PlaybackMapping) throws(MediaError) -> [JSONValue] {
    let speed = try exactly("the speed of \(piece)") { () throws(MediaError) in
      try piece.meanSpeed()
    }
    guard let speed else { return [effect("FreezeFrame", 0)] }
    guard speed != .normal || piece.isReversed else { return [] }
    let scalar = speed.fraction.doubleValue
    return [effect("LinearTimeWarp", piece.isReversed ? -scalar : scalar)]
  }

  private static func effect(_ kind: String, _ scalar: Double) -> JSONValue {
    object(
      "\(kind).1", name: "",
      ["effect_name": .string(kind), "enabled": .bool(true), "time_scalar": .number(scalar)])
  }

  private static func reference(_ source: MediaSource) -> JSONValue {
    let tracks = source.tracks.map { track in
      var members: [String: JSONValue] = [
        "media_type": .string(track.mediaType.rawValue),
        "rotation": .number(Double(track.rotation)),
      ]
      if let language = track.language { members["language"] = .string(language) }
      return JSONValue.object(members)
    }
    return object(
      "ExternalReference.1", name: "",
      exact: [
        "path": .string(source.path), "duration": .string(source.duration.seconds.description),
        "tracks": .array(tracks),
      ],
      [
        "available_image_bounds": .null,
        "available_range": range(.zero, source.duration.seconds),
        "target_url": .string(OpenTimelineURL.text(of: source.path)),
      ])
  }

  private static func marker(_ marker: CompositionMarker) -> JSONValue {
    object(
      "Marker.2", name: marker.name,
      exact: ["range": strings([marker.range.start.seconds, marker.range.end.seconds])],
      [
        "color": .string(marker.color), "comment": .string(marker.comment),
        "marked_range": range(marker.range.start.seconds, marker.range.duration),
      ])
  }

  // MARK: Objects

  private static func object(
    _ schema: String, name: String, exact: [String: JSONValue] = [:],
    _ members: [String: JSONValue]
  ) -> JSONValue {
    let own: [String: JSONValue] = [
      "OTIO_SCHEMA": .string(schema), "name": .string(name),
      "metadata": .object(exact.isEmpty ? [:] : [OpenTimelineDocument.key: .object(exact)]),
    ]
    return .object(own.merging(members) { $1 })
  }

  private static func item(
    _ schema: String, name: String, range: JSONValue, effects: [JSONValue] = [],
    markers: [JSONValue] = [], exact: [String: JSONValue] = [:],
    _ members: [String: JSONValue]
  ) -> JSONValue {
    let common: [String: JSONValue] = [
      "source_range": range, "effects": .array(effects), "markers": .array(markers),
      "enabled": .bool(true),
    ]
    return object(schema, name: name, exact: exact, common.merging(members) { $1 })
  }

  private static func range(_ start: Rational, _ duration: Rational) -> JSONValue {
    .object([
      "OTIO_SCHEMA": .string("TimeRange.1"), "start_time": time(start), "duration": time(duration),
    ])
  }

  /// Writes a time as a value and a rate.
  ///
  /// The rate is the timescale of the `MediaTime` if the time fits one, and 1 otherwise.
  private static func time(_ seconds: Rational) -> JSONValue {
    let time = try? MediaTime(seconds)
    return .object([
      "OTIO_SCHEMA": .string("RationalTime.1"),
      "rate": .number(time.map { Double($0.timescale) } ?? 1),
      "value": .number(time.map { Double($0.value) } ?? seconds.doubleValue),
    ])
  }

  private static func strings(_ numbers: [Rational]) -> JSONValue {
    .array(numbers.map { .string($0.description) })
  }
}

/// Conversions between file paths and OpenTimelineIO URLs.
enum OpenTimelineURL {
  static func text(of path: String) -> String {
    var text = path.hasPrefix("/") ? "file://" : ""
    for byte in path.systemBytes {
      let letter = UnicodeScalar(byte)
      let isPlain =
        byte < 128
        && (("a"..."z").contains(letter) || ("A"..."Z").contains(letter)
          || ("0"..."9").contains(letter) || "/-._~!$&'()+,;=@ ".unicodeScalars.contains(letter))
      if isPlain && letter != " " {
        text.unicodeScalars.append(letter)
      } else {
        let digits = Array("0123456789ABCDEF")
        text += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }
    return text
  }

  /// Returns the path of a file URL; other text is taken as a path and returned.
  static func path(of text: String) -> String {
    var rest = Substring(text)
    for prefix in ["file://localhost/", "file:///"] where text.hasPrefix(prefix) {
      rest = text.dropFirst(prefix.count - 1)
    }
    var bytes: [UInt8] = []
    var input = Array(rest.utf8)[...]
    while let byte = input.popFirst() {
      let digits = input.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2,
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        input = input.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(systemBytes: bytes)
  }
}
