// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat

/// Turns a recording that was written in fragments into a plain movie of the same packets.
enum MovieFinalizer {
  /// Where the sound ends.
  enum AudioEnd {
    /// Before this sample; the last block may hold more than belongs.
    case sample(Int64)
    /// So many samples after the first block begins.
    case afterFirst(Int64)
  }

  /// Gives the file a plain index behind its fragments, and lets that one count.
  ///
  /// Pictures and sound stay where they are: it takes no time, and no room for a copy. Until the
  /// last step the fragments count, and in that step 16 bytes change: the first index becomes the
  /// head of an `mdat` that holds all the fragments. The new index is on the disk before, and the
  /// fragments are only touched when that step is: when the power fails in between, one of the two
  /// is whole. The ledger of the journals goes along in a box of its own.
  ///
  /// - Parameters:
  ///   - open: The file.
  ///   - videoEnd: Where the last picture ends, in ticks of its track.
  ///   - audioEnd: Where the sound ends.
  ///   - metadata: The tags of the plain file.
  /// - Returns: The number of pictures in the plain file.
  /// - Throws: `LibAVError`; the file in fragments is then left as it was, and can be played.
  static func finish(
    _ open: OpenFile, videoEnd: Int64, audioEnd: AudioEnd, metadata: [String: String]
  ) throws(LibAVError) -> Int64 {
    let path = open.path
    let file = MovieBoxes(open)
    let boxes = file.boxes()
    guard let head = boxes.first(where: { $0.type == BoxType.movie }), head.byteCount >= 16
    else { throw LibAVError("find the index of", path, code: -22) }
    var source = try Demuxer(reopening: open)
    let tracks = try source.packetPlaces()
    // The file's brand stays where it is.
    let container = MovieContainer(brand: source.metadata["major_brand"])
    var settings = MovieWriter.Settings(
      container: container.rawValue, movieTimescale: 1_000_000)
    settings.metadata = metadata
    var writer = try MovieWriter(indexing: path, upTo: file.byteCount, settings: settings)
    var targets: [(track: TrackFormat, target: Int)] = []
    for track in source.tracks where track.kind != .other {
      guard let timescale = Int32(exactly: track.timeBase.denominator) else { continue }
      let target = try writer.addTrack(
        track.parameters, timescale: timescale, metadata: track.metadata)
      targets.append((track, target))
    }
    try writer.begin()
    let placeholder = try PlaceholderBytes(
      count: tracks.values.flatMap(\.places).map(\.byteCount).max() ?? 0)
    var pictures: Int64 = 0
    for (track, target) in targets {
      guard let packets = tracks[track.index] else { continue }
      // What a full disk cut off is in no plain index.
      let places = packets.places.filter { $0.position + Int64($0.byteCount) <= file.byteCount }
      let end =
        switch audioEnd {
        case _ where track.kind == .video: videoEnd
        case .sample(let end): end
        case .afterFirst(let count): (places.first?.ticks ?? 0) &+ count
        }
      if track.kind == .video { pictures += Int64(places.count) }
      for (index, offset) in places.enumerated() {
        // Packets of a fragmented track need not carry their duration.
        let next = index + 1 < places.count ? places[index + 1].ticks : end
        try writer.enter(
          offset, like: index == 0 ? packets.first : nil, placeholder: placeholder, track: target,
          duration: max(1, next &- offset.ticks))
      }
    }
    let records = RecordedFragments(in: file, from: head.end).frameRecords
    let ledger = records.isEmpty ? [] : LedgerBox.bytes(records)
    let index = try writer.finishIndex()
    try LibAVError.converting { () throws(SystemError) in
      try file.append(ledger + index)
      try file.enclose(from: head)
      try file.file.sync()
    }
    // From here on nobody looks for fragments; that none are found is for those who search.
    for box in boxes where box.type == BoxType.fragment { try? file.free(box) }
    file.file.truncate(to: file.file.count())
    return pictures
  }

  /// Whether readers open a file, whatever is in it.
  static func canOpen(_ file: OpenFile) -> Bool {
    do throws(LibAVError) {
      _ = try Demuxer(reopening: file, probes: false)
      return true
    } catch { return false }
  }

  /// How many pictures can be read from a file, up to where it breaks off; nil where it cannot be
  /// opened.
  static func readableFrames(_ file: OpenFile) -> Int64? {
    guard var source = try? Demuxer(reopening: file) else { return nil }
    guard let track = source.tracks.first(where: { $0.kind == .video }) else { return 0 }
    var count: Int64 = 0
    // A file that cannot be read further has been read as far as it goes.
    while let packet = try? source.nextPacket() {
      if packet.trackIndex == track.index, !packet.isCorrupt { count += 1 }
    }
    return count
  }
}
