// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankMediaCore

/// A reader of `xmeml`, the XML format of Final Cut Pro 7, which Premiere and DaVinci Resolve write.
///
/// Clips, ranges, constant speeds, nested sequences and tracks are read. A clip's `start` and `end`
/// are frames of the sequence. Its `in` and `out` are frames of the clip after its change of speed.
struct FinalCut7Project {
  /// The file and sequence elements by `id`.
  ///
  /// The first use contains the content; later uses name only the `id`.
  private var files: [String: XMLElement] = [:]
  private var sequences: [String: XMLElement] = [:]
  private var media: ProjectMedia
  private var notes: [String] = []
  private var mediaType = MediaType.video
  /// The number of clips that may still be read; see ``XMLElement/greatestClipCount``.
  private var budget = 0

  init(_ find: @escaping (String) throws(MediaError) -> MediaSource) { media = ProjectMedia(find) }

  var warnings: [String] { notes.uniqued() + media.warnings }

  static func name(_ document: XMLElement) -> String? {
    document.all("sequence").first?.text(of: "name")
  }

  mutating func composition(of document: XMLElement) throws(MediaError) -> Composition {
    budget = document.greatestClipCount
    for file in document.all("file") where file.first("pathurl") != nil || file.first("name") != nil
    {
      if let id = file["id"], files[id] == nil { files[id] = file }
    }
    let all = document.all("sequence").filter { $0.first("media") != nil }
    for sequence in all { if let id = sequence["id"] { sequences[id] = sequence } }
    // A sequence that is inside another sequence, or named by it, is a part of that sequence.
    let nested = Set(all.flatMap { $0.all("sequence") }.compactMap { $0["id"] })
    let outer = Self.outermost(document).filter { sequence in
      sequence.first("media") != nil && sequence["id"].map { !nested.contains($0) } ?? true
    }
    guard let sequence = outer.first ?? all.first else {
      throw MediaError.invalidProject("it has no sequence")
    }
    if outer.count > 1 { notes.append("only the first of \(outer.count) sequences is read") }
    if sequence.all("marker").first != nil { notes.append("markers are left out") }
    var composition = Composition()
    for kind in MediaType.allCases {
      mediaType = kind
      try media.add(self.sequence(sequence, depth: 0), kind, to: &composition)
    }
    return composition
  }

  /// The sequences in an element that are not inside another one.
  private static func outermost(_ element: XMLElement) -> [XMLElement] {
    element.children.flatMap { $0.name == "sequence" ? [$0] : outermost($0) }
  }

  private mutating func sequence(
    _ sequence: XMLElement, depth: Int
  ) throws(MediaError) -> ProjectContent {
    guard depth < 32 else { throw MediaError.invalidProject("its sequences are nested too deeply") }
    guard let rate = try Self.rate(of: sequence) else {
      throw MediaError.invalidProject("\(Self.describe(sequence)) has no frame rate")
    }
    let tracks = sequence.first("media")?.first(mediaType.rawValue)?.children ?? []
    var layers: [ProjectContent] = []
    for track in tracks where track.name == "track" && track.text(of: "enabled") != "FALSE" {
      layers.append(try self.track(track, rate, depth: depth))
    }
    // The video of a higher track covers that of a lower one. Audio tracks are not mixed: the first
    // one is heard.
    if mediaType == .audio {
      layers.reverse()
      if Set(layers.filter(\.showsAnything).map(\.summary)).count > 1 {
        notes.append("audio tracks are not mixed; the lowest one is heard")
      }
    }
    return try ProjectContent.stacked(layers)
  }

  private mutating func track(
    _ track: XMLElement, _ rate: Rational, depth: Int
  ) throws(MediaError) -> ProjectContent {
    var layers: [ProjectContent] = []
    for (index, item) in track.children.enumerated() {
      switch item.name {
      case "transitionitem": notes.append("transitions are played as cuts")
      case "generatoritem":
        notes.append("\(Self.describe(item)) is a generated clip and shows nothing")
      case "clipitem":
        budget -= 1
        guard budget > 0 else {
          throw MediaError.invalidProject("its sequences are nested too deeply")
        }
        if item.text(of: "enabled") == "FALSE" { continue }
        // At a transition, the start or the end of a clip is -1. The clip then covers the whole
        // transition.
        var start = try Self.frames(item, "start") ?? 0
        var end = try Self.frames(item, "end") ?? 0
        if start < 0, index > 0 {
          start = try Self.frames(track.children[index - 1], "start") ?? 0
        }
        if end < 0, index + 1 < track.children.count {
          end = try Self.frames(track.children[index + 1], "end") ?? 0
        }
        guard start >= 0, start < end else {
          throw MediaError.invalidProject("\(Self.describe(item)) has no length")
        }
        let length = Rational(end - start) / rate
        guard let shown = try clip(item, lasting: length, rate, depth: depth) else { continue }
        var layer = try ProjectContent(emptyFor: Rational(start) / rate)
        try layer.append(shown)
        layers.append(layer)
      default: break
      }
    }
    return try ProjectContent.inSequence(layers)
  }

  /// Returns the content that a clip plays; nil for a clip without media of the requested type.
  private mutating func clip(
    _ item: XMLElement, lasting length: Rational, _ sequenceRate: Rational, depth: Int
  ) throws(MediaError) -> ProjectContent? {
    let location = Self.describe(item)
    let rate = try Self.rate(of: item) ?? sequenceRate
    let speed = try speed(of: item)
    let start = Rational(try Self.frames(item, "in") ?? 0) / rate
    if let nested = item.first("sequence") {
      let known = nested["id"].flatMap { sequences[$0] }
      guard let sequence = nested.first("media") == nil ? known : nested else {
        throw MediaError.invalidProject("\(location) refers to a missing sequence")
      }
      let content = try self.sequence(sequence, depth: depth + 1)
      return try content.played(along: [
        Self.part(length, from: start, speed, of: content.duration)
      ])
    }
    guard let named = item.first("file") else {
      notes.append("\(location) is a generated clip and shows nothing")
      return nil
    }
    let file = named["id"].flatMap { files[$0] } ?? named
    guard let path = Self.path(of: file) ?? item.text(of: "name"), !path.isEmpty else {
      throw MediaError.invalidProject("\(location) does not name its file")
    }
    var whole = Rational.zero
    if speed < .zero { whole = try media.source(path).duration.seconds }
    return try ProjectContent(
      ProjectClip(path: path, location: location),
      along: [Self.part(length, from: start, speed, of: whole)])
  }

  /// Returns the content's times at the start and the end of a clip.
  ///
  /// With a change of speed, `in` counts frames of the retimed clip. In reverse playback, `in`
  /// counts from the end.
  private static func part(
    _ length: Rational, from start: Rational, _ speed: Rational, of whole: Rational
  ) throws(MediaError) -> ProjectContent.CurvePart {
    let first = speed < .zero ? whole + start * speed : start * speed
    return .init(start: .zero, end: length, from: first, to: first + length * speed)
  }

  /// Returns the speed of a clip, negative in reverse.
  private mutating func speed(of item: XMLElement) throws(MediaError) -> Rational {
    var speed = Rational.one
    for effect in item.all("effect") {
      guard effect.text(of: "effectid")?.lowercased() == "timeremap" else {
        notes.append("effects are left out")
        continue
      }
      var isReversed = false
      for parameter in effect.children where parameter.name == "parameter" {
        let value = parameter.text(of: "value") ?? ""
        switch parameter.text(of: "parameterid")?.lowercased() {
        case "speed":
          guard let percent = Double(value), let exact = ProjectTime.nearest(percent) else {
            throw MediaError.invalidProject("\(Self.describe(item)) has an invalid speed")
          }
          speed = exact / 100
        case "reverse": isReversed = value.uppercased() == "TRUE"
        case "variablespeed" where value != "0":
          notes.append("the variable speed of \(Self.describe(item)) is played as a constant one")
        default: break
        }
      }
      if isReversed, speed > .zero { speed = -speed }
    }
    return try speed.checked("the speed of \(Self.describe(item))")
  }

  /// The frames per second of an element's `rate`; nil if it has none.
  private static func rate(of element: XMLElement) throws(MediaError) -> Rational? {
    guard let rate = element.first("rate"), let text = rate.text(of: "timebase") else { return nil }
    guard let base = Int64(text), (1...10_000).contains(base) else {
      throw MediaError.invalidProject("\(describe(element)) has an invalid frame rate")
    }
    let isTelevision = rate.text(of: "ntsc")?.uppercased() == "TRUE"
    return isTelevision ? Rational(Int128(base) * 1000, over: 1001) : Rational(base)
  }

  private static func frames(_ element: XMLElement, _ name: String) throws(MediaError) -> Int64? {
    guard let text = element.text(of: name), !text.isEmpty else { return nil }
    guard let frames = Int64(text), frames.magnitude < 1 << 40 else {
      throw MediaError.invalidProject(
        "the \(name) of \(describe(element)) is not a frame: \(text.prefix(40))")
    }
    return frames
  }

  /// Returns the path of a file element.
  private static func path(of file: XMLElement) -> String? {
    guard let url = file.text(of: "pathurl"), !url.isEmpty else { return file.text(of: "name") }
    let path = OpenTimelineURL.path(of: url)
    // A Windows path, such as /C:/clips/a.mov, does not exist on this system, so only the file name
    // is kept.
    let isOfWindows = path.dropFirst(path.hasPrefix("/") ? 1 : 0).dropFirst().hasPrefix(":/")
    return isOfWindows ? path.split(separator: "/").last.map(String.init) : path
  }

  private static func describe(_ element: XMLElement) -> String {
    "the \(element.name) \(element.text(of: "name").map { "\"\($0)\"" } ?? "without a name")"
  }
}

extension ProjectContent {
  /// A text that lists all pieces of the content, so that tracks can be compared.
  fileprivate var summary: String {
    pieces.map { "\($0.start) \($0.end) \($0.shown?.clip.path ?? "") \($0.shown?.from ?? .zero)" }
      .joined(separator: " ")
  }
}
