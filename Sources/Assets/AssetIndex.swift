// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// The index of all packets in a file.
///
/// Usually all packets are read. This can be slow: one minute of 1080p at 240 fps is a gigabyte.
/// The sample tables of a MOV or MP4 file are therefore used instead, if they contain enough and
/// the frames are stored in presentation order. For H.264 and HEVC, the packets marked as key
/// frames must still be read, because only their bytes show whether decoding can start there.
struct AssetIndex {
  let containerName: String
  let isMOV: Bool
  let tracks: [TrackFormat]
  let metadata: [String: String]
  let chapters: [Chapter]
  let path: String
  /// The number of packets and the duration in ticks that the file states for each track.
  private(set) var stated: [Int: (packetCount: Int, ticks: Int64?)] = [:]
  /// The readable packets of each track, in decode order.
  private(set) var packets: [Int: [PacketRecord]] = [:]
  /// The number of complete packets of each track, including those without a time.
  private(set) var wholeCounts: [Int: Int] = [:]
  /// The number of packets that were read from the file.
  private(set) var readCount = 0
  /// The duration of each track's last sample according to the movie's boxes, or nil if unknown.
  private var lastDurations: [Int64?] = []
  /// The indices of the tracks with encrypted packets.
  private(set) var encrypted: Set<Int> = []
  /// The tracks whose samples are in another file, according to the movie's boxes.
  private(set) var elsewhere: Set<Int> = []
  /// The corrections of times in a file whose clock restarts; nil for any other file.
  private(set) var corrections: TimeCorrections?
  /// The corrected starts of all concatenated recordings but the first, in seconds on the file's
  /// time axis.
  ///
  /// Empty unless the file's clock restarts.
  private(set) var restartTimes: [Rational] = []
  /// Whether the clock restarts in some tracks but continues in others.
  private(set) var isClockInconsistent = false
  /// For each track, the number of packets in or before which bytes of the file are missing.
  private(set) var damagedCounts: [Int: Int] = [:]
  /// The tracks whose samples have different sample descriptions.
  private(set) var changingTracks: Set<Int> = []
  /// The extents of the audio tracks whose times are coarser than a sample, as far as they are known.
  private(set) var extents: [Int: AudioExtent] = [:]
  /// The number of frames whose second field has its own parameter sets.
  private(set) var changedFieldCount = 0
  /// The video tracks whose times may contradict the order in which the decoder returns frames.
  private(set) var suspicious: Set<Int> = []
  /// Whether the index that was used contradicts the packets of the file.
  ///
  /// ``init(_:)`` then ignores the index and reads all packets.
  private(set) var isContradicted = false

  /// Reads a file's index.
  ///
  /// - Throws: `LibAVError` from opening or reading.
  init(_ path: String) throws(LibAVError) {
    let index = try AssetIndex(path, readsAll: false)
    self = index.isContradicted ? try AssetIndex(path, readsAll: true) : index
  }

  /// Reads a file's index.
  ///
  /// Converts errors to `MediaError`.
  static func reading(_ path: String) throws(MediaError) -> AssetIndex {
    do throws(LibAVError) { return try AssetIndex(path) } catch { throw MediaError(reading: error) }
  }

  /// Reads a file's tracks, and takes the packets from a stored packet index.
  ///
  /// ``isContradicted`` becomes true if the file has other tracks or fewer packets than that index.
  init(_ path: String, kept: [PacketIndexFile.Track]) throws(LibAVError) {
    try self.init(path, readsAll: true, kept: kept)
  }

  /// Reads a file's index.
  ///
  /// If `readsAll` is true, every packet is read and the movie's own index is ignored. If `kept` is
  /// not nil, its packets are used and none is read.
  init(
    _ path: String, readsAll: Bool, kept: [PacketIndexFile.Track]? = nil
  ) throws(LibAVError) {
    var demuxer = try Demuxer(opening: path)
    self.path = path
    containerName = demuxer.containerName
    isMOV = demuxer.isMOV
    tracks = demuxer.tracks
    metadata = demuxer.metadata
    chapters = demuxer.chapters
    let tables = readsAll || !isMOV ? nil : SampleTables(of: path)
    let known = tables.map { tracksInIndex($0, demuxer) } ?? [:]
    for (track, _) in known where !tracks[track].parameters.isIntraOnly {
      demuxer.skip(track: track, exceptKeyFrames: true)
    }
    let parsers = tracks.map { PacketParser.ofFrameTypes($0.parameters) }
    var positions: [Int: [ClockRestarts.Position]] = [:]
    var counter = ClockRestarts.Positions()
    var checks = tracks.map { known[$0.index] == nil ? DecodeOrderCheck($0) : nil }
    var finders = tracks.map { AudioExtentFinder($0, in: demuxer.containerName) }
    while kept == nil, let packet = try demuxer.nextPacket() {
      readCount += 1
      let position = counter.next(track: packet.trackIndex)
      // A packet that extends beyond the end of the file is incomplete and cannot be decoded.
      guard !packet.isCorrupt, tracks.indices.contains(packet.trackIndex) else { continue }
      wholeCounts[packet.trackIndex, default: 0] += 1
      finders[packet.trackIndex]?.add(packet)
      let track = tracks[packet.trackIndex]
      let parameters = track.parameters
      if packet.isEncrypted { encrypted.insert(packet.trackIndex) }
      var access = packet.isKeyFrame ? packet.randomAccess(parameters) : .none
      if access != .none, let parser = parsers[packet.trackIndex], !parser.isIntra(packet) {
        access = .none
      }
      checks[packet.trackIndex]?.add(packet, access)
      guard let record = PacketRecord(packet, of: track, access) else { continue }
      packets[packet.trackIndex, default: []].append(record)
      if !isMOV { positions[packet.trackIndex, default: []].append(position) }
      if known[packet.trackIndex] != nil, parameters.isIntraOnly {
        demuxer.skip(track: packet.trackIndex, exceptKeyFrames: false)
      }
    }
    damagedCounts = demuxer.damagedCounts
    changedFieldCount = demuxer.changedFieldCount
    for track in tracks {
      extents[track.index] = finders[track.index]?.extent
      if checks[track.index]?.finish() == true { suspicious.insert(track.index) }
      stated[track.index] = demuxer.index(ofTrack: track.index)
      if demuxer.isEncrypted(track: track.index) { encrypted.insert(track.index) }
    }
    if isMOV, let references = DataReferences(of: path)?.tracksElsewhere,
      references.count == tracks.count
    {
      elsewhere = Set(zip(tracks, references).filter(\.1).map(\.0.index))
    }
    if isMOV, let last = LastSamples(of: path), last.durations.count == tracks.count {
      lastDurations = last.durations
      changingTracks = Set(zip(tracks, last.changesDescription).filter(\.1).map(\.0.index))
    }
    take(kept ?? [])
    joinRecordings(positions)
    if kept != nil, corrections != nil || isClockInconsistent { isContradicted = true }
    for (track, locations) in known {
      guard stated[track]?.packetCount == locations.count, let tables,
        let records = records(track, locations, byteCount: tables.byteCount)
      else {
        isContradicted = true
        return
      }
      packets[track] = records
      wholeCounts[track] = records.count
    }
    for track in tracks {
      limitLastDuration(track)
      if parsers[track.index] == nil { distrustKeyFrames(track) }
    }
  }

  /// If the clock of the file restarts, moves the recordings so that they follow each other in
  /// time.
  ///
  /// MOV and MP4 store durations instead of times, so their clock cannot restart.
  private mutating func joinRecordings(_ positions: [Int: [ClockRestarts.Position]]) {
    guard !isMOV else { return }
    let media = tracks.filter { $0.kind != .other }.map { track in
      let packets = packets[track.index] ?? []
      return ClockRestarts.Track(
        format: track, packets: packets,
        positions: positions[track.index]
          ?? packets.indices.map { ClockRestarts.Position(number: $0, order: $0) })
    }
    guard let restarts = ClockRestarts(media, in: containerName) else { return }
    for track in restarts.tracks { packets[track.format.index] = track.packets }
    (corrections, restartTimes) = (restarts.corrections, restarts.times)
    isClockInconsistent = restarts.isInconsistent
    // The extents were found from times that are not corrected.
    extents = [:]
  }

  /// Takes over the packets of a stored packet index.
  private mutating func take(_ kept: [PacketIndexFile.Track]) {
    for track in kept {
      guard tracks.indices.contains(track.number), let stated = stated[track.number],
        !isMOV || tracks[track.number].indexedCount == 0 || track.wholeCount <= stated.packetCount
      else {
        isContradicted = true
        return
      }
      packets[track.number] = track.packets
      wholeCounts[track.number] = track.wholeCount
      if track.isEncrypted { encrypted.insert(track.number) }
      if track.isSuspicious { suspicious.insert(track.number) }
      extents[track.number] = track.extent
    }
  }

  /// Removes the key frame marks from all packets but the first, if the marks are not credible.
  ///
  /// They are not credible if every packet has the mark, although the codec uses inter prediction.
  ///
  /// In a movie without a sync sample table, every packet has the mark, even if most frames depend
  /// on other frames. H.264 and HEVC packets are parsed, so they are not affected. VP8, VP9, AV1
  /// and Theora are excluded, because their containers mark key frames reliably.
  private mutating func distrustKeyFrames(_ track: TrackFormat) {
    guard track.kind == .video, !track.parameters.isIntraOnly, !track.parameters.readsUnits,
      !["vp8", "vp9", "av1", "theora"].contains(track.parameters.codecName),
      let records = packets[track.index],
      records.count > 1, records.allSatisfy(\.isKeyFrame)
    else { return }
    for index in records.indices.dropFirst() {
      packets[track.index]?[index].isKeyFrame = false
      packets[track.index]?[index].isIndependent = false
    }
  }

  /// Limits the duration of a track's last packet to the duration in the boxes of the movie.
  ///
  /// libavformat may report a longer duration.
  private mutating func limitLastDuration(_ track: TrackFormat) {
    guard isMOV, isWhole(track), let records = packets[track.index], let last = records.last else {
      return
    }
    // If no box defines the duration of a fragment's last sample, this sample lasts as long as the
    // sample before it.
    let before = isInFragments(track) ? records.dropLast().last?.duration : nil
    guard let longest = lastDuration(of: track) ?? before, last.duration > longest else { return }
    packets[track.index]?[records.count - 1].duration = longest
  }

  /// The video tracks whose packets can be taken from the movie's own index, each with its index
  /// entries.
  ///
  /// The key frames of H.264 and HEVC tracks must still be read, because the mark in the index
  /// does not show whether decoding can start there.
  private func tracksInIndex(
    _ tables: SampleTables, _ demuxer: borrowing Demuxer
  ) -> [Int: [PacketLocation]] {
    guard tables.tracksInOrder.count == tracks.count else { return [:] }
    var known: [Int: [PacketLocation]] = [:]
    for (track, isInOrder) in zip(tracks, tables.tracksInOrder)
    where isInOrder && track.kind == .video {
      let needsBytes = track.parameters.readsUnits
      let locations = demuxer.locations(ofTrack: track.index)
      guard locations.count > 1, needsBytes || track.parameters.isIntraOnly,
        locations.allSatisfy({ $0.byteCount > 0 && $0.position >= 0 && $0.ticks != .min }),
        needsBytes || locations.allSatisfy(\.isKeyFrame)
      else { continue }
      known[track.index] = locations
    }
    return known
  }

  /// Creates the packets of a track from the movie's own index.
  ///
  /// Returns nil if a packet that was read contradicts the index.
  private func records(
    _ track: Int, _ locations: [PacketLocation], byteCount: Int64
  ) -> [PacketRecord]? {
    var read = (packets[track] ?? [])[...]
    let end = stated[track]?.ticks
    var records: [PacketRecord] = []
    records.reserveCapacity(locations.count)
    for (number, offset) in locations.enumerated() {
      let next = number + 1 < locations.count ? locations[number + 1].ticks : end
      guard let next, next > offset.ticks else { return nil }
      // Packets beyond the end of a truncated file are left out.
      let (last, overflow) = offset.position.addingReportingOverflow(Int64(offset.byteCount))
      guard !overflow, last <= byteCount else { continue }
      var record = PacketRecord(
        pts: offset.ticks, dts: offset.ticks, duration: next - offset.ticks,
        isKeyFrame: offset.isKeyFrame, isIndependent: false, isDiscarded: offset.isDiscarded)
      let isIntraOnly = tracks[track].parameters.isIntraOnly
      if let found = read.first, found.dts == offset.ticks {
        record.isIndependent = found.isIndependent
        record.isKeyFrame = found.isKeyFrame
        guard found == record else { return nil }
        read.removeFirst()
      } else if isIntraOnly {
        record.isIndependent = true
      } else if offset.isKeyFrame {
        return nil
      }
      records.append(record)
    }
    return read.isEmpty ? records : nil
  }

  /// The duration of a track's last sample in ticks.
  ///
  /// Nil if no box defines it.
  func lastDuration(of track: TrackFormat) -> Int64? {
    guard lastDurations.indices.contains(track.index), let ticks = lastDurations[track.index]
    else { return nil }
    // For uncompressed audio, the boxes give the duration of a sample, which is one tick. A packet
    // contains many samples, so its duration stays unknown.
    return ticks > (track.kind == .audio ? 1 : 0) ? ticks : nil
  }

  /// Whether all packets that a track's index lists were read.
  func isWhole(_ track: TrackFormat) -> Bool {
    guard let stated = stated[track.index] else { return false }
    return wholeCounts[track.index, default: 0] >= stated.packetCount
  }

  /// Whether all of a track's samples are in fragments.
  func isInFragments(_ track: TrackFormat) -> Bool { isMOV && track.indexedCount == 0 }
}
