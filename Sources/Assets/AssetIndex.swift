// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// The packet index of a file.
///
/// Usually all packets are read. If a movie's own index suffices and frames are stored in
/// presentation order, only selected packets are read: those whose bytes show whether a frame is a
/// random access point. This matters because one minute of 1080p at 240 fps is a gigabyte.
struct AssetIndex {
  let containerName: String
  private let isMOV: Bool
  let tracks: [TrackFormat]
  let metadata: [String: String]
  let chapters: [Chapter]
  private let path: String
  /// The number of packets and the duration in ticks of each track, according to the file.
  private var stated: [Int: (packetCount: Int, ticks: Int64?)] = [:]
  /// The readable packets of each track, in decode order.
  private(set) var packets: [Int: [PacketRecord]] = [:]
  /// The number of complete packets of each track, including those without a time.
  private var wholeCounts: [Int: Int] = [:]
  /// The number of packets that were read.
  private(set) var readCount = 0
  /// The duration of each track's last sample from the movie's boxes, or nil if unknown.
  private var lastDurations: [Int64?] = []
  /// The tracks with encrypted packets.
  private var encrypted: Set<Int> = []
  /// The tracks whose samples are in another file, according to the movie's boxes.
  private(set) var elsewhere: Set<Int> = []
  /// Whether the file's index contradicts the packets that were read.
  private var isContradicted = false

  /// Reads a file's index.
  ///
  /// - Throws: `LibAVError` from opening or reading.
  init(_ path: String) throws(LibAVError) {
    let index = try AssetIndex(path, readsAll: false)
    self = index.isContradicted ? try AssetIndex(path, readsAll: true) : index
  }

  /// Reads a file's index.
  ///
  /// With `readsAll`, every packet is read, and the movie's own index is ignored.
  init(_ path: String, readsAll: Bool) throws(LibAVError) {
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
    let parsers = tracks.map { PacketParser.ofPictureTypes($0.parameters) }
    while let packet = try demuxer.nextPacket() {
      readCount += 1
      // A packet that ends beyond the file is truncated and cannot be decoded.
      guard !packet.isCorrupt, tracks.indices.contains(packet.trackIndex) else { continue }
      wholeCounts[packet.trackIndex, default: 0] += 1
      let track = tracks[packet.trackIndex]
      let parameters = track.parameters
      // Frames whose packets have no time get one later.
      guard let pts = packet.pts ?? packet.dts ?? (track.kind == .video ? 0 : nil) else { continue }
      if packet.isEncrypted { encrypted.insert(packet.trackIndex) }
      var access = packet.isKeyFrame ? packet.randomAccess(parameters) : .none
      if access != .none, let parser = parsers[packet.trackIndex], !parser.isIntra(packet) {
        access = .none
      }
      packets[packet.trackIndex, default: []].append(
        PacketRecord(
          pts: pts, dts: packet.dts, duration: packet.duration, isKeyFrame: access != .none,
          isIndependent: access == .independent,
          isDiscarded: packet.isDiscarded,
          isStated: packet.pts != nil || packet.dts != nil && parameters.isIntraOnly))
      if known[packet.trackIndex] != nil, parameters.isIntraOnly {
        demuxer.skip(track: packet.trackIndex, exceptKeyFrames: false)
      }
    }
    for track in tracks {
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
    }
    for (track, places) in known {
      guard stated[track]?.packetCount == places.count, let tables,
        let records = records(track, places, byteCount: tables.byteCount)
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

  /// Keeps only the first key frame of a predicted track whose packets all claim to be key frames.
  ///
  /// A movie without a sync sample table makes this claim for every codec. The check applies to
  /// codecs whose packets are not parsed, except those with reliable containers.
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

  /// Limits the duration of a movie track's last packet to that of its last sample.
  private mutating func limitLastDuration(_ track: TrackFormat) {
    guard isMOV, isWhole(track), let records = packets[track.index], let last = records.last else {
      return
    }
    // Without boxes that define it, a fragment's last sample lasts as long as the previous one.
    let before = isInFragments(track) ? records.dropLast().last?.duration : nil
    guard let longest = lastDuration(of: track) ?? before, last.duration > longest else { return }
    packets[track.index]?[records.count - 1].duration = longest
  }

  /// The video tracks whose index in the movie is complete except for random access points.
  private func tracksInIndex(
    _ tables: SampleTables, _ demuxer: borrowing Demuxer
  ) -> [Int: [PacketLocation]] {
    guard tables.tracksInOrder.count == tracks.count else { return [:] }
    var known: [Int: [PacketLocation]] = [:]
    for (track, isInOrder) in zip(tracks, tables.tracksInOrder)
    where isInOrder && track.kind == .video {
      let needsBytes = track.parameters.readsUnits
      let places = demuxer.places(ofTrack: track.index)
      guard places.count > 1, needsBytes || track.parameters.isIntraOnly,
        places.allSatisfy({ $0.byteCount > 0 && $0.position >= 0 && $0.ticks != .min }),
        needsBytes || places.allSatisfy(\.isKeyFrame)
      else { continue }
      known[track.index] = places
    }
    return known
  }

  /// Creates a track's packets from the movie's index.
  ///
  /// Nil if packets that were read contradict it.
  private func records(
    _ track: Int, _ places: [PacketLocation], byteCount: Int64
  ) -> [PacketRecord]? {
    var read = (packets[track] ?? [])[...]
    let end = stated[track]?.ticks
    var records: [PacketRecord] = []
    records.reserveCapacity(places.count)
    for (number, offset) in places.enumerated() {
      let next = number + 1 < places.count ? places[number + 1].ticks : end
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

  /// The first video track that can be decoded, or nil.
  ///
  /// A truncated file throws unless truncation is allowed.
  func videoTrack(allowsTruncation: Bool = false) throws(MediaError) -> VideoTrack? {
    guard let track = tracks.first(where: { $0.kind == .video && $0.parameters.hasDecoder }) else {
      return nil
    }
    return try videoTrack(track, allowsTruncation: allowsTruncation)
  }

  /// A track of images that can be decoded.
  func videoTrack(
    _ track: TrackFormat, allowsTruncation: Bool
  ) throws(MediaError) -> VideoTrack {
    try checkPlain(track, "frames")
    if !allowsTruncation { try checkWholeness(track, of: "frames") }
    guard let timescale = Int32(exactly: track.timeBase.denominator),
      let factor = Int64(exactly: track.timeBase.numerator)
    else { throw .invalid(path, "has a time base of \(track.timeBase) s") }
    let (records, isMade) = try presentation(of: track)
    let frames = try FrameTable(
      records, timesAreMade: isMade, timescale: timescale, tickFactor: factor,
      statedTicks: statedTicks(track),
      isInFragments: isInFragments(track), path: path)
    guard !frames.entries.isEmpty else { throw .invalid(path, "holds no frame that can be read") }
    guard track.parameters.width > 0, track.parameters.height > 0 else {
      throw .invalid(path, "does not contain the size of its frames")
    }
    return VideoTrack(
      codec: VideoCodec(rawValue: track.parameters.codecName), width: track.parameters.width,
      height: track.parameters.height, rotation: track.rotation, frames: frames, format: track)
  }

  /// A track's packets with presentation times, and whether some times were derived from the decode
  /// order.
  private func presentation(
    of track: TrackFormat
  ) throws(MediaError) -> (records: [PacketRecord], isMade: Bool) {
    let records = packets[track.index] ?? []
    let unstated = records.count { !$0.isStated }
    guard unstated > 0 else { return (records, false) }
    let order: PresentationOrder
    do throws(LibAVError) {
      order = try PresentationOrder(path, track, count: records.count)
    } catch { throw MediaError(reading: error) }
    guard let timed = order.timed(records) else {
      throw MediaError(
        .invalidData,
        "\(path) does not say when \(unstated) of its \(records.count) frames are shown, nor do "
          + "their durations",
        recovery: "add presentation times with another program, such as ffmpeg")
    }
    return (timed, true)
  }

  /// The first audio track that can be decoded, or nil.
  ///
  /// A truncated file throws unless truncation is allowed.
  func audioTrack(
    origin video: VideoTrack?, allowsTruncation: Bool = false
  ) throws(MediaError) -> AudioTrack? {
    guard let track = tracks.first(where: { $0.kind == .audio && $0.parameters.hasDecoder }) else {
      return nil
    }
    return try audioTrack(track, origin: video, allowsTruncation: allowsTruncation)
  }

  /// A track of audio that can be decoded; nil for one that is empty.
  func audioTrack(
    _ track: TrackFormat, origin video: VideoTrack?, allowsTruncation: Bool
  ) throws(MediaError) -> AudioTrack? {
    let rate = track.parameters.sampleRate
    let records = packets[track.index] ?? []
    guard let first = records.first, rate > 0, track.parameters.channelCount > 0 else { return nil }
    try checkPlain(track, "audio")
    if !allowsTruncation { try checkWholeness(track, of: "audio packets") }
    func sample(_ ticks: Int64) throws(MediaError) -> Int64 {
      guard let offset = track.sample(atTicks: ticks), abs(offset) < 1 << 53 else {
        throw .invalid(path, "has audio at a time that is out of bounds")
      }
      return offset
    }
    // Encoder padding before the first sample has negative times.
    let start = try max(0, sample(first.pts))
    let end = records.lazy.filter { !$0.isDiscarded }
      .map { $0.pts.addingReportingOverflow(max(0, $0.duration)).partialValue }.max()
    let endSample = try max(start, sample(end ?? first.pts))
    let origin: Int64
    if let video {
      origin = try originSample(of: video, rate: rate)
    } else {
      origin = start
    }
    return AudioTrack(
      codec: AudioCodec(rawValue: track.parameters.codecName), sampleRate: rate,
      channelCount: track.parameters.channelCount, sampleCount: endSample - start,
      startSample: start - origin, format: track, originSample: origin)
  }

  /// The position of the first frame in samples of the audio track.
  private func originSample(of video: VideoTrack, rate: Int) throws(MediaError) -> Int64 {
    guard
      let offset = try?
        (Rational(video.frames.originTicks) * video.format.timeBase * Rational(Int64(rate)))
        .rounded(.halfAwayFromZero), abs(offset) < 1 << 53
    else { throw .invalid(path, "has frames at a time that is out of bounds") }
    return Int64(offset)
  }

  /// The duration of a movie's track from its first frame, in ticks.
  ///
  /// Nil if packets are missing.
  ///
  /// The track ends with its last sample, or earlier according to an edit list. In a fragmented
  /// movie only the last sample counts, since its header was written before the samples.
  private func statedTicks(_ track: TrackFormat) -> Int64? {
    guard isMOV, isWhole(track), let records = packets[track.index] else { return nil }
    let samples = lastDuration(of: track).flatMap(records.ticks(endingWith:))
    if isInFragments(track) { return samples }
    guard var stated = stated[track.index]?.ticks else { return samples }
    // An edit list that hides packets starts at zero, before the first shown frame.
    if let origin = records.lazy.filter({ !$0.isDiscarded }).map(\.pts).min(),
      records.contains(where: \.isDiscarded)
    {
      stated = stated.subtractingReportingOverflow(max(0, origin)).partialValue
    }
    return samples.map { min(stated, $0) } ?? stated
  }

  /// The duration of a track's last sample in ticks.
  ///
  /// Nil if no box defines it.
  private func lastDuration(of track: TrackFormat) -> Int64? {
    guard lastDurations.indices.contains(track.index), let ticks = lastDurations[track.index]
    else { return nil }
    // Uncompressed audio has one sample per tick, and a packet contains many samples.
    return ticks > (track.kind == .audio ? 1 : 0) ? ticks : nil
  }

  /// Whether all packets in a track's index were read.
  private func isWhole(_ track: TrackFormat) -> Bool {
    guard let stated = stated[track.index] else { return false }
    return wholeCounts[track.index, default: 0] >= stated.packetCount
  }

  /// Whether a track's samples are only in fragments.
  private func isInFragments(_ track: TrackFormat) -> Bool { isMOV && track.indexedCount == 0 }

  /// Throws if a track is encrypted, because its decoded frames and copies would be unusable.
  private func checkPlain(_ track: TrackFormat, _ what: String) throws(MediaError) {
    guard encrypted.contains(track.index) else { return }
    throw MediaError(
      .invalidData, "the \(what) of \(path) are encrypted (Common Encryption)",
      recovery: "decrypt the file first, with a program that has its key")
  }

  /// Throws if the index of a plain movie lists packets beyond the end of the file.
  ///
  /// A fragmented movie has no such list, so its complete packets are all there is. Indices of
  /// other containers only list seek points.
  private func checkWholeness(_ track: TrackFormat, of what: String) throws(MediaError) {
    guard let truncation = truncation(of: track) else { return }
    throw MediaError(
      .invalidData,
      "\(path) is cut off: \(truncation.readableFrameCount) of "
        + "\(truncation.statedFrameCount) \(what) can be read",
      recovery: "copy the file again from where it was recorded")
  }

  /// The readable part of a track whose index lists more packets.
  ///
  /// Nil if all can be read.
  func truncation(of track: TrackFormat) -> Asset.Truncation? {
    guard isMOV, track.indexedCount > 0 else { return nil }
    let count = wholeCounts[track.index] ?? 0
    let named = stated[track.index]?.packetCount ?? 0
    return count < named
      ? Asset.Truncation(readableFrameCount: count, statedFrameCount: named) : nil
  }
}
