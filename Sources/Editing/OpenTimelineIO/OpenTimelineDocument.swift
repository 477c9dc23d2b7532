// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import OvercrankLinuxSystem
public import OvercrankMediaCore

/// A composition as a project file: OpenTimelineIO's JSON.
///
/// Other programs see clips, gaps, `LinearTimeWarp` and `FreezeFrame`; a ramp is a row of short
/// clips at one speed each. Beside that stand the exact times and curves, as fractions in the
/// metadata under ``key``: they are what is read back, as long as what others see still agrees
/// with them. So nothing is lost on the way, and what another program changed is taken over.
///
/// As in OpenTimelineIO, a clip's `source_range` starts in the time of the media and lasts as
/// long as the clip does in the timeline; a time warp says how much of the media that is.
public struct OpenTimelineDocument: Hashable, Sendable {
  /// The project's name.
  public var name: String
  /// What is played.
  public var composition: Composition
  /// What a project said that could not be taken over, a sentence each; none of one's own.
  public private(set) var warnings: [String] = []

  /// The name under which the exact values stand in the metadata.
  public static let key = "overcrank"

  /// Makes a project of a composition.
  public init(_ composition: Composition, name: String = "") {
    self.composition = composition
    self.name = name
  }

  /// Reads a project.
  ///
  /// - Parameters:
  ///   - text: The JSON document.
  ///   - source: Finds what is known of a movie by its path, as the project has it.
  /// - Throws: `MediaError` with `.invalidProject` for what is no such document or plays what
  ///   cannot be played here; the errors of `source`.
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

  /// Reads a document that is parsed already.
  init(
    reading document: JSONValue, source: @escaping (String) throws(MediaError) -> MediaSource
  ) throws(MediaError) {
    var reader = OpenTimelineReader(source)
    composition = try reader.composition(of: document)
    warnings = reader.warnings
    name = document["name"]?.string ?? ""
  }

  /// The JSON document, its keys in order, so that two can be compared.
  ///
  /// - Throws: `MediaError` with `.notExact` when a speed does not fit.
  public func text() throws(MediaError) -> String {
    let document = try OpenTimelineWriter.timeline(self)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    do {
      // An address names any file; where a path stands as text, bytes that are none are left out.
      return String(decoding: try encoder.encode(document), as: UTF8.self).repaired + "\n"
    } catch {
      throw MediaError(.notExact, "the project cannot be written: \(error)")
    }
  }
}

/// A note at a stretch of a composition.
public struct CompositionMarker: Hashable, Sendable, Codable {
  /// What it says.
  public var name: String
  /// Where it is, in the time of the composition; may be empty.
  public var range: TimeRange
  /// One of OpenTimelineIO's colours, such as `RED`.
  public var color: String
  /// More words.
  public var comment: String

  /// Makes a marker.
  public init(_ name: String, _ range: TimeRange, color: String = "GREEN", comment: String = "") {
    self.name = name
    self.range = range
    self.color = color
    self.comment = comment
  }
}

extension MediaError {
  static func invalidMarkers(_ what: String) -> MediaError {
    MediaError(.invalidProject, "the slow-motion marks cannot be read: \(what)")
  }

  /// This error, where reading a project provoked it: numbers that are no exact times make the
  /// project invalid; any other error, such as that of a missing movie, is left as it is.
  var ofProject: MediaError {
    switch code {
    case .overflow, .notPositive, .notExact:
      .invalidProject("its numbers do not fit exact times: \(message)")
    case .emptyRange, .outsideSource: .invalidProject(message)
    default: self
    }
  }

  static func invalidProject(_ what: String) -> MediaError {
    MediaError(.invalidProject, "the project cannot be read: \(what)")
  }
}
