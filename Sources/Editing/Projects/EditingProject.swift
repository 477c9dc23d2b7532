// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A project file of an editing program.
public struct EditingProject: Hashable, Sendable {
  /// The supported formats of project files.
  public enum Format: String, Hashable, Sendable, CaseIterable {
    /// OpenTimelineIO JSON; the only format that can also be written.
    case openTimeline = "OpenTimelineIO (.otio)"
    /// A LosslessCut project: segments of one movie.
    case losslessCut = "LosslessCut (.llc)"
    /// A CMX 3600 edit decision list.
    case editDecisionList = "CMX 3600 EDL (.edl)"
    /// FCPXML, the XML format of Final Cut Pro.
    case finalCut = "Final Cut Pro XML 1.x (.fcpxml)"
    /// `xmeml`, the XML format of Final Cut Pro 7, which Premiere and DaVinci Resolve write.
    case finalCut7 = "Final Cut Pro 7 XML (.xml)"
  }

  /// The format of the file.
  public let format: Format
  /// The project's name; empty if it has none.
  public let name: String
  /// The composition of the project.
  public let composition: Composition
  /// The content that could not be imported, one sentence each.
  public let warnings: [String]
  /// The video tracks, the lowest first.
  ///
  /// In ``composition``, they are merged into one. Only OpenTimelineIO files have more than the merged
  /// one here.
  public let videoTracks: [CompositionTrack]

  /// Parses a project; its format is detected from its content.
  ///
  /// - Parameters:
  ///   - text: The content of the file.
  ///   - source: A closure that returns the media of a movie for its path in the project.
  ///   - timeCodeRate: A closure that returns the timecode rate of an EDL. It gets the path of the
  ///     first movie, and may return nil if the rate is unknown.
  /// - Throws: `MediaError` with `.invalidProject` for an unknown format, a damaged file or
  ///   unsupported content, and `.frameRateNeeded` for an EDL of an unknown rate; errors of the
  ///   closures.
  public init(
    parsing text: String, source: (_ path: String) throws(MediaError) -> MediaSource,
    timeCodeRate: (_ path: String) throws(MediaError) -> FrameRate? = { _ in nil }
  ) throws(MediaError) {
    let found = try withoutActuallyEscaping(source) { (source) throws(MediaError) -> Found in
      try withoutActuallyEscaping(timeCodeRate) { (rate) throws(MediaError) -> Found in
        do throws(MediaError) { return try Self.read(text, source, rate) } catch {
          throw error.ofProject
        }
      }
    }
    (format, name, composition, warnings, videoTracks) = (
      found.format, found.name, found.composition, found.warnings,
      found.videoTracks ?? [found.composition.track(.video)].compactMap(\.self)
    )
  }

  /// The parts of a project.
  private struct Found {
    let format: Format
    let name: String
    let composition: Composition
    let warnings: [String]
    /// The video tracks; nil if only the merged one is known.
    var videoTracks: [CompositionTrack]?

    init(_ format: Format, _ name: String, _ composition: Composition, _ warnings: [String]) {
      (self.format, self.name) = (format, name)
      (self.composition, self.warnings) = (composition, warnings)
    }
  }

  private static func read(
    _ text: String, _ source: @escaping (String) throws(MediaError) -> MediaSource,
    _ rate: @escaping (String) throws(MediaError) -> FrameRate?
  ) throws(MediaError) -> Found {
    switch text.first(where: { !$0.isWhitespace && $0 != "\u{feff}" }) {
    case "<":
      let document = try XMLElement(parsing: text)
      if document.name == "xmeml" {
        var reader = FinalCut7Project(source)
        let composition = try reader.composition(of: document)
        return Found(
          .finalCut7, FinalCut7Project.name(document) ?? "", composition, reader.warnings)
      }
      guard document.name == "fcpxml" else { throw unknown("XML with root <\(document.name)>") }
      var reader = FinalCutProject(source)
      let composition = try reader.composition(of: document)
      return Found(.finalCut, FinalCutProject.name(document) ?? "", composition, reader.warnings)
    case "{", "[":
      guard let document = try? JSONValue(parsing: text) else { throw unknown("invalid JSON") }
      if LosslessCutProject.isOne(document) {
        var reader = LosslessCutProject(source)
        let composition = try reader.composition(of: document)
        return Found(.losslessCut, "", composition, reader.warnings)
      }
      guard !document.otioKind.isEmpty else { throw unknown("JSON of an unknown program") }
      let project = try OpenTimelineDocument(reading: document, source: source)
      var found = Found(
        .openTimeline, project.name, project.composition, project.warnings)
      found.videoTracks = project.videoTracks
      return found
    default:
      guard EditDecisionList.isOne(text) else { throw unknown("unknown format") }
      var reader = EditDecisionList(source, rate: rate)
      let composition = try reader.composition(of: text)
      return Found(
        .editDecisionList, EditDecisionList.title(text) ?? "", composition, reader.warnings)
    }
  }

  private static func unknown(_ what: String) -> MediaError {
    let formats = Format.allCases.map(\.rawValue).joined(separator: ", ")
    return .invalidProject("\(what); supported formats are \(formats)")
  }
}

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
