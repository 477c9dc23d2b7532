// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankFrameAccounting
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// Converts a fragmented recording to a plain (unfragmented) movie without copying samples.
///
/// The samples and their times are read from the journals of the fragments, and the tracks from the
/// recording's own index.
package struct MovieFinalizer: ~Copyable {
  /// The end of a track in the plain movie.
  package enum TrackEnd {
    /// The track ends at this time, in ticks of the track.
    ///
    /// The last block of audio may contain samples after this time, which are not played.
    case at(Int64)
    /// The track ends this many ticks after its first sample.
    case afterFirst(Int64)
  }

  /// A track of the recording.
  package struct Track {
    fileprivate let description: MovieTrack
    /// The samples in decoding order; their times begin with that of the first one in the movie.
    package fileprivate(set) var samples: [StoredSample] = []

    package var kind: MovieTrack.Kind { description.kind }
    package var timescale: Int32 { description.timescale }
  }

  private let file: MovieBoxes
  private let boxes: [Box]
  private let head: Box
  private let container: MovieContainer
  /// The frames that arrived, with those whose samples a repair dropped.
  private let frames: [FrameObservation]
  /// The data that belongs to no track, also after a sample that a repair dropped.
  private let attached: [StoredSample]
  /// The tracks in the order of the file.
  package private(set) var tracks: [Track]

  /// The number of ticks per second in the movie header.
  private static let timescale: Int32 = 1_000_000

  /// Reads the index and the journals of a recording.
  ///
  /// - Parameters:
  ///   - open: The file.
  ///   - repair: A finished repair of the file, whose fragments and frames are used; nil to read them from
  ///     the file.
  /// - Throws: `CallFailure` with the operation "find the index of", also for a journal with times that no
  ///   recording has.
  package init(_ open: OpenFile, after repair: MovieRepair? = nil) throws(CallFailure) {
    let file = MovieBoxes(open)
    let boxes = file.boxes()
    guard let head = boxes.first(where: { $0.type == BoxType.movie }), head.byteCount >= 16,
      head.headBytes == 8, let bytes = file.bytes(of: head)
    else { throw CallFailure("find the index of", open.path, EINVAL) }
    let header = Box.list(in: bytes, from: 8, to: bytes.count)
      .first { $0.type == BoxType.movieHeader }
    let timescale = header?.number(12, in: bytes).flatMap { Int32(exactly: $0) }
    let journal =
      repair.map { RecordedFragments($0.fragments) } ?? RecordedFragments(in: file, from: head.end)
    var tracks: [Track] = []
    var firstTicks: [Int64] = []
    for box in Box.list(in: bytes, from: 8, to: bytes.count) where box.type == BoxType.track {
      guard var track = MovieTrack(box, in: bytes) else {
        throw CallFailure("find the index of", open.path, EINVAL)
      }
      track.isMade = true
      tracks.append(Track(description: track))
      firstTicks.append(
        MovieTrack.firstTicks(
          of: box, in: bytes, timescale: track.timescale,
          movieTimescale: max(1, timescale ?? Self.timescale)))
    }
    for fragment in journal.fragments {
      for var sample in fragment.samples where tracks.indices.contains(sample.track) {
        let last = tracks[sample.track].samples.last
        let isPlausible =
          last != nil || (0...FragmentedMovieWriter.maximumSampleTicks).contains(sample.ticks)
        sample.ticks &+= firstTicks[sample.track]
        guard isPlausible, sample.canFollow(last) else {
          throw CallFailure("find the index of", open.path, EINVAL)
        }
        tracks[sample.track].samples.append(sample)
      }
    }
    // The `ftyp` box stays in place, so the index is written for the container that `ftyp` names.
    container = file.container(in: boxes)
    self.file = file
    self.boxes = boxes
    self.head = head
    frames = repair?.frames ?? journal.fragments.flatMap(\.frames)
    attached = repair?.attachments ?? journal.fragments.flatMap(\.attachments)
    self.tracks = tracks
  }

  /// The times of the taken frames in microseconds of the capture clock, in the order of arrival.
  package var takenTimes: [Int64] {
    frames.lazy.filter { $0.outcome == .taken }.map(\.microseconds)
  }

  /// The encoded records of all frames that arrived.
  private var frameRecords: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(frames.count * TakeRecord.byteCount)
    for frame in frames { TakeRecord.frame(frame).write(to: &bytes) }
    return bytes
  }

  /// Converts the file in place, by adding an index of all samples.
  ///
  /// Samples are not moved, so the conversion needs little time and space. The new index is synced to disk
  /// first. Then 16 bytes are overwritten: the old `moov` box becomes the header of an `mdat` box that
  /// contains all fragments. A power failure at any time leaves either the fragmented or the plain movie
  /// intact. The frame records of all fragments are joined in one ledger box.
  ///
  /// - Parameters:
  ///   - ends: The end of each track, in the order of the tracks in the file.
  ///   - tags: The tags of the plain file.
  ///   - chapters: The titles and starts of the plain file's chapters, in microseconds.
  /// - Returns: The number of samples of each track in the plain file.
  /// - Throws: `CallFailure` with the operation "write to". The fragmented file then stays unchanged and
  ///   playable.
  package consuming func finish(
    ends: [TrackEnd], tags: [String: String], chapters: [(title: String, start: Int64)]
  ) throws(CallFailure) -> [Int64] {
    var movie = MovieIndex(container, timescale: Self.timescale)
    movie.tags = tags
    movie.chapterList = chapters
    var list = tracks.enumerated().map {
      number, track -> (track: MovieTrack, samples: SampleTable) in
      let first = track.samples.first?.ticks ?? 0
      let end =
        switch ends.indices.contains(number) ? ends[number] : .afterFirst(0) {
        case .at(let end): end
        case .afterFirst(let count): first &+ count
        }
      return (track: track.description, samples: track.table(end: end))
    }
    let values = RecordedFragments.attachments(attached, in: file).flatMap(TimedValue.decode)
    var media: [UInt8] = []
    // The values of a metadata track have times of video frames, so this track ends with the video.
    if case .at(let end)? = ends.first {
      for track in TimedMetadataTrack.tracks(of: values, end: end) {
        let start = file.byteCount + Int64(media.count)
        list.append((track.description(in: container), track.table(mediaStart: start)))
        media += track.media
      }
    }
    let records = frameRecords
    let ledger = records.isEmpty ? [] : LedgerBox.bytes(records)
    let index = movie.bytes(list)
    try file.append(media + ledger + index)
    try file.enclose(from: head)
    try file.file.sync()
    // The index is now in effect, and readers ignore the fragments. The fragment boxes are marked as free
    // only for tools that scan the file for fragments.
    for box in boxes where box.type == BoxType.fragment { try? file.free(box) }
    file.file.truncate(to: file.file.count())
    return tracks.map { Int64($0.samples.count) }
  }
}

extension MovieFinalizer.Track {
  /// The sample table of the plain movie; `end` is the end of the track in ticks of the track.
  fileprivate func table(end: Int64) -> SampleTable {
    var table = SampleTable()
    table.reserveCapacity(samples.count)
    let isReordered = samples.contains { $0.presentationOffset != 0 || $0.isDroppable }
    // In a reordered track the first decode time is negative. Decoding then ends before the end of the
    // track, by the same amount.
    let decodeEnd = isReordered ? end &+ min(0, samples.first?.ticks ?? 0) : end
    let shownLast = samples.indices.max {
      samples[$0].presentationTicks < samples[$1].presentationTicks
    }
    let sampleBytes =
      kind == .audio ? description.descriptions.first?.uncompressedSampleBytes : nil
    for (index, sample) in samples.enumerated() {
      let next = index + 1 < samples.count ? samples[index + 1].ticks : decodeEnd
      // Every duration is the time until the next sample is decoded. The length of the track follows from
      // the frame that is shown last, so that frame gets its display duration instead.
      let duration =
        isReordered && index == shownLast && index < samples.count - 1
        ? end &- sample.presentationTicks : next &- sample.ticks
      var entry = SampleTable.Sample(
        position: sample.position, byteCount: Int32(clamping: sample.byteCount),
        ticks: sample.ticks, duration: Int32(clamping: max(1, duration)),
        isKeyFrame: sample.isKeyFrame)
      entry.presentationOffset = Int32(clamping: sample.presentationOffset)
      entry.isDroppable = sample.isDroppable
      if let sampleBytes { entry.count = Int32(clamping: max(1, sample.byteCount / sampleBytes)) }
      table.append(entry)
    }
    return table
  }
}

extension StoredSample {
  /// Whether the boxes of an index can state the times of this sample after those of another one.
  fileprivate func canFollow(_ last: StoredSample?) -> Bool {
    guard ticks.magnitude < UInt64(1) << 62, presentationOffset <= Int64(Int32.max) else {
      return false
    }
    return last.map { (1...FragmentedMovieWriter.maximumSampleTicks).contains(ticks &- $0.ticks) }
      ?? true
  }

  /// The presentation time in track ticks.
  package var presentationTicks: Int64 { ticks &+ presentationOffset }
}
