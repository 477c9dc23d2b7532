// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankMediaCore
import OvercrankMovieFormat

/// The note about capture times in the comment of a finished recording.
///
/// The ledger is the time map of a recording. Programs that copy the movie drop it, but they keep the
/// comment.
enum TakeTimeNote {
  /// Adds the note to the tags of a recording.
  ///
  /// Nothing is added if the frames of the file are not those of the ledger, one for one.
  ///
  /// - Parameters:
  ///   - tags: The tags of the plain file.
  ///   - sizes: The sizes of the video samples in decode order.
  ///   - times: The presentation times of the video samples in ticks.
  ///   - timescale: The number of ticks per second.
  ///   - records: The encoded frame records.
  static func add(
    to tags: inout [String: String], sizes: [Int], times: [Int64], timescale: Int32,
    records: [UInt8]
  ) {
    // Frames before zero are hidden and not in the ledger.
    let shown = times.filter { $0 >= 0 }.sorted()
    let taken = TakeRecord.list(records).compactMap { record -> Int64? in
      guard case .frame(let frame) = record, frame.outcome == .taken else { return nil }
      return frame.microseconds
    }
    guard let recording = tags[RecordingTags.recording].flatMap(RecordingTags.Recording.init),
      recording.leadIn == nil, let gaps = recording.gaps, taken.count == shown.count,
      let first = shown.first
    else { return }
    let ticks = shown.map { $0 &- first }
    let digest = SampleDigest(sizes: sizes, ticks: ticks, timescale: timescale)
    var identity = digest
    identity.add(UInt64(bitPattern: recording.firstCaptureNs))
    var map = TimeMap()
    let number = map.index(
      of: TimeMap.Recording(
        identity: identity.rawValue, basis: .driver, timescale: 1_000_000, knowsLosses: true))
    map.beginSegment(recording: number, timeScale: .one, isContinued: false)
    var lost: Int64 = 0
    var next = gaps.sorted { $0.afterIndex < $1.afterIndex }[...]
    for (index, microseconds) in taken.enumerated() {
      while let gap = next.first, gap.afterIndex < index {
        lost &+= max(0, gap.count)
        next.removeFirst()
      }
      map.append(TimeMap.Frame(index: Int64(index), lost: lost, ticks: microseconds))
    }
    var note = TimeMapNote(map, ticks: ticks, timescale: timescale)
    // A note without times would only make the times of the file doubtful, which are real.
    guard note.content != .timesLeftOut else { return }
    note.digest = digest
    tags[TimeMapNote.key] = note.following(tags[TimeMapNote.key])
  }
}
