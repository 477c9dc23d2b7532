// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
package import OvercrankMediaCore
package import OvercrankMovieFormat

/// The time map of an output movie, with the times of its frames in the movie.
struct OutputTimeMap {
  /// The map.
  let map: TimeMap
  /// The code of the map.
  private let code: [UInt8]
  /// The presentation times of the frames that players show, in ascending order.
  let ticks: [Int64]
  let timescale: Int32

  /// Makes the map of a passthrough export.
  ///
  /// `undecodable` lists encoded frames that repeat the one before them.
  init(
    _ plan: PassthroughPlan, _ sources: [TimeMap],
    undecodable: Set<TimeMapBuilder.SourceFrame> = []
  ) {
    // Players do not show frames before zero and after the end.
    let shown = plan.frames.indices.filter { (0..<plan.endTicks).contains(plan.frames[$0].pts) }
      .sorted { plan.frames[$0].pts < plan.frames[$1].pts }
    var builder = TimeMapBuilder(sources, isFine: false, frameCount: shown.count)
    var previous = TimeMapBuilder.Shown.nothing
    for frame in shown.lazy.map({ plan.frames[$0] }) {
      let source = frame.number.map { TimeMapBuilder.SourceFrame(source: frame.source, index: $0) }
      if let source, frame.part == nil || !undecodable.contains(source) {
        previous = .frame(source)
      } else if source == nil {
        previous = .nothing
      }
      builder.append(previous, at: plan.passages[frame.passage], number: frame.passage)
    }
    map = builder.map
    code = map.code
    ticks = shown.map { plan.frames[$0].pts }
    timescale = plan.timescale
  }

  /// The facts about a constant-rate export that are known after it.
  struct Rendered {
    /// The frames that could not be decoded.
    var undecodable: Set<TimeMapBuilder.SourceFrame> = []
    /// The numbers of the output frames that were written, in ascending order; nil for all.
    var slots: [Int64]?
    /// The contents of the output frames if frames were synthesized; nil otherwise.
    var synthesized: [TimeMapBuilder.Run]?
  }

  /// Makes the map of a constant-rate export.
  init(
    _ plan: ConstantRatePlan, _ sources: [TimeMap], _ timing: SlotTiming,
    _ rendered: Rendered = Rendered()
  ) {
    let isMixed = plan.items.contains { $0.parts.count > 1 }
    let slots = rendered.slots ?? Array(plan.rendered)
    var builder = TimeMapBuilder(
      sources, isFine: isMixed || rendered.synthesized != nil, frameCount: slots.count)
    var rest = slots[...]
    var slot = plan.rendered.lowerBound
    var previous = TimeMapBuilder.Shown.nothing
    func append(_ run: TimeMapBuilder.Run, passage: Int?) {
      for number in slot..<slot + run.count where rest.first == number {
        rest.removeFirst()
        let index = plan.passage(ofSlot: number, showing: passage)
        builder.append(run.shown, at: plan.passages[index], number: index)
      }
      slot += run.count
    }
    if let runs = rendered.synthesized {
      for run in runs { append(run, passage: nil) }
    } else {
      for item in plan.items {
        let shown = Self.shown(item, rendered.undecodable, after: previous)
        previous = shown
        append(
          TimeMapBuilder.Run(shown: shown, count: item.count),
          passage: item.parts.max { $0.share < $1.share }?.passage)
      }
    }
    map = builder.map
    code = map.code
    ticks = slots.map { timing.ticks(of: $0 - plan.rendered.lowerBound) }
    timescale = timing.timescale
  }

  /// The content of an item; a frame that cannot be decoded shows the one before it.
  private static func shown(
    _ item: ConstantRatePlan.Item, _ undecodable: Set<TimeMapBuilder.SourceFrame>,
    after previous: TimeMapBuilder.Shown
  ) -> TimeMapBuilder.Shown {
    let parts = item.parts.compactMap { part in
      part.frame.map { TimeMapBuilder.Part(frame: $0, weight: Double(part.share)) }
    }
    guard item.parts.count > 1 else {
      guard let frame = parts.first?.frame else { return .nothing }
      return undecodable.contains(frame) ? previous : .frame(frame)
    }
    return parts.isEmpty ? .nothing : .mixed(parts)
  }

  /// Whether each captured frame follows the one before it at one speed, so that the capture times follow
  /// from those of the movie by one factor.
  var isOneSpeed: Bool {
    map.segments.allSatisfy { $0.timeScale != nil && $0.timeScale == map.segments[0].timeScale }
      && map.frames.allSatisfy { $0.content == .genuine }
      && zip(map.frames, map.frames.dropFirst()).allSatisfy { $1.index &- $0.index == 1 }
  }

  /// The note for the comment of the movie.
  ///
  /// If the map changes while frames are synthesized, the note has no times.
  func note(isFinal: Bool) -> TimeMapNote {
    isFinal
      ? TimeMapNote(map, code: code, ticks: ticks, timescale: timescale)
      : TimeMapNote(withoutTimes: map)
  }

  /// Appends the map to a finished movie, and completes the note in its comment.
  ///
  /// - Parameters:
  ///   - path: The movie.
  ///   - track: The index of the video track in the file.
  ///   - keepsNote: Whether the times of the note are those of the map.
  /// - Throws: `CallFailure` if the file cannot be read or written.
  func attach(to path: String, track: Int, keepsNote: Bool) throws(CallFailure) {
    try TimeMapFile.attach(
      [TimeMapBox.Entry(code: code)], to: path, track: track, ticks: ticks,
      timescale: timescale, keepsNote: keepsNote)
  }
}

/// Writes time maps into a finished movie.
package enum TimeMapFile {
  /// Appends maps to a finished movie, and completes the note in its comment.
  package static func attach(
    _ entries: [TimeMapBox.Entry], to path: String, track: Int, ticks: [Int64], timescale: Int32,
    keepsNote: Bool
  ) throws(CallFailure) {
    let file = try MovieBoxes(opening: path)
    guard
      let digest = SampleDigest(
        ofTrack: track, in: file, ticks: ticks, timescale: timescale),
      let movie = file.boxes().first(where: { $0.type == BoxType.movie }),
      let bytes = file.bytes(of: movie)
    else { throw CallFailure("read the index of", path, EIO) }
    for change in TimeMapNote.changes(in: bytes, digest: digest, keepsContent: keepsNote) {
      try file.file.write(change.bytes, at: movie.start + Int64(change.position))
    }
    try file.file.write(TimeMapBox(digest: digest, entries: entries).bytes, at: file.byteCount)
  }
}
