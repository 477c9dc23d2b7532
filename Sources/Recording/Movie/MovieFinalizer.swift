// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// Converts a fragmented recording to a plain (unfragmented) movie without copying samples.
enum MovieFinalizer {
  /// The end of a track in the plain (unfragmented) movie.
  enum TrackEnd {
    /// The track ends at this time, in ticks of the track.
    ///
    /// The last block of audio may contain samples after this time, which are not played.
    case at(Int64)
    /// The track ends this many ticks after its first sample.
    case afterFirst(Int64)
  }

  /// Converts a fragmented file to a plain movie in place, by adding an index of all samples.
  ///
  /// Samples are not moved, so the conversion needs little time and space. The new index is synced
  /// to disk first. Then 16 bytes are overwritten: the old `moov` box becomes the header of an
  /// `mdat` box that contains all fragments. A power failure at any time leaves either the
  /// fragmented or the plain movie intact. The frame records of all fragments are joined in one
  /// ledger box.
  ///
  /// - Parameters:
  ///   - open: The file.
  ///   - ends: The end of each track, in the order of the tracks in the file.
  ///   - metadata: The tags of the plain file.
  ///   - chapters: The titles and starts of the plain file's chapters, in microseconds.
  /// - Returns: The number of samples of each track in the plain file.
  /// - Throws: `LibAVError`. The fragmented file then stays unchanged and playable.
  static func finish(
    _ open: OpenFile, ends: [TrackEnd], metadata: [String: String],
    chapters: [(title: String, start: Int64)] = []
  ) throws(LibAVError) -> [Int64] {
    let path = open.path
    let file = MovieBoxes(open)
    let boxes = file.boxes()
    guard let head = boxes.first(where: { $0.type == BoxType.movie }), head.byteCount >= 16
    else { throw LibAVError("find the index of", path, code: -22) }
    var source = try Demuxer(reopening: open)
    let tracks = try source.packetIndices()
    // The `ftyp` box stays in place, so the index is written for the container that `ftyp` names.
    let container = MovieContainer(brand: source.metadata["major_brand"])
    var settings = MovieWriter.Settings(
      container: container.rawValue, movieTimescale: 1_000_000)
    settings.metadata = metadata
    let journal = RecordedFragments(in: file, from: head.end)
    let order = SampleOrder(journal)
    let records = journal.frameRecords
    let byteCount = file.byteCount
    func wholeLocations(_ track: TrackFormat) -> [PacketLocation] {
      // A full disk may have cut off the last samples. The index leaves these out.
      (tracks[track.index]?.locations ?? []).filter {
        $0.position + Int64($0.byteCount) <= byteCount
      }
    }
    if let video = source.tracks.first(where: { $0.kind == .video }),
      let timescale = Int32(exactly: video.timeBase.denominator)
    {
      let locations = wholeLocations(video)
      let times = zip(locations, order.entries(of: locations, end: 0)).map {
        $0.ticks &+ $1.presentationOffset
      }
      TakeTimeNote.add(
        to: &settings.metadata, sizes: locations.map(\.byteCount), times: times,
        timescale: timescale, records: records)
    }
    var writer = try MovieWriter(indexing: path, upTo: file.byteCount, settings: settings)
    var targets: [(track: TrackFormat, target: Int)] = []
    let oldIndex = file.bytes(of: head) ?? []
    var apertures: [(target: Int, size: CleanApertureBox.Size)] = []
    for track in source.tracks where track.kind != .other {
      guard let timescale = Int32(exactly: track.timeBase.denominator) else { continue }
      let target = try writer.addTrack(
        track.parameters, timescale: timescale, metadata: track.metadata,
        displayMatrix: track.displayMatrix)
      if let size = CleanApertureBox.read(from: oldIndex, track: track.index) {
        apertures.append((target, size))
      }
      targets.append((track, target))
    }
    try writer.begin()
    let placeholder = try PlaceholderBytes(
      count: tracks.values.flatMap(\.locations).map(\.byteCount).max() ?? 0)
    var counts = Array(repeating: Int64(0), count: source.tracks.count)
    for (track, target) in targets {
      guard let packets = tracks[track.index] else { continue }
      let locations = wholeLocations(track)
      let end =
        switch ends.indices.contains(track.index) ? ends[track.index] : .afterFirst(0) {
        case .at(let end): end
        case .afterFirst(let count): (locations.first?.ticks ?? 0) &+ count
        }
      counts[track.index] = Int64(locations.count)
      let samples = order.entries(of: locations, end: end)
      for (index, (offset, sample)) in zip(locations, samples).enumerated() {
        try writer.addIndexEntry(
          offset, like: index == 0 ? packets.first : nil, placeholder: placeholder, track: target,
          presentationOffset: sample.presentationOffset, duration: max(1, sample.duration),
          isDroppable: sample.isDroppable)
      }
    }
    let ledger = records.isEmpty ? [] : LedgerBox.bytes(records)
    var index = try writer.finishIndex()
    for (target, size) in apertures {
      try MovieWriter.write(size, into: &index, track: target, path: path)
    }
    ChapterListBox.add(chapters, to: &index)
    let values = journal.attachments(in: file).flatMap(TimedValue.decode)
    var media: [UInt8] = []
    // The values of a metadata track have times of video frames, so this track ends with the video.
    if case .at(let end)? = ends.first {
      for track in TimedMetadataTrack.tracks(of: values, end: end)
      where track.add(to: &index, mediaStart: file.byteCount + Int64(media.count)) {
        media += track.media
      }
    }
    try LibAVError.converting { () throws(SystemError) in
      try file.append(media + ledger + index)
      try file.enclose(from: head)
      try file.file.sync()
    }
    // The index is now in effect, and readers ignore the fragments. The fragment boxes are marked
    // as free only for tools that scan the file for fragments.
    for box in boxes where box.type == BoxType.fragment { try? file.free(box) }
    file.file.truncate(to: file.file.count())
    return counts
  }

  /// Whether libavformat can open a file.
  static func canOpen(_ file: OpenFile) -> Bool {
    do throws(LibAVError) {
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
