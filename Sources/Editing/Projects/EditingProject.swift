// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A project of any program whose files are read.
public struct EditingProject: Hashable, Sendable {
  /// The formats of project files.
  public enum Format: String, Hashable, Sendable, CaseIterable {
    /// OpenTimelineIO's JSON, the only one that is also written.
    case openTimeline = "OpenTimelineIO (.otio)"
    /// LosslessCut's segments of one movie.
    case losslessCut = "LosslessCut (.llc)"
    /// CMX 3600's list of edits.
    case editDecisionList = "CMX 3600 EDL (.edl)"
    /// Final Cut Pro's XML.
    case finalCut = "Final Cut Pro XML 1.x (.fcpxml)"
  }

  /// The format of the file.
  public let format: Format
  /// The project's name; empty where it has none.
  public let name: String
  /// What is played.
  public let composition: Composition
  /// What the project says that could not be taken over, a sentence each.
  public let warnings: [String]

  /// Reads a project, whose format its content tells.
  ///
  /// - Parameters:
  ///   - text: The whole file.
  ///   - source: Finds what is known of a movie by its path, as the project has it.
  ///   - timeCodeRate: The rate of a list that counts in frames, by the path of its first movie;
  ///     nil where it is not known.
  /// - Throws: `MediaError` with `.invalidProject` for a file of another format, one that is
  ///   damaged, or one that plays what cannot be played here, and with `.frameRateNeeded` for a
  ///   list of frames of an unknown rate; what the closures throw.
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
    (format, name, composition, warnings) = found
  }

  private typealias Found = (Format, String, Composition, [String])

  private static func read(
    _ text: String, _ source: @escaping (String) throws(MediaError) -> MediaSource,
    _ rate: @escaping (String) throws(MediaError) -> FrameRate?
  ) throws(MediaError) -> Found {
    switch text.first(where: { !$0.isWhitespace && $0 != "\u{feff}" }) {
    case "<":
      let document = try XMLElement(parsing: text)
      guard document.name == "fcpxml" else { throw unknown("it is XML of <\(document.name)>") }
      var reader = FinalCutProject(source)
      let composition = try reader.composition(of: document)
      return (.finalCut, FinalCutProject.name(document) ?? "", composition, reader.warnings)
    case "{", "[":
      guard let document = try? JSONValue(parsing: text) else { throw unknown("it is not JSON") }
      if LosslessCutProject.isOne(document) {
        var reader = LosslessCutProject(source)
        let composition = try reader.composition(of: document)
        return (.losslessCut, "", composition, reader.warnings)
      }
      guard !document.otioKind.isEmpty else { throw unknown("it is JSON of another program") }
      let project = try OpenTimelineDocument(reading: document, source: source)
      return (.openTimeline, project.name, project.composition, project.warnings)
    default:
      guard EditDecisionList.isOne(text) else { throw unknown("it is of another format") }
      var reader = EditDecisionList(source, rate: rate)
      let composition = try reader.composition(of: text)
      return (
        .editDecisionList, EditDecisionList.title(text) ?? "", composition, reader.warnings
      )
    }
  }

  private static func unknown(_ what: String) -> MediaError {
    let formats = Format.allCases.map(\.rawValue).joined(separator: ", ")
    return .invalidProject("\(what); projects are read from \(formats)")
  }
}
