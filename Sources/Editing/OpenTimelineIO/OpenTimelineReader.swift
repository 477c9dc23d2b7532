// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A reader of OpenTimelineIO objects, following the rules of the OpenTimelineIO library.
///
/// The children of a track follow each other from zero. The children of a stack start together; the
/// last one is on top, and empty parts are transparent. A `source_range` trims an item, in the time
/// of the item's own content. The item lasts as long as this range, whatever its effects.
struct OpenTimelineReader {
  private var media: ProjectMedia
  private var notes: [String] = []
  /// The video tracks before they are merged, the lowest first.
  private(set) var videoTracks: [CompositionTrack] = []
  /// Clips that show nothing, each with the reason.
  private var missing: [String] = []

  /// The greatest nesting depth of items.
  ///
  /// A damaged or hostile file with deeper nesting could exhaust the call stack.
  private static let depthLimit = 64

  /// A track of the root stack.
  private struct Layer {
    var name: String
    var track: JSONValue
    var content: ProjectContent
  }

  init(_ find: @escaping (String) throws(MediaError) -> MediaSource) { media = ProjectMedia(find) }

  /// The content that could not be imported, one sentence each.
  var warnings: [String] { notes + media.warnings }

  mutating func composition(of document: JSONValue) throws(MediaError) -> Composition {
    let stack = try OpenTimelineRoot.stack(of: document)
    var videos: [Layer] = []
    var audios: [Layer] = []
    var audiosBelow = 0
    for (number, child) in try stack.otioItems("children", "the stack of tracks").enumerated() {
      let name = "track \(number + 1)"
      guard try child.otioIsEnabled(name) else {
        notes.append("\(name) is disabled and left out")
        continue
      }
      switch try child.otioTrackKind(name) {
      case "Video":
        if videos.isEmpty { audiosBelow = audios.count }
        videos.append(
          Layer(name: name, track: child, content: try content(of: child, .video, name, depth: 0)))
      case "Audio":
        do {
          let content = try content(of: child, .audio, name, depth: 0)
          audios.append(Layer(name: name, track: child, content: content))
        } catch  where audios.contains(where: \.content.showsAnything) {
          // An export contains only the first audio track. An error in a later track is therefore
          // only reported, and that track is left out.
          notes.append("\(name) is left out: \(error)")
        }
      case let kind: notes.append("\(name) is of kind \(kind) and left out")
      }
    }
    let end = (videos + audios).map(\.content.duration).max() ?? .zero
    let curve = try curve(stack, lasting: end, "the stack of tracks")
    var composition = Composition()
    for (number, item) in (stack["markers"]?.elements ?? []).enumerated() {
      if let marker = item.otioMarker {
        composition.markers.append(marker)
      } else {
        notes.append("marker \(number + 1) has an invalid range and is left out")
      }
    }
    composition.tracks = try heard(audios, along: curve, &audiosBelow)
    if !videos.isEmpty {
      var seen = try ProjectContent.stacked(videos.map(\.content))
      if let curve { seen = try seen.played(along: curve) }
      let track = try Self.tagged(media.track(seen, .video), by: videos.map(\.track))
      videoTracks = try videos.count > 1 ? separate(videos, along: curve) : [track]
      composition.tracks.insert(track, at: min(audiosBelow, composition.tracks.count))
    }
    if let missing = missing.first, composition.sources.isEmpty {
      throw MediaError.invalidProject("no clip refers to a movie: \(missing)")
    }
    return composition
  }

  /// Converts the video tracks one by one, and notes those that others hide.
  private mutating func separate(
    _ videos: [Layer], along curve: [ProjectContent.CurvePart]?
  ) throws(MediaError) -> [CompositionTrack] {
    var tracks: [CompositionTrack] = []
    for (number, layer) in videos.enumerated() {
      var content = layer.content
      if let curve { content = try content.played(along: curve) }
      // The warnings of the media are those of the merged track.
      var media = media
      var track: CompositionTrack?
      do throws(MediaError) {
        let whole = try Self.tagged(media.track(content, .video), by: [layer.track])
        tracks.append(whole)
        track = whole
      } catch  where error.code == .fileNotFound {
        // The merged track is complete, so it does not show the missing media.
      }
      let above = videos[(number + 1)...].map(\.content)
      guard layer.content.showsAnything, !above.isEmpty,
        try layer.content.isHidden(below: .stacked(above))
      else { continue }
      var names: [String] = []
      for case let path? in (track?.segments ?? []).map(\.source?.path)
      where !names.contains(path) {
        names.append(path)
      }
      let files = names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
      notes.append("\(layer.name)\(files) is hidden by the track above and left out")
    }
    return tracks
  }

  /// Converts the audio tracks.
  ///
  /// An export contains only the first one.
  private mutating func heard(
    _ audios: [Layer], along curve: [ProjectContent.CurvePart]?, _ below: inout Int
  ) throws(MediaError) -> [CompositionTrack] {
    // An export contains only the first audio track. Empty tracks before the first audible track
    // are dropped, so that the export contains the audible one.
    let silent = audios.firstIndex(where: \.content.showsAnything) ?? 0
    below = max(0, below - silent)
    var tracks: [CompositionTrack] = []
    for audio in audios.dropFirst(silent) {
      do throws(MediaError) {
        let content =
          try curve.map { (curve) throws(MediaError) in
            try audio.content.played(along: curve)
          } ?? audio.content
        tracks.append(Self.tagged(try media.track(content, .audio), by: [audio.track]))
      } catch  where !tracks.isEmpty {
        notes.append("\(audio.name) is left out: \(error)")
      }
    }
    if tracks.count > 1 { notes.append("only the first of \(tracks.count) audio tracks is played") }
    return tracks
  }

  /// Returns a track with the rotation and language stored in its items' metadata.
  private static func tagged(
    _ track: CompositionTrack, by items: [JSONValue]
  ) -> CompositionTrack {
    var tagged = track
    for exact in items.compactMap({ $0["metadata"]?[OpenTimelineDocument.key] }) {
      if let rotation = exact["rotation"]?.number { tagged.rotation = Int(exactly: rotation) }
      tagged.language = exact["language"]?.string ?? tagged.language
    }
    return tagged
  }

  // MARK: Items

  /// Returns the content of an item for one media type, with the item's full duration.
  private mutating func content(
    of item: JSONValue, _ mediaType: MediaType, _ location: String, depth: Int
  ) throws(MediaError) -> ProjectContent {
    guard depth < Self.depthLimit else {
      throw MediaError.invalidProject("its compositions are nested too deeply")
    }
    let kind = item.otioKind
    guard kind != "Gap", try item.otioIsEnabled(location) else {
      return try ProjectContent(emptyFor: length(of: item, location, depth: depth))
    }
    var inside: ProjectContent
    switch kind {
    case "Clip": return try clip(item, location, depth: depth)
    case "Track": inside = try row(item, mediaType, location, depth: depth)
    case "Stack":
      var layers: [ProjectContent] = []
      for (number, child) in try item.otioItems("children", location).enumerated() {
        let name = "\(location), track \(number + 1)"
        let kind = try child.otioTrackKind(name)
        if kind == (mediaType == .video ? "Video" : "Audio") {
          layers.append(try content(of: child, mediaType, name, depth: depth + 1))
        } else {
          let length = try length(of: child, name, depth: depth + 1)
          try layers.append(ProjectContent(emptyFor: length))
          if mediaType == .video, kind == "Audio", try child.otioIsEnabled(name) {
            notes.append("the audio of \(name) is not played: it is inside a video track")
          }
        }
      }
      // Tracks of the other media type are layers without content. They are transparent, but they
      // count for the duration of the stack.
      inside = try ProjectContent.stacked(layers)
    default: throw Self.notPlayed(item, location)
    }
    if let curve = try curve(item, lasting: inside.duration, location) {
      inside = try inside.played(along: curve)
    }
    return inside
  }

  /// Reads the children of a track one after the other.
  private mutating func row(
    _ track: JSONValue, _ mediaType: MediaType, _ name: String, depth: Int
  ) throws(MediaError) -> ProjectContent {
    var row = ProjectContent()
    var children = try track.otioItems("children", name)[...]
    while let child = children.first {
      let location = "\(name) at \(row.duration.displayText) s"
      if child.otioKind == "Transition" {
        notes.append("the transition in \(location) is played as a cut")
        children = children.dropFirst()
      } else if let exact = try OpenTimelineExact.segment(children, location, &notes) {
        try row.append(exact.content)
        children = children.dropFirst(exact.count)
      } else {
        try row.append(content(of: child, mediaType, "the item in \(location)", depth: depth + 1))
        children = children.dropFirst()
      }
    }
    return try row.padded(upTo: row.duration + Self.fades(track, name))
  }

  private mutating func clip(
    _ clip: JSONValue, _ location: String, depth: Int
  ) throws(MediaError) -> ProjectContent {
    let duration = try length(of: clip, location, depth: depth)
    let reference = clip.otioReference
    guard let reference, let address = try reference.otioAddress(location) else {
      if let reason = clip.otioWhyNothing {
        missing.append("\(location) \(reason)")
        notes.append("\(location) \(reason) and shows nothing")
        return try ProjectContent(emptyFor: duration)
      }
      throw MediaError.invalidProject(
        "\(location) refers to \(clip.otioReferenceDescription)")
    }
    let available = try reference.otioRange("available_range", location)
    let start = try (clip.otioRange("source_range", location) ?? available)?.start ?? .zero
    let first = start - (available?.start ?? .zero)
    let effects = try effects(clip, location)
    return try ProjectContent(
      ProjectClip(path: OpenTimelineURL.path(of: address), location: location),
      along: try effects.curve(from: first, lasting: duration, clip.otioRate, location))
  }

  /// Returns the duration of an item, which its effects do not change.
  private func length(of item: JSONValue, _ location: String, depth: Int) throws(MediaError)
    -> Rational
  {
    guard depth < Self.depthLimit else {
      throw MediaError.invalidProject("its compositions are nested too deeply")
    }
    if let range = try item.otioRange("source_range", location) {
      guard range.duration > .zero else {
        throw MediaError.invalidProject("\(location) has no length")
      }
      return range.duration
    }
    let children = try item.otioItems("children", location)
    switch item.otioKind {
    case "Clip":
      if let duration = try item.otioReference?.otioRange("available_range", location)?.duration,
        duration > .zero
      {
        return duration
      }
      throw MediaError.invalidProject("\(location) has no duration")
    case "Gap": throw MediaError.invalidProject("\(location) is a gap without a duration")
    case "Track":
      var sum = try Self.fades(item, location)
      for child in children where child.otioKind != "Transition" {
        sum += try length(of: child, location, depth: depth + 1)
      }
      return sum
    case "Stack":
      return try children.map { (child) throws(MediaError) in
        try length(of: child, location, depth: depth + 1)
      }.max() ?? .zero
    default: throw Self.notPlayed(item, location)
    }
  }

  /// Returns the time by which a fade-in at the start and a fade-out at the end extend a track.
  private static func fades(_ track: JSONValue, _ location: String) throws(MediaError) -> Rational {
    let children = try track.otioItems("children", location)
    var sum = Rational.zero
    for (child, key) in [(children.first, "in_offset"), (children.last, "out_offset")] {
      guard let child, child.otioKind == "Transition" else { continue }
      let offset = try child.otioTime(key, "a fade in \(location)") ?? .zero
      guard offset >= .zero else {
        throw MediaError.invalidProject("a fade in \(location) has a negative duration")
      }
      sum += offset
    }
    return sum
  }

  /// Returns the curve from an item's time to its content's time; nil if the whole content plays at
  /// speed 1.
  private mutating func curve(
    _ item: JSONValue, lasting whole: Rational, _ location: String
  ) throws(MediaError) -> [ProjectContent.CurvePart]? {
    let effects = try effects(item, location)
    guard let (start, duration) = try item.otioRange("source_range", location) else {
      return effects.isNone
        ? nil : try effects.curve(from: .zero, lasting: whole, item.otioRate, location)
    }
    guard duration >= .zero else {
      throw MediaError.invalidProject("\(location) is trimmed to an invalid range")
    }
    // Some programs write an empty track as an item that is trimmed to zero duration, so this is no
    // error.
    if duration == .zero { return [] }
    return try effects.curve(from: start, lasting: duration, item.otioRate, location)
  }

  private mutating func effects(
    _ item: JSONValue, _ location: String
  ) throws(MediaError) -> OpenTimelineEffects {
    let effects = try OpenTimelineEffects(item, location)
    notes += effects.leftOut.map { "the effect \($0) of \(location) is left out" }
    return effects
  }

  private static func notPlayed(_ item: JSONValue, _ location: String) -> MediaError {
    .invalidProject(
      item.otioKind.isEmpty
        ? "\(location) is not a timeline item"
        : "\(location) is a \(item.otioKind), which is not supported"
    )
  }
}
