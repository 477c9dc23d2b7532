// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankLinuxSystem
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
  /// - Throws: `CallFailure` from opening or reading.
  init(_ path: String) throws(CallFailure) {
    let index = try AssetIndex(path, readsAll: false)
    self = index.isContradicted ? try AssetIndex(path, readsAll: true) : index
  }

  /// Reads a file's index.
  ///
  /// Converts errors to `MediaError`.
  static func reading(_ path: String) throws(MediaError) -> AssetIndex {
    do throws(CallFailure) { return try AssetIndex(path) } catch {
      throw MediaError(reading: error)
    }
  }

  /// Reads a file's tracks, and takes the packets from a stored packet index.
  ///
  /// ``isContradicted`` becomes true if the file has other tracks or fewer packets than that index.
  init(_ path: String, kept: [PacketIndexFile.Track]) throws(CallFailure) {
    try self.init(path, readsAll: true, kept: kept)
  }

  /// Reads a file's index.
  ///
  /// If `readsAll` is true, every packet is read and the movie's own index is ignored. If `kept` is
  /// not nil, its packets are used and none is read.
  init(
    _ path: String, readsAll: Bool, kept: [PacketIndexFile.Track]? = nil
  ) throws(CallFailure) {
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

extension AssetIndex {
  /// The preferred video track among those that can be decoded, or nil.
  ///
  /// Throws an error for a truncated file, unless truncation is allowed.
  func videoTrack(allowsTruncation: Bool = false) throws(MediaError) -> VideoTrack? {
    guard let track = tracks.preferred(where: { $0.kind == .video && $0.parameters.hasDecoder })
    else {
      return nil
    }
    return try videoTrack(track, allowsTruncation: allowsTruncation)
  }

  /// Creates a video track that can be decoded, with its frames and its format.
  func videoTrack(
    _ track: TrackFormat, allowsTruncation: Bool
  ) throws(MediaError) -> VideoTrack {
    try checkPlain(track, "frames")
    if !allowsTruncation { try checkIntegrity(track, of: "frames") }
    guard let timescale = Int32(exactly: track.timeBase.denominator),
      let factor = Int64(exactly: track.timeBase.numerator)
    else { throw .invalid(path, "has a time base of \(track.timeBase) s") }
    let presentation = try presentation(of: track, timescale: timescale)
    let frames = try FrameTable(
      presentation, timescale: timescale, tickFactor: factor, statedTicks: statedTicks(track),
      isInFragments: isInFragments(track), path: path)
    guard !frames.entries.isEmpty else { throw .invalid(path, "holds no frame that can be read") }
    guard track.parameters.width > 0, track.parameters.height > 0 else {
      throw .invalid(path, "does not contain the size of its frames")
    }
    return VideoTrack(
      codec: VideoCodec(rawValue: track.parameters.codecName), width: track.parameters.width,
      height: track.parameters.height, rotation: track.rotation, frames: frames, format: track,
      changesDescription: changingTracks.contains(track.index))
  }

  /// Whether the file contains no frame times, so that the times from libavformat are invented.
  ///
  /// libavformat assumes 25 frames per second for elementary streams and image sequences. MPEG-2
  /// and MPEG-4 streams are exceptions, because they state their rate. H.264 and HEVC streams are
  /// also exceptions, because libavformat gives their frames no times.
  private var hasInventedTimes: Bool {
    ["mjpeg", "mpjpeg", "h261", "h263", "av1", "obu", "dirac", "vc1"].contains(containerName)
      || containerName.hasSuffix("_pipe")
  }

  /// A track's packets in decode order, with presentation times.
  struct Presentation {
    var records: [PacketRecord]
    /// Whether some times are derived or replaced, so that they differ from those in the file.
    var isMade = false
    /// The number of units of the presentation times in one tick of the file.
    var refinement: Int64 = 1
    /// The number of times that were replaced because they contradicted the order of the frames.
    var correctedCount = 0
  }

  /// A track's packets with presentation times.
  ///
  /// Missing times are derived from the order in which a decoder returns the frames. Times that
  /// contradict this order are replaced.
  func presentation(
    of track: TrackFormat, timescale: Int32
  ) throws(MediaError) -> Presentation {
    let records = withoutHeaderDuration(packets[track.index] ?? [], of: track)
    guard !hasInventedTimes || records.count <= 1 else {
      throw MediaError(
        .invalidData, "\(path) does not say when its \(records.count) frames are shown",
        recovery: "store the frames in a movie at their rate, with another program such as ffmpeg")
    }
    let unstated = records.count { !$0.isStated }
    if unstated == 0, let shown = try contradictedOrder(of: records, track) {
      let largest = Int64(Int32.max / timescale)
      guard let times = CorrectedTimes(records, shown: shown, largestRefinement: largest) else {
        throw .invalid(path, "has frames whose times contradict their order")
      }
      // If only a few times contradict the order, those times are wrong. If most do, the times are
      // right and the order is wrong.
      if Self.isAscending(shown.map { records[$0].pts }) || times.count * 2 <= shown.count {
        return Presentation(
          records: times.records, isMade: true, refinement: times.refinement,
          correctedCount: times.count)
      }
    }
    guard unstated > 0 else { return Presentation(records: records) }
    guard let timed = try decodedOrder(of: track, count: records.count).timed(records) else {
      throw MediaError(
        .invalidData,
        "\(path) has no presentation time for \(unstated) of its \(records.count) frames",
        recovery: "add presentation times with another program, such as ffmpeg")
    }
    return Presentation(records: timed, isMade: true)
  }

  /// The packets of a track; in an AVI file, the duration of the last one is corrected.
  ///
  /// AVI stores no durations, so libavformat gives each packet one period of the rate in the
  /// header. That rate may be higher than the rate of the frames, with empty packets between
  /// frames. The last frame then lasts to the end of the stream if that is plausible, otherwise as
  /// long as the frame before.
  private func withoutHeaderDuration(
    _ records: [PacketRecord], of track: TrackFormat
  ) -> [PacketRecord] {
    guard containerName == "avi", let last = records.last, records.count > 1 else { return records }
    let times = records.map { $0.dts ?? $0.pts }
    let intervals = zip(times.dropFirst(), times).map { $0 &- $1 }
    guard let shortest = intervals.min(), let longest = intervals.max(),
      shortest > last.duration, last.duration > 0
    else { return records }
    var records = records
    let rest = (stated[track.index]?.ticks ?? 0) &- times[times.count - 1]
    let isPlausible = (shortest...max(shortest, longest)).contains(rest)
    records[records.count - 1].duration = isPlausible ? rest : intervals[intervals.count - 1]
    return records
  }

  /// The packets of all shown frames in the order in which the decoder returns them, if the times
  /// contradict that order.
  ///
  /// Nil if the times do not contradict it.
  private func contradictedOrder(
    of records: [PacketRecord], _ track: TrackFormat
  ) throws(MediaError) -> [Int]? {
    let pairs = zip(records, records.dropFirst())
    if pairs.allSatisfy({ $0.pts < $1.pts }) { return nil }
    let shown = records.indices.filter { !records[$0].isDiscarded }
    let times = shown.map { records[$0].pts }
    guard suspicious.contains(track.index) || Set(times).count < times.count else { return nil }
    if Self.isAscending(times) { return shown }
    let decoded = try decodedOrder(of: track, count: records.count).shown
      .filter { !records[$0].isDiscarded }
    guard decoded.count > 1,
      !zip(decoded, decoded.dropFirst()).allSatisfy({ records[$0].pts < records[$1].pts })
    else { return nil }
    // Frames that the decoder does not return are inserted into the decoder's order, before the
    // first frame with a later time.
    guard decoded.count < shown.count else { return decoded }
    let returned = Set(decoded)
    var others = shown.filter { !returned.contains($0) }
      .sorted { (records[$0].pts, $0) < (records[$1].pts, $1) }[...]
    var order: [Int] = []
    for index in decoded {
      while let other = others.first, records[other].pts <= records[index].pts {
        order.append(other)
        others.removeFirst()
      }
      order.append(index)
    }
    return order + others
  }

  /// Whether each time is at or after the previous time in the array.
  private static func isAscending(_ times: [Int64]) -> Bool {
    zip(times, times.dropFirst()).allSatisfy(<=)
  }

  private func decodedOrder(
    of track: TrackFormat, count: Int
  ) throws(MediaError) -> PresentationOrder {
    do throws(CallFailure) { return try PresentationOrder(path, track, count: count) } catch {
      throw MediaError(reading: error)
    }
  }

  /// The preferred audio track among those that can be decoded, or nil.
  ///
  /// Throws an error for a truncated file, unless truncation is allowed.
  func audioTrack(
    origin video: VideoTrack?, allowsTruncation: Bool = false
  ) throws(MediaError) -> AudioTrack? {
    guard let track = tracks.preferred(where: { $0.kind == .audio && $0.parameters.hasDecoder })
    else {
      return nil
    }
    return try audioTrack(track, origin: video, allowsTruncation: allowsTruncation)
  }

  /// Creates an audio track that can be decoded, with its format and its samples.
  ///
  /// Returns nil for an empty track.
  func audioTrack(
    _ track: TrackFormat, origin video: VideoTrack?, allowsTruncation: Bool
  ) throws(MediaError) -> AudioTrack? {
    let rate = track.parameters.sampleRate
    let records = packets[track.index] ?? []
    guard let first = records.first, rate > 0, track.parameters.channelCount > 0 else { return nil }
    try checkPlain(track, "audio")
    if !allowsTruncation { try checkIntegrity(track, of: "audio packets") }
    func sample(_ ticks: Int64) throws(MediaError) -> Int64 {
      guard let offset = track.sample(atTicks: ticks), offset.magnitude < 1 << 53 else {
        throw .invalid(path, "has audio at a time that is out of bounds")
      }
      return offset
    }
    // Samples with negative times are encoder padding, so they are left out.
    let extent = extents[track.index]
    let firstSample: Int64
    if let extent { firstSample = extent.start } else { firstSample = try sample(first.pts) }
    let start = max(0, firstSample)
    let end = records.lazy.filter { !$0.isDiscarded }
      .map { $0.pts.addingReportingOverflow(max(0, $0.duration)).partialValue }.max()
    var endSample = try max(start, sample(end ?? first.pts))
    if let extent {
      endSample = max(start, extent.start + extent.count)
    } else if let last = records.last, last.duration <= 0,
      let count = LastAudioPacket.sampleCount(of: self, track, at: last.pts)
    {
      endSample = try max(endSample, sample(last.pts) + count)
    }
    let hasAscendingTimes = zip(records, records.dropFirst()).allSatisfy { $0.pts < $1.pts }
    let origin: Int64
    if let video {
      origin = try originSample(of: video, rate: rate)
    } else {
      origin = start
    }
    return AudioTrack(
      codec: AudioCodec(rawValue: track.parameters.codecName), sampleRate: rate,
      channelCount: track.parameters.channelCount, sampleCount: endSample - start,
      startSample: start - origin, format: track, originSample: origin,
      hasExactExtent: extent != nil, hasAscendingTimes: hasAscendingTimes)
  }

  /// The time of the first video frame on the file's own time axis, in audio samples at `rate`.
  func originSample(of video: VideoTrack, rate: Int) throws(MediaError) -> Int64 {
    guard
      let offset = try? (video.origin * Rational(Int64(rate))).rounded(.halfAwayFromZero),
      offset.magnitude < 1 << 53
    else { throw .invalid(path, "has frames at a time that is out of bounds") }
    return Int64(offset)
  }

  /// The time from the first shown frame to the end of a MOV or MP4 track, in ticks.
  ///
  /// The track ends with its last sample, unless an edit list ends it earlier. In a fragmented
  /// movie, the duration in the header is ignored, because the header was written before the
  /// samples.
  ///
  /// Nil if packets are missing.
  func statedTicks(_ track: TrackFormat) -> Int64? {
    guard isMOV, isWhole(track), let records = packets[track.index] else { return nil }
    let samples = lastDuration(of: track).flatMap(records.ticks(endingWith:))
    if isInFragments(track) { return samples }
    guard var stated = stated[track.index]?.ticks else { return samples }
    // If an edit list hides packets, the stated duration starts at the file's time zero. The first
    // shown frame may be later, so the time before that frame is subtracted.
    if let origin = records.lazy.filter({ !$0.isDiscarded }).map(\.pts).min(),
      records.contains(where: \.isDiscarded)
    {
      stated = stated.subtractingReportingOverflow(max(0, origin)).partialValue
    }
    return samples.map { min(stated, $0) } ?? stated
  }

  /// Throws an error for an encrypted track.
  ///
  /// The packets of an encrypted track can be neither decoded nor usefully copied.
  func checkPlain(_ track: TrackFormat, _ what: String) throws(MediaError) {
    guard encrypted.contains(track.index) else { return }
    throw MediaError(
      .invalidData, "the \(what) of \(path) are encrypted (Common Encryption)",
      recovery: "decrypt the file first, with a program that has its key")
  }

  /// Throws an error if the index of an unfragmented MOV or MP4 lists packets beyond the end of the
  /// file.
  ///
  /// Other files are not checked. A fragmented movie has no index of the whole file, and other
  /// containers index only some packets for seeking.
  func checkIntegrity(_ track: TrackFormat, of what: String) throws(MediaError) {
    guard let truncation = truncation(of: track) else { return }
    throw MediaError(
      .invalidData,
      "\(path) is truncated: \(truncation.readableFrameCount) of "
        + "\(truncation.statedFrameCount ?? 0) \(what) can be read",
      recovery: "copy the file again from where it was recorded")
  }

  /// The readable part of a truncated file with this video track.
  ///
  /// Nil if the whole file can be read.
  func truncation(of video: VideoTrack) -> Asset.Truncation? {
    if let truncation = truncation(of: video.format) { return truncation }
    let name = containerName.split(separator: ",").first.map(String.init) ?? ""
    guard let length = ContainerLength(path, container: name), length.isCutOff else { return nil }
    let stated = length.statedFrameCount.flatMap { $0 > video.frameCount ? $0 : nil }
    return Asset.Truncation(readableFrameCount: video.frameCount, statedFrameCount: stated)
  }

  /// The readable part of a track whose index lists more packets than can be read.
  ///
  /// Nil if all packets can be read.
  func truncation(of track: TrackFormat) -> Asset.Truncation? {
    guard isMOV, track.indexedCount > 0 else { return nil }
    let count = wholeCounts[track.index] ?? 0
    let named = stated[track.index]?.packetCount ?? 0
    return count < named
      ? Asset.Truncation(readableFrameCount: count, statedFrameCount: named) : nil
  }
}

extension AssetIndex {
  /// Returns descriptions of faults in the file that do not prevent reading.
  func notes(video: VideoTrack?, audio: AudioTrack?) -> [String] {
    var notes: [String] = []
    let origin = video?.origin ?? .zero
    if !restartTimes.isEmpty {
      let times = restartTimes.prefix(10).map { ($0 - origin).displayText }
        .joined(separator: ", ")
      let more = restartTimes.count > 10 ? " and later" : ""
      notes.append(
        "the clock restarts at \(times) s\(more), where recordings were joined; they play one after "
          + "the other")
    }
    let damaged = [video?.format.index, audio?.format.index].compactMap { $0 }
      .reduce(0) { $0 + damagedCounts[$1, default: 0] }
    if damaged > 0 {
      notes.append(
        "bytes are missing in or before \(damaged) packets; their frames or samples may be damaged or "
          + "missing")
    }
    if changedFieldCount > 0 {
      notes.append(
        "codec parameters change between the two fields of \(changedFieldCount) frames; some players "
          + "show the second field of such a frame slightly wrong in a copy")
    }
    return notes
  }
}

extension AssetIndex {
  /// Writes the packet index next to the movie.
  ///
  /// `state` is the state of the movie before its packets were read.
  ///
  /// - Returns: The reason why the index was not written, or nil.
  func write(
    _ state: PacketIndexFile.MovieState?, _ use: inout Asset.KeptIndex
  ) -> String? {
    guard use.refusal != .otherKind, use.refusal != .unreadable else {
      return "the name belongs to another file"
    }
    guard !SystemFiles.isSymbolicLink(use.path) else { return "the name is a symbolic link" }
    guard let state, state == PacketIndexFile.MovieState(path) else {
      return "the movie changed while it was read"
    }
    // The index file contains corrected times, but not the corrections, which other readers of the
    // movie need.
    guard corrections == nil else { return "the clock of the movie restarts" }
    let tracks = packets.keys.sorted().map { number in
      PacketIndexFile.Track(
        number: number, isEncrypted: encrypted.contains(number),
        isSuspicious: suspicious.contains(number),
        wholeCount: wholeCounts[number, default: 0], packets: packets[number] ?? [],
        extent: extents[number])
    }
    guard let bytes = PacketIndexFile(state, tracks: tracks).bytes else {
      return "the movie has too many packets or times out of bounds"
    }
    do throws(CallFailure) {
      try WholeFile.write(bytes, to: use.path, overwrites: true)
      use.isWritten = true
      return nil
    } catch { return MediaError(creating: error).message }
  }
}
