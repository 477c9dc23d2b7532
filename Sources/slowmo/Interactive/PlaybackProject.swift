// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank
import OvercrankLinuxSystem

/// The edits made during playback, and the file to which they are written.
///
/// Only the main thread uses it.
final class PlaybackProject {
  /// The file that is created when the user presses the key for writing.
  struct Output {
    let path: String
    /// The constant frame rate of the movie to write; nil to copy the frames.
    let rate: FrameRate?
    let onError: UndecodableFramePolicy
    let writing: WritingOptions

    var isProject: Bool { Self.isProject(path) }

    static func isProject(_ path: String) -> Bool { path.lowercased().hasSuffix(".otio") }

    /// Returns true for the name of a project, or of a movie that an export can write.
    static func isWritable(_ path: String) -> Bool {
      isProject(path) || ["mov", "qt", "mp4", "m4v"].contains(path.fileExtension ?? "")
    }
  }

  /// A mark that was set during this playback.
  struct Mark {
    let name: String
    let time: PlayerTime
  }

  /// The edits after a key press.
  private struct Version {
    var edit: PlayerEdit
    var newMarks: [Mark] = []
  }

  /// The versions, of which those after the current one were undone.
  private var versions: [Version]
  private var current = 0
  private let assets: [Asset]
  let output: Output?
  /// Whether the output was written.
  private(set) var isWritten = false

  init(_ content: PlayedContent, _ output: Output?) {
    versions = [Version(edit: PlayerEdit(content.composition, marks: content.marks))]
    (assets, self.output) = (content.assets, output)
  }

  private var edit: PlayerEdit { versions[current].edit }

  /// The marks that were set, in the order in which they were set.
  var newMarks: [Mark] { versions[current].newMarks }

  /// The edited composition.
  ///
  /// - Throws: `MediaError` with `.notExact` for a time that no `MediaTime` represents.
  func composition() throws(MediaError) -> Composition { try edit.composition() }

  /// The times of all marks in the edited composition.
  var markTimes: [Rational] {
    edit.marks.map { edit.editedTime(of: $0.range.start.seconds) }
  }

  /// The start and the end of the range in the edited composition; nil for those that are not set.
  var rangeTimes: (start: Rational?, end: Rational?) { edit.rangeTimes }

  /// Performs the action of a key that edits.
  ///
  /// - Returns: A message about the change; nil for a key that does not edit.
  func press(_ key: PlayerKey, _ player: Player) throws -> String? {
    var next = versions[current]
    switch key {
    case .rangeStart:
      let time = frameStart(player)
      let hadEnd = next.edit.range != nil
      next.edit.beginRange(at: time)
      add(next)
      return "range starts at \(time.displayText) s: "
        + (hadEnd ? "set its end again with o" : "set its end with o")
    case .rangeEnd:
      guard let range = try next.edit.endRange(at: frameStart(player)) else {
        return "the range is empty"
      }
      add(next)
      return "range \(range.displayText): press 1 to 9 for its speed"
    case .mark:
      let time = player.currentTime
      let captured = time.capture.map { "captured at \($0.displayText) s" } ?? ""
      let added = try next.edit.addMark(at: frameStart(player), comment: captured)
      guard let mark = added else { return "" }
      next.newMarks.append(Mark(name: mark.name, time: time))
      add(next)
      return "@\(mark.name)"
    case .undo: return try move(by: -1, player) ? "undone" : "nothing to undo"
    case .redo: return try move(by: 1, player) ? "done again" : "nothing to redo"
    case .write: return try write(player)
    default:
      guard let divisor = key.speedDivisor else { return nil }
      let speed = Speed(1, over: divisor)
      try next.edit.setSpeed(speed)
      add(next)
      try replaceComposition(of: player)
      return "\(edit.range?.displayText ?? "all") at speed \(speed)"
    }
  }

  private func add(_ version: Version) {
    versions[(current + 1)...] = [version]
    current += 1
  }

  /// Goes to an earlier or later version.
  ///
  /// - Returns: False if that version does not exist.
  private func move(by step: Int, _ player: Player) throws(MediaError) -> Bool {
    guard versions.indices.contains(current + step) else { return false }
    current += step
    try replaceComposition(of: player)
    return true
  }

  /// Returns the start of the frame on screen, as a time in the content before the edits.
  private func frameStart(_ player: Player) -> MediaTime {
    let time = edit.baseTime(of: player.frameStart)
    return MediaTime(exactly: time) ?? PlayerKey.time(time)
  }

  /// Plays the edited composition, if it differs from the one that is played.
  private func replaceComposition(of player: Player) throws(MediaError) {
    let isWholeLoop = player.loop.map { $0.duration == player.composition.duration.seconds }
    var edited = try edit.composition()
    // The composition carries no markers, because the window shows all marks, also those set later.
    edited.markers = []
    guard edited != player.composition else { return }
    try player.replaceComposition(edited)
    if isWholeLoop == true { try player.setLoop(TimeRange(duration: edited.duration)) }
  }

  private func write(_ player: Player) throws -> String {
    guard let output else { return "nothing written: start play with -o FILE" }
    player.pause()
    let composition = try edit.composition()
    guard !output.writing.dryRun else { return "nothing written: --dry-run" }
    // A file that an earlier key press wrote belongs to this playback and may be replaced.
    let overwrites = output.writing.overwrite || isWritten
    if output.isProject {
      let project = OpenTimelineDocument(
        try composition.replacingSourcePaths { ProjectPaths.path($0, seenFrom: output.path) },
        name: output.path.lastPathComponent)
      try Files.write(output.path, Data(try project.text().utf8), overwrites: overwrites)
    } else {
      try export(composition, output, player.algorithm, overwrites: overwrites)
    }
    isWritten = true
    return "written: \(output.path)"
  }

  private func export(
    _ composition: Composition, _ output: Output, _ algorithm: AudioTimePitchAlgorithm,
    overwrites: Bool
  ) throws {
    var settings = ExportSettings(
      path: output.path, mode: output.rate.map { .constant($0) } ?? .passthrough())
    settings.audioTimePitchAlgorithm = algorithm
    settings.undecodableFrames = output.onError
    settings.overwrites = overwrites
    let report = try ProgressReporter(output.writing.progress)
      .export(ExportSession(composition, of: assets), settings, composition.duration)
    for frame in report.undecodable {
      noteUndecodable(frame.path, frame.index, frame.time, output.onError)
    }
  }
}
