// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A reader of LosslessCut's project files (`.llc`): JSON5 with the segments of one movie.
struct LosslessCutProject {
  private var media: ProjectMedia
  private var notes: [String] = []

  init(_ find: @escaping (String) throws(MediaError) -> MediaSource) { media = ProjectMedia(find) }

  var warnings: [String] { notes + media.warnings }

  static func isOne(_ document: JSONValue) -> Bool { document["cutSegments"] != nil }

  /// Returns the selected segments one after the other, as LosslessCut merges them.
  mutating func composition(of document: JSONValue) throws(MediaError) -> Composition {
    guard let path = document["mediaFileName"]?.string, !path.isEmpty else {
      throw MediaError.invalidProject("it does not name its movie")
    }
    let source = try media.source(path)
    let isFirstVersion = document["version"]?.number == 1
    var content = ProjectContent()
    for (number, segment) in (document["cutSegments"]?.elements ?? []).enumerated() {
      let location = "segment \(number + 1)"
      if let selected = segment["selected"], try !Self.flag(selected, location) {
        notes.append("\(location) is not selected and is left out")
        continue
      }
      let start = try Self.time(segment["start"], location) ?? .zero
      let end = try Self.time(segment["end"], location)
      // Since version 2 of the format, a segment without an end is a marker. In version 1, a
      // segment without an end extends to the end of the movie.
      if end == nil, !isFirstVersion {
        notes.append("the marker \(location) is left out")
        continue
      }
      let last = end ?? source.duration.seconds
      guard start < last else { throw MediaError.invalidProject("\(location) has no length") }
      try content.append(
        ProjectContent(
          ProjectClip(path: path, location: location),
          along: [
            .init(start: .zero, end: last - start, from: start, to: last)
          ]))
    }
    var composition = Composition()
    for mediaType in MediaType.allCases
    where source.tracks.contains(where: { $0.mediaType == mediaType }) {
      composition.tracks.append(try media.track(content, mediaType))
    }
    return composition
  }

  private static func flag(_ value: JSONValue, _ location: String) throws(MediaError) -> Bool {
    guard let flag = value.bool else { throw value.otioUnreadable("selected", of: location) }
    return flag
  }

  private static func time(_ value: JSONValue?, _ location: String) throws(MediaError) -> Rational?
  {
    guard let value, value != .null else { return nil }
    guard let time = value.number.flatMap(ProjectTime.nearest), time >= .zero else {
      throw MediaError.invalidProject("\(location) has an invalid time")
    }
    return time
  }
}
