// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// A recording after its last sample, which is still fragmented.
struct RecordedMovie: ~Copyable {
  private let movie: MovieFinalizer

  /// Reads the journals of a recording.
  ///
  /// `repair` is a finished repair of the file, if it needed one.
  ///
  /// - Throws: `CallFailure` if the file has no index or damaged journals.
  init(_ file: OpenFile, after repair: MovieRepair? = nil) throws(CallFailure) {
    movie = try MovieFinalizer(file, after: repair)
  }

  private var video: MovieFinalizer.Track? { movie.tracks.first { $0.kind == .video } }

  /// The number of video frames that the plain movie will have, with the hidden ones.
  var frameCount: Int64 { Int64(video?.samples.count ?? 0) }

  /// Converts the file to a plain movie in place, see ``MovieFinalizer``.
  ///
  /// The note of the capture times is added to the tags.
  ///
  /// - Returns: The number of samples of each track in the plain file.
  /// - Throws: `CallFailure`. The fragmented file then stays unchanged and playable.
  consuming func finish(
    ends: [MovieFinalizer.TrackEnd], metadata: [String: String],
    chapters: [(title: String, start: Int64)] = []
  ) throws(CallFailure) -> [Int64] {
    var tags = metadata
    if let video {
      TakeTimeNote.add(
        to: &tags, sizes: video.samples.map(\.byteCount),
        times: video.samples.map(\.presentationTicks), timescale: video.timescale,
        taken: movie.takenTimes)
    }
    return try movie.finish(ends: ends, tags: tags, chapters: chapters)
  }

  /// Whether libavformat can open a file.
  static func canOpen(_ file: OpenFile) -> Bool {
    do throws(CallFailure) {
      _ = try Demuxer(reopening: file, probes: false)
      return true
    } catch { return false }
  }

  /// The number of frames readable from a file up to the first error.
  ///
  /// Nil if the file cannot be opened.
  static func readableFrames(_ file: OpenFile) -> Int64? {
    guard var source = try? Demuxer(reopening: file) else { return nil }
    guard let track = source.tracks.first(where: { $0.kind == .video }) else { return 0 }
    var count: Int64 = 0
    // A read error ends the count. The following frames count as unreadable.
    while let packet = try? source.nextPacket() {
      if packet.trackIndex == track.index, !packet.isCorrupt { count += 1 }
    }
    return count
  }
}

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
  ///   - taken: The times of the taken frames in microseconds of the capture clock.
  static func add(
    to tags: inout [String: String], sizes: [Int], times: [Int64], timescale: Int32,
    taken: [Int64]
  ) {
    // Frames before zero are hidden and not in the ledger.
    let shown = times.filter { $0 >= 0 }.sorted()
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
