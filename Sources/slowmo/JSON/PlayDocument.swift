// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The JSON document of `play`.
struct PlayDocument: Encodable, TextDocument {
  /// An event of the player, or a key of a script.
  struct Event: Encodable {
    /// The time of the event after the start of playback, in nanoseconds.
    let atNs: Int64
    /// The kind of event: `key`, `state`, `rate` and so on.
    let type: String
    /// A detail of the event, such as the key or the new state; nil if the kind says enough.
    let detail: String?
    /// The composition time that a seek reached; nil for other events.
    let positionNs: Int64?

    enum CodingKeys: CodingKey { case atNs, type, detail, positionNs }
  }

  /// A clip that was shown beside the first one.
  struct Clip: Encodable {
    let file: String
    let due: Int
    let shown: Int
    let skippedByRate: Int
    let late: Int

    init(_ file: String, _ ledger: PlaybackLedger) {
      self.file = file
      (due, shown, late) = (ledger.due, ledger.shown, ledger.late)
      skippedByRate = ledger.skippedByRate
    }
  }

  let schema = schemaName("play")
  let file: String
  let duration: MediaTime
  /// The number of frames that came due: the sum of ``shown``, ``skippedByRate`` and ``late``.
  let due: Int
  let shown: Int
  let skippedByRate: Int
  let late: Int
  /// The number of refreshes that showed a synthesized frame; nil without `--sampling flow`.
  var synthesized: Int?
  /// The sampling rate of the audio output; nil without audio.
  let audioRate: Int?
  let position: MediaTime
  let events: [Event]
  /// The clip of `--beside`; nil without this option.
  var beside: Clip?
  let clock: CaptureClock.Choice
  /// The origin of capture times; nil for a project of several movies, and if they are unknown.
  let timeSource: CaptureClock.Source?
  let marks: [MarkDocument]
  /// The segments of the composition when playback ended.
  let plan: [SegmentDocument]
  /// The file of `-o`; nil without this option.
  let output: String?
  /// Whether the file of `-o` was written.
  let written: Bool
  /// The faults of the files that did not prevent reading them, each after the name of its file.
  let notes: [String]
  /// The error that ended the playback after a file was written; nil for none.
  var error: ErrorDetails?

  enum CodingKeys: CodingKey {
    case schema, file, duration, due, shown, skippedByRate, late, synthesized, audioRate, position
    case events, beside, clock, timeSource, marks, plan, output, written, notes, error
  }

  /// Whether a screenshot or the file of `-o` was written.
  var hasFiles: Bool { written || events.contains { $0.type == "screenshot" } }

  init(
    _ file: String, _ player: Player, _ session: PlaybackSession, _ project: PlaybackProject,
    clock: CaptureClock.Choice, timeSource: CaptureClock.Source?, notes: [String]
  ) throws {
    (self.clock, self.timeSource) = (clock, timeSource)
    (self.file, self.notes) = (file, notes)
    marks = project.newMarks.map(MarkDocument.init)
    plan = try player.composition.segments.map(SegmentDocument.init)
    (output, written) = (project.output?.path, project.isWritten)
    duration = player.composition.duration
    let ledger = player.ledger
    (due, shown, late) = (ledger.due, ledger.shown, ledger.late)
    skippedByRate = ledger.skippedByRate
    audioRate = player.audioFormat?.sampleRate
    position = PlayerKey.time(player.currentTime.composition)
    events = session.entries.map { entry in
      let (type, detail, position) = Self.description(entry.content)
      return Event(
        atNs: session.elapsed(at: entry.hostTime), type: type, detail: detail,
        positionNs: position.map(nanoseconds))
    }
  }

  /// Returns the type, the detail and the position of a logged event.
  private static func description(
    _ content: PlaybackSession.Entry.Content
  ) -> (type: String, detail: String?, position: Rational?) {
    let kind: PlayerEvent.Kind
    switch content {
    case .key(let key): return ("key", key.rawValue, nil)
    case .screenshot(let path): return ("screenshot", path, nil)
    case .event(let event): kind = event
    }
    return switch kind {
    case .state(let state): ("state", state.rawValue, nil)
    case .rate(let rate): ("rate", rate.description, nil)
    case .algorithm(let algorithm): ("pitch", algorithm.rawValue, nil)
    case .seekCompleted(let time): ("seek", nil, time)
    case .looped(let count): ("loop", "\(count)", nil)
    case .compositionReplaced: ("edit", nil, nil)
    case .undecodableFrame(let path, let index): ("undecodable", "\(path) frame \(index)", nil)
    case .fileFailed(let error): ("file_failed", error.message, nil)
    case .audioFailed(let error): ("audio_failed", error.message, nil)
    case .underrun: ("underrun", nil, nil)
    }
  }

  /// The result as text lines.
  var lines: [String] {
    var lines = [
      "\(file): \(due) frames due = shown \(shown) + skipped by rate \(skippedByRate) + late \(late)"
    ]
    if let beside {
      lines.append(
        "\(beside.file): \(beside.due) frames due = shown \(beside.shown) + skipped by rate "
          + "\(beside.skippedByRate) + late \(beside.late)")
    }
    if let synthesized { lines.append("synthesized frames in \(synthesized) refreshes") }
    lines.append(audioRate.map { "audio: \($0) Hz" } ?? "audio: none")
    lines += marks.map(\.line)
    if written, let output { lines.append("written: \(output)") }
    lines += events.filter { $0.type == "screenshot" }.map { "written: \($0.detail ?? "")" }
    lines += events.filter { ["undecodable", "file_failed", "audio_failed"].contains($0.type) }
      .map { "\($0.type.replacing("_", with: " ")): \($0.detail ?? "")" }
    return lines
  }
}
