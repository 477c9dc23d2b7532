// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankMediaCore

/// A reader of Final Cut Pro's FCPXML 1.x: clips, connected, compound and multicam clips, and speeds.
///
/// A clip has its own time, which begins at its `start` and lasts for its `duration`. A `timeMap`
/// maps the clip's own time to the time of the clip's content. The position of a connected clip is
/// given in the time of the clip that it is connected to. The lane of the connected clip puts it
/// above or below that clip.
struct FinalCutProject {
  private struct Asset {
    var path: String
    var start: Rational
    var hasVideo: Bool
    var hasAudio: Bool
  }

  /// The content of a clip, and its connected clips with their lanes and offsets.
  private struct Played {
    var content: ProjectContent
    var connected: [Connected] = []

    /// Returns the connected clips moved to a later time.
    func later(by time: Rational) throws(MediaError) -> [Connected] {
      try connected.map { (other) throws(MediaError) in
        let at = try (other.at + time).checked("a time of the project")
        return Connected(lane: other.lane, at: at, content: other.content)
      }
    }
  }

  private struct Connected {
    var lane: Int
    var at: Rational
    var content: ProjectContent
  }

  private var media: ProjectMedia
  /// The content that could not be imported so far, one sentence each.
  private var notes: [String] = []
  private var assets: [String: Asset] = [:]
  private var sequences: [String: XMLElement] = [:]
  private var multicams: [String: XMLElement] = [:]
  /// The frame rate of each `format` element of the document, by its `id`.
  private var formats: [String: Rational] = [:]
  /// The frame rate of the sequence that is read; nil if the sequence's format does not state a
  /// rate.
  private var sequenceRate: Rational?
  private var mediaType = MediaType.video
  /// The number of clips that may still be read; see ``XMLElement/greatestClipCount``.
  private var budget = 0

  init(_ find: @escaping (String) throws(MediaError) -> MediaSource) { media = ProjectMedia(find) }

  var warnings: [String] { notes.uniqued() + media.warnings }

  static func name(_ document: XMLElement) -> String? { document.all("project").first?["name"] }

  mutating func composition(of document: XMLElement) throws(MediaError) -> Composition {
    budget = document.greatestClipCount
    for asset in document.all("asset") {
      guard let id = asset["id"], let path = asset["src"] ?? asset.first("media-rep")?["src"]
      else { continue }
      assets[id] = Asset(
        path: OpenTimelineURL.path(of: path), start: try Self.time(asset, "start") ?? .zero,
        hasVideo: asset["hasVideo"] == "1", hasAudio: asset["hasAudio"] == "1")
    }
    for item in document.all("media") {
      guard let id = item["id"] else { continue }
      sequences[id] = item.first("sequence")
      multicams[id] = item.first("multicam")
    }
    for format in document.all("format") {
      guard let id = format["id"], let duration = try Self.time(format, "frameDuration"),
        duration > .zero
      else { continue }
      formats[id] = Rational.one / duration
    }
    noteDropped(in: document)
    let projects = document.all("project")
    guard let sequence = projects.first?.first("sequence") ?? document.first("sequence") else {
      throw MediaError.invalidProject("it has no project with a sequence")
    }
    if projects.count > 1 { notes.append("only the first of \(projects.count) projects is read") }
    var composition = Composition()
    for kind in MediaType.allCases {
      mediaType = kind
      try media.add(self.sequence(sequence, depth: 0), kind, to: &composition)
    }
    return composition
  }

  private mutating func sequence(_ sequence: XMLElement, depth: Int) throws(MediaError)
    -> ProjectContent
  {
    guard let spine = sequence.first("spine") else { return ProjectContent() }
    let outerRate = sequenceRate
    sequenceRate = sequence["format"].flatMap { formats[$0] }
    defer { sequenceRate = outerRate }
    let start = try Self.time(sequence, "tcStart") ?? .zero
    return try flattened(row(spine, from: start, depth: depth + 1))
  }

  /// Reads a storyline: clips one after the other.
  private mutating func row(
    _ spine: XMLElement, from start: Rational, depth: Int
  ) throws(MediaError) -> Played {
    var row = Played(content: ProjectContent())
    for child in spine.children where child["offset"] != nil || child["duration"] != nil {
      if child.name == "transition" {
        notes.append("the transition \(Self.name(of: child)) is played as a cut")
        continue
      }
      guard Self.kinds.contains(child.name) || child.name == "audition" else { continue }
      let offset =
        try Self.time(child, "offset").map { (offset) throws(MediaError) in
          try (offset - start).checked("the offset of \(Self.describe(child))")
        } ?? row.content.duration
      let played = try clip(child, depth: depth + 1)
      guard offset >= row.content.duration else {
        throw MediaError.invalidProject(
          "\(Self.describe(child)) starts before the previous clip ends")
      }
      row.content = try row.content.padded(upTo: offset)
      try row.content.append(played.content)
      row.connected += try played.later(by: offset)
    }
    return row
  }

  private static let kinds = [
    "asset-clip", "clip", "video", "audio", "gap", "ref-clip", "sync-clip", "mc-clip", "title",
    "spine",
  ]

  /// Reads a clip, and moves its content so that it starts at zero.
  private mutating func clip(_ element: XMLElement, depth: Int) throws(MediaError) -> Played {
    budget -= 1
    guard depth < 64, budget > 0 else {
      throw MediaError.invalidProject("its clips are nested too deeply")
    }
    if element.name == "audition" {
      guard let chosen = element.children.first else { return Played(content: ProjectContent()) }
      return try clip(chosen, depth: depth + 1)
    }
    if element.name == "spine" { return try row(element, from: .zero, depth: depth) }
    let start: Rational
    if let stated = try Self.time(element, "start") {
      start = stated
    } else {
      start = try naturalStart(of: element) / conformedSpeed(of: element)
    }
    let location = Self.describe(element)
    var content = try content(element, depth: depth)
    let duration = try Self.time(element, "duration") ?? content?.duration ?? .zero
    guard duration > .zero else { throw MediaError.invalidProject("\(location) has no length") }
    let curve = try curve(element, from: start, lasting: duration)
    if element["enabled"] == "0" { content = nil }
    var played = Played(content: try ProjectContent(emptyFor: duration))
    if let leaf = self.leaf(element) {
      if element["enabled"] != "0", let asset = leaf {
        let shifted = curve.map { part in
          ProjectContent.CurvePart(
            start: part.start, end: part.end, from: part.from - asset.start,
            to: part.to - asset.start)
        }
        played.content = try ProjectContent(
          ProjectClip(path: asset.path, location: location), along: shifted)
      }
    } else if let content {
      played.content = try content.played(along: curve)
    }
    for child in element.children where Self.kinds.contains(child.name) {
      guard let lane = child["lane"].flatMap({ Int($0) }), lane != 0, lane.magnitude < 10_000
      else { continue }
      let offset = try Self.time(child, "offset") ?? start
      let at = try (offset - start).checked("the offset of \(Self.describe(child))")
      let inner = try clip(child, depth: depth + 1)
      played.connected.append(Connected(lane: lane, at: at, content: inner.content))
      played.connected += try inner.later(by: at).map {
        Connected(lane: $0.lane + lane, at: $0.at, content: $0.content)
      }
    }
    return played
  }

  /// Returns the start of a clip's content, which is the default of the clip's `start`.
  private func naturalStart(of element: XMLElement) throws(MediaError) -> Rational {
    guard let reference = element["ref"] else { return .zero }
    if let asset = assets[reference] { return asset.start }
    guard let sequence = sequences[reference] ?? multicams[reference] else { return .zero }
    return try Self.time(sequence, "tcStart") ?? .zero
  }

  /// Returns the asset of a clip that plays an asset and not other clips.
  ///
  /// The result is nil for a clip that contains other clips, and `.some(nil)` if the asset is
  /// missing or has no media of the current type.
  private func leaf(_ element: XMLElement) -> Asset?? {
    guard ["asset-clip", "video", "audio"].contains(element.name) else { return nil }
    guard let asset = element["ref"].flatMap({ assets[$0] }) else { return .some(nil) }
    let isWanted =
      switch mediaType {
      case .video:
        asset.hasVideo && element.name != "audio" && element["srcEnable"] != "audio"
      case .audio:
        asset.hasAudio && element.name != "video" && element["srcEnable"] != "video"
      }
    return .some(isWanted ? asset : nil)
  }

  /// Returns the content of a clip that contains other clips, in the outer clip's own time.
  ///
  /// The result is nil for gaps and generated clips.
  private mutating func content(
    _ element: XMLElement, depth: Int
  ) throws(MediaError) -> ProjectContent? {
    switch element.name {
    case "clip", "sync-clip":
      var layers: [ProjectContent] = []
      for child in element.children
      where Self.kinds.contains(child.name) && (child["lane"] ?? "0") == "0" {
        let at = try Self.time(child, "offset") ?? .zero
        let inner = try clip(child, depth: depth + 1)
        layers.append(try flattened(Self.shifted(inner, by: at)))
      }
      return try ProjectContent.stacked(layers)
    case "ref-clip":
      guard let sequence = element["ref"].flatMap({ sequences[$0] }) else {
        throw MediaError.invalidProject(
          "\(Self.describe(element)) refers to a missing compound clip")
      }
      let isSilenced =
        mediaType == .video
        ? element["srcEnable"] == "audio" : element["srcEnable"] == "video"
      if isSilenced { return nil }
      let content = try self.sequence(sequence, depth: depth + 1)
      let start = try Self.time(sequence, "tcStart") ?? .zero
      return try ProjectContent.stacked([Self.later(content, by: start)])
    case "mc-clip":
      return try multicam(element, depth: depth)
    case "title", "video":
      if element.name == "title" || element["ref"].map({ assets[$0] == nil }) ?? true {
        notes.append("\(Self.describe(element)) is a generated clip and shows nothing")
      }
      return nil
    default: return nil
    }
  }

  /// Returns the content of the active angle of a multicam clip, in the clip's own time.
  ///
  /// An `mc-source` names an angle and the media taken from it: video, audio or both. Nil if no
  /// angle has media of the current type.
  private mutating func multicam(
    _ element: XMLElement, depth: Int
  ) throws(MediaError) -> ProjectContent? {
    guard let multicam = element["ref"].flatMap({ multicams[$0] }) else {
      throw MediaError.invalidProject(
        "\(Self.describe(element)) refers to a missing multicam clip")
    }
    if let enabled = element["srcEnable"], enabled != "all", enabled != mediaType.rawValue {
      return nil
    }
    let angles = multicam.children.filter { $0.name == "mc-angle" }
    let sources = element.children.filter { $0.name == "mc-source" }
    let active = sources.filter { ["all", mediaType.rawValue].contains($0["srcEnable"] ?? "all") }
    var chosen: [XMLElement] = []
    for source in active {
      guard let angle = angles.first(where: { $0["angleID"] == source["angleID"] }) else {
        throw MediaError.invalidProject("\(Self.describe(element)) refers to a missing angle")
      }
      chosen.append(angle)
    }
    if sources.isEmpty { chosen = Array(angles.prefix(1)) }
    if chosen.count > 1 { notes.append("audio of several angles is not mixed; the first is heard") }
    guard let angle = chosen.first else { return nil }
    let outerRate = sequenceRate
    sequenceRate = multicam["format"].flatMap { formats[$0] }
    defer { sequenceRate = outerRate }
    let start = try Self.time(multicam, "tcStart") ?? .zero
    let content = try flattened(row(angle, from: start, depth: depth + 1))
    return try ProjectContent.stacked([Self.later(content, by: start)])
  }

  /// Adds a note for each kind of element in the document that this reader never imports.
  private mutating func noteDropped(in document: XMLElement) {
    let names = Set(document.names)
    if names.contains(where: { $0.hasPrefix("filter-") || $0.hasPrefix("adjust-") }) {
      notes.append("effects and adjustments are left out")
    }
    if names.contains("marker") || names.contains("chapter-marker") {
      notes.append("markers are left out")
    }
  }

  /// Merges the content of a clip and its connected clips into one content.
  ///
  /// In overlaps, video of the higher lane covers the lower one, and audio of the main clip covers
  /// that of connected clips.
  private func flattened(_ played: Played) throws(MediaError) -> ProjectContent {
    var layers: [(lane: Int, content: ProjectContent)] = [(0, played.content)]
    for item in played.connected {
      layers.append((item.lane, try Self.later(item.content, by: item.at)))
    }
    let isVideo = mediaType == .video
    func height(_ lane: Int) -> Int { isVideo ? lane : lane == 0 ? Int.max : -abs(lane) }
    let sorted = layers.enumerated().sorted {
      (height($0.element.lane), $0.offset) < (height($1.element.lane), $1.offset)
    }
    return try ProjectContent.inSequence(sorted.map(\.element.content))
  }

  private static func shifted(_ played: Played, by time: Rational) throws(MediaError) -> Played {
    Played(
      content: try later(played.content, by: time),
      connected: try played.later(by: time))
  }

  /// Returns content moved later by a time.
  ///
  /// A negative time moves it earlier, and cuts off everything before zero.
  private static func later(
    _ content: ProjectContent, by time: Rational
  ) throws(MediaError) -> ProjectContent {
    if time < .zero {
      let start = -time
      guard start < content.duration else { return ProjectContent() }
      return try content.played(along: [
        .init(
          start: .zero, end: content.duration - start, from: start,
          to: content.duration)
      ])
    }
    var later = try ProjectContent(emptyFor: time)
    try later.append(content)
    return later
  }
}

// FCPXML times, and the mapping from a clip's time to its content's time.
extension FinalCutProject {
  /// Returns the curve from a clip's time to its content's time: the clip's `timeMap`, or the same
  /// time if the clip has no `timeMap`.
  fileprivate mutating func curve(
    _ element: XMLElement, from start: Rational, lasting duration: Rational
  ) throws(MediaError) -> [ProjectContent.CurvePart] {
    let end = try (start + duration).checked("the end of \(Self.describe(element))")
    let speed = try conformedSpeed(of: element)
    return try unconformedCurve(element, from: start, to: end, lasting: duration).map {
      .init(start: $0.start, end: $0.end, from: $0.from * speed, to: $0.to * speed)
    }
  }

  /// The seconds of a clip's content per second of the clip, if the clip is conformed to the frame
  /// rate of its sequence; otherwise 1.
  ///
  /// A conformed clip shows one frame of its media in each frame of the sequence.
  private func conformedSpeed(of element: XMLElement) throws(MediaError) -> Rational {
    guard let conform = element.first("conform-rate"), conform["scaleEnabled"] != "0",
      let text = conform["srcFrameRate"], let sequenceRate
    else { return .one }
    guard let number = Double(text), number > 0, number < 100_000 else {
      throw MediaError.invalidProject(
        "the frame rate of \(Self.describe(element)) is damaged: \(text.prefix(40))")
    }
    // FCPXML rounds rates such as 24000/1001 to two digits.
    guard let exact = ProjectTime.rate(number, tolerance: 0.01) else { return .one }
    return sequenceRate / exact
  }

  private mutating func unconformedCurve(
    _ element: XMLElement, from start: Rational, to end: Rational, lasting duration: Rational
  ) throws(MediaError) -> [ProjectContent.CurvePart] {
    guard let map = element.first("timeMap") else {
      return [.init(start: .zero, end: duration, from: start, to: end)]
    }
    var points: [(time: Rational, value: Rational)] = []
    for point in map.children where point.name == "timept" {
      guard let time = try Self.time(point, "time"), let value = try Self.time(point, "value"),
        points.last.map({ $0.time < time }) ?? true
      else {
        throw MediaError.invalidProject("the time map of \(Self.describe(element)) is damaged")
      }
      for key in ["inTime", "outTime"] where (try Self.time(point, key) ?? .zero) > .zero {
        notes.append("smooth speed changes of \(Self.describe(element)) become linear")
      }
      points.append((time, value))
    }
    guard points.count > 1 else {
      throw MediaError.invalidProject("the time map of \(Self.describe(element)) has no curve")
    }
    func value(_ time: Rational, _ index: Int) -> Rational {
      let (one, two) = (points[index], points[index + 1])
      return (two.value - one.value) * (time - one.time) / (two.time - one.time) + one.value
    }
    var parts: [ProjectContent.CurvePart] = []
    for index in 0..<points.count - 1 {
      // Before the first point and after the last point of a time map, the nearest line between two
      // points is extended.
      let low = index == 0 ? start : max(start, points[index].time)
      let high = index == points.count - 2 ? end : min(end, points[index + 1].time)
      guard low < high else { continue }
      parts.append(
        .init(
          start: low - start, end: high - start,
          from: value(low, index), to: value(high, index)))
    }
    return parts
  }

  /// Parses a time such as `1001/30000s`; returns nil if the attribute is missing.
  fileprivate static func time(_ element: XMLElement, _ key: String) throws(MediaError) -> Rational?
  {
    guard let text = element[key] else { return nil }
    let parts = text.dropLast().split(separator: "/", omittingEmptySubsequences: false)
    guard text.hasSuffix("s"), (1...2).contains(parts.count),
      let above = Rational.decimal(parts[0]),
      let below = parts.count == 2 ? Rational.decimal(parts[1]) : .one, below > .zero,
      let time = (above / below).ifValid
    else {
      throw MediaError.invalidProject(
        "the \(key) of \(describe(element)) is not a time: \(text.prefix(40))")
    }
    return time
  }

  fileprivate static func name(of element: XMLElement) -> String { element["name"] ?? "" }

  fileprivate static func describe(_ element: XMLElement) -> String {
    "the \(element.name) \(element["name"].map { "\"\($0)\"" } ?? "without a name")"
  }
}

extension Rational {
  /// Parses a whole number or a decimal fraction.
  fileprivate static func decimal(_ text: Substring) -> Rational? {
    if let whole = Int64(text) { return Rational(whole) }
    return Double(text).flatMap(ProjectTime.nearest)
  }
}

extension XMLElement {
  /// The greatest number of clips that are read from this document.
  ///
  /// Sequences and compound clips inside each other can multiply without bounds, so the total is
  /// limited to a multiple of the number of elements.
  var greatestClipCount: Int { max(1_000, 100 * elementCount) }
}
