// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// A composition as an OpenTimelineIO project file.
///
/// Other programs see clips, gaps, `LinearTimeWarp` and `FreezeFrame`. A ramp becomes a row of
/// short clips, each at constant speed. OpenTimelineIO stores times as floating-point numbers. The
/// exact times and curves are therefore stored too, as fractions in the metadata under ``key``. If
/// they agree with the standard values, the reader uses them. If not, another program has changed
/// the item, and the reader uses the standard values.
///
/// As in OpenTimelineIO, the start of a clip's `source_range` is a time of the media, and the
/// duration of that range is the duration of the clip in the timeline. If the clip has a time warp,
/// it plays more or less of the media in this duration.
public struct OpenTimelineDocument: Hashable, Sendable {
  /// The name of the project.
  public var name: String
  /// The composition of the project.
  public var composition: Composition
  /// The content that could not be imported, one sentence each; empty for a new project.
  public private(set) var warnings: [String] = []
  /// The video tracks of the file before they are merged into one, the lowest first; empty for a new
  /// project.
  public private(set) var videoTracks: [CompositionTrack] = []

  /// The metadata key of the exact values.
  public static let key = "overcrank"

  /// Creates a project from a composition.
  public init(_ composition: Composition, name: String = "") {
    (self.composition, self.name) = (composition, name)
  }

  /// Parses a project.
  ///
  /// - Parameters:
  ///   - text: The JSON document.
  ///   - source: A closure that returns the media of a movie for its path in the project.
  /// - Throws: `MediaError` with `.invalidProject` for another kind of document or unsupported
  ///   content; errors of `source`.
  public init(
    parsing text: String, source: (_ path: String) throws(MediaError) -> MediaSource
  ) throws(MediaError) {
    let document: JSONValue
    do { document = try JSONValue(parsing: text) } catch {
      throw MediaError.invalidProject("it is not JSON")
    }
    self = try withoutActuallyEscaping(source) { (source) throws(MediaError) in
      do throws(MediaError) {
        return try OpenTimelineDocument(reading: document, source: source)
      } catch { throw error.ofProject }
    }
  }

  /// Reads a parsed JSON document.
  init(
    reading document: JSONValue, source: @escaping (String) throws(MediaError) -> MediaSource
  ) throws(MediaError) {
    var reader = OpenTimelineReader(source)
    composition = try reader.composition(of: document)
    warnings = reader.warnings
    videoTracks = reader.videoTracks
    name = document["name"]?.string ?? ""
  }

  /// Returns the JSON document.
  ///
  /// Keys are sorted, so that two versions of a project can be compared line by line.
  ///
  /// - Throws: `MediaError` with `.notExact` if a speed does not fit.
  public func text() throws(MediaError) -> String {
    let document = try OpenTimelineWriter.timeline(self)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    do {
      // A path may contain bytes that are not valid UTF-8. The URL preserves these bytes by
      // percent-encoding. In other strings they become U+FFFD, because JSON must be valid UTF-8.
      return String(decoding: try encoder.encode(document), as: UTF8.self).repaired + "\n"
    } catch {
      throw MediaError(.notExact, "cannot write the project: \(error)")
    }
  }
}

/// A named marker at a range of a composition.
public struct CompositionMarker: Hashable, Sendable, Codable {
  /// The name of the marker.
  public var name: String
  /// The range in composition time; may be empty.
  public var range: TimeRange
  /// One of OpenTimelineIO's marker colors, such as `RED`.
  public var color: String
  /// A comment on the marker.
  public var comment: String

  /// Creates a marker.
  public init(_ name: String, _ range: TimeRange, color: String = "GREEN", comment: String = "") {
    (self.name, self.range, self.color, self.comment) = (name, range, color, comment)
  }
}

extension MediaError {
  static func invalidMarkers(_ what: String) -> MediaError {
    MediaError(.invalidProject, "cannot read the slow-motion markers: \(what)")
  }

  /// This error converted to the error that a project reader throws.
  ///
  /// If a number of the file does not fit an exact time, the result is an error with
  /// `.invalidProject`. Other errors, such as that of a missing movie, stay unchanged.
  var ofProject: MediaError {
    switch code {
    case .overflow, .notPositive, .notExact:
      .invalidProject("its numbers do not fit exact times: \(message)")
    case .emptyRange, .outsideSource: .invalidProject(message)
    default: self
    }
  }

  static func invalidProject(_ what: String) -> MediaError {
    MediaError(.invalidProject, "cannot read the project: \(what)")
  }
}
