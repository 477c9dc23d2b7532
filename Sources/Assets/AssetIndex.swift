// SPDX-License-Identifier: Apache-2.0
import LibAV
import MediaTiming

/// What the packets of a file tell.
///
/// All of them are read, unless the index of a movie says as much: where pictures are shown in the
/// order in which they are stored, only those are read whose bytes must tell whether they stand
/// alone. (A minute of 1080p at 240 fps is a gigabyte.)
struct AssetIndex {
  let containerName: String
  let tracks: [TrackFormat]
  let metadata: [String: String]
  let chapters: [LibAV.Chapter]
  private let path: String
  /// What the file says of each track: how many packets, and how many ticks.
  private var stated: [Int: (packetCount: Int, ticks: Int64?)] = [:]
  /// What is known of the packets that can be read, by track, in the order of decoding.
  private(set) var packets: [Int: [PacketRecord]] = [:]
  /// All packets that came whole, by track; some of them may have no time.
  private var wholeCounts: [Int: Int] = [:]
  /// How many packets were read.
  private(set) var readCount = 0
  /// Whether the file's index says other things than the packets that were read.
  private var isContradicted = false

  /// Reads a file's index.
  ///
  /// - Throws: `LibAVError` for "open" or "read".
  init(_ path: String) throws(LibAVError) {
    let index = try AssetIndex(path, readsAll: false)
    self = index.isContradicted ? try AssetIndex(path, readsAll: true) : index
  }

  /// Reads a file's index; all packets, if so asked, whatever the file's own says.
  init(_ path: String, readsAll: Bool) throws(LibAVError) {
    var demuxer = try Demuxer(opening: path)
    self.path = path
    containerName = demuxer.containerName
    tracks = demuxer.tracks
    metadata = demuxer.metadata
    chapters = demuxer.chapters
    let tables = readsAll || !isMOV ? nil : SampleTables(of: path)
    let known = tables.map { tracksInIndex($0, demuxer) } ?? [:]
    for (track, _) in known where !tracks[track].parameters.isIntraOnly {
      demuxer.skip(track: track, exceptKeyFrames: true)
    }
    while let packet = try demuxer.nextPacket() {
      readCount += 1
      // A packet that ends with the file is cut off; what follows cannot be read.
      guard !packet.isCorrupt, tracks.indices.contains(packet.trackIndex) else { continue }
      wholeCounts[packet.trackIndex, default: 0] += 1
      guard let pts = packet.pts ?? packet.dts else { continue }
      let parameters = tracks[packet.trackIndex].parameters
      packets[packet.trackIndex, default: []].append(
        PacketRecord(
          pts: pts, dts: packet.dts, duration: packet.duration, isKeyFrame: packet.isKeyFrame,
          isIndependent: packet.isKeyFrame && packet.isIndependent(parameters),
          isDiscarded: packet.isDiscarded))
      if known[packet.trackIndex] != nil, parameters.isIntraOnly {
        demuxer.skip(track: packet.trackIndex, exceptKeyFrames: false)
      }
    }
    for track in tracks { stated[track.index] = demuxer.index(ofTrack: track.index) }
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
  }

  /// The tracks of pictures of which the file's index says all but what the pictures' bytes do.
  private func tracksInIndex(
    _ tables: SampleTables, _ demuxer: borrowing Demuxer
  ) -> [Int: [PacketPlace]] {
    guard tables.tracksInOrder.count == tracks.count else { return [:] }
    var known: [Int: [PacketPlace]] = [:]
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

  /// The packets of a track by its index, which those that were read must agree with; nil where
  /// they do not.
  private func records(
    _ track: Int, _ places: [PacketPlace], byteCount: Int64
  ) -> [PacketRecord]? {
    var read = (packets[track] ?? [])[...]
    let end = stated[track]?.ticks
    var records: [PacketRecord] = []
    records.reserveCapacity(places.count)
    for (number, place) in places.enumerated() {
      let next = number + 1 < places.count ? places[number + 1].ticks : end
      guard let next, next > place.ticks else { return nil }
      // Cut off with the file's end.
      let (last, overflow) = place.position.addingReportingOverflow(Int64(place.byteCount))
      guard !overflow, last <= byteCount else { continue }
      var record = PacketRecord(
        pts: place.ticks, dts: place.ticks, duration: next - place.ticks,
        isKeyFrame: place.isKeyFrame, isIndependent: false, isDiscarded: place.isDiscarded)
      let isIntraOnly = tracks[track].parameters.isIntraOnly
      if let found = read.first, found.dts == place.ticks {
        record.isIndependent = found.isIndependent
        guard found == record else { return nil }
        read.removeFirst()
      } else if isIntraOnly {
        record.isIndependent = true
      } else if place.isKeyFrame {
        return nil
      }
      records.append(record)
    }
    return read.isEmpty ? records : nil
  }

  /// The first track of pictures that can be decoded, or nil.
  func videoTrack() throws(AssetError) -> VideoTrack? {
    guard let track = tracks.first(where: { $0.kind == .video && $0.parameters.hasDecoder }) else {
      return nil
    }
    try checkWholeness(track, of: "frames")
    guard let timescale = Int32(exactly: track.timeBase.denominator),
      let factor = Int64(exactly: track.timeBase.numerator)
    else { throw .invalid(path, "has a time base of \(track.timeBase) s") }
    let frames = try FrameTable(
      packets[track.index] ?? [], timescale: timescale, tickFactor: factor,
      statedTicks: statedTicks(track),
      isInFragments: isMOV && track.indexedCount == 0, path: path)
    guard !frames.entries.isEmpty else { throw .invalid(path, "holds no frame that can be read") }
    guard track.parameters.width > 0, track.parameters.height > 0 else {
      throw .invalid(path, "does not say how large its pictures are")
    }
    return VideoTrack(
      codec: track.parameters.codecName, width: track.parameters.width,
      height: track.parameters.height, rotation: track.rotation, frames: frames, format: track)
  }

  /// The first track of sound that can be decoded, or nil.
  func soundTrack(origin video: VideoTrack?) throws(AssetError) -> SoundTrack? {
    guard let track = tracks.first(where: { $0.kind == .audio && $0.parameters.hasDecoder }) else {
      return nil
    }
    let rate = track.parameters.sampleRate
    let records = packets[track.index] ?? []
    guard let first = records.first, rate > 0, track.parameters.channelCount > 0 else { return nil }
    try checkWholeness(track, of: "blocks of sound")
    func sample(_ ticks: Int64) throws(AssetError) -> Int64 {
      guard let place = track.sample(atTicks: ticks), abs(place) < 1 << 53 else {
        throw .invalid(path, "has sound at a time that is out of bounds")
      }
      return place
    }
    // What an encoder put before its first sample has times below the file's zero.
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
    return SoundTrack(
      codec: track.parameters.codecName, sampleRate: rate,
      channelCount: track.parameters.channelCount, sampleCount: endSample - start,
      startSample: start - origin, format: track, originSample: origin)
  }

  /// The place of the first picture among the samples of the file's own count.
  private func originSample(of video: VideoTrack, rate: Int) throws(AssetError) -> Int64 {
    guard
      let place = try? Rational(video.frames.originTicks).multiplied(by: video.format.timeBase)
        .multiplied(by: Rational(Int64(rate))).rounded(.halfAwayFromZero), abs(place) < 1 << 53
    else { throw .invalid(path, "has pictures at a time that is out of bounds") }
    return Int64(place)
  }

  /// The length of a track of a movie by its own word; nil where it has lost some of it.
  private func statedTicks(_ track: TrackFormat) -> Int64? {
    guard isMOV, let stated = stated[track.index],
      wholeCounts[track.index, default: 0] >= stated.packetCount
    else { return nil }
    return stated.ticks
  }

  private var isMOV: Bool { containerName.hasPrefix("mov,") }

  /// Throws when the index of a plain movie names packets that the file does not hold.
  ///
  /// A file in fragments names none in advance: there, what is whole is all there is. Neither
  /// does an index of another container, which lists places to jump to.
  private func checkWholeness(_ track: TrackFormat, of what: String) throws(AssetError) {
    guard isMOV, track.indexedCount > 0 else { return }
    let count = wholeCounts[track.index] ?? 0
    let named = stated[track.index]?.packetCount ?? 0
    guard count >= named else {
      throw AssetError(
        .invalidData, "\(path) is cut off: \(count) of \(named) \(what) can be read",
        hint: "copy the file again from where it was recorded")
    }
  }
}

/// What the index of a track says of one packet, in the file's ticks.
struct PacketRecord: Hashable {
  let pts: Int64
  let dts: Int64?
  let duration: Int64
  let isKeyFrame: Bool
  /// Whether its bytes say that no picture before it is needed.
  var isIndependent: Bool
  let isDiscarded: Bool
}

extension CodecParameters {
  /// Whether a packet's own units tell whether a picture stands alone.
  fileprivate var readsUnits: Bool { codecName == "hevc" || codecName == "h264" }
}

extension TrackFormat {
  /// The sample that is nearest to a time of a sound track; nil where it does not fit.
  func sample(atTicks ticks: Int64) -> Int64? {
    let rate = Rational(Int64(parameters.sampleRate))
    let place = try? Rational(ticks).multiplied(by: timeBase).multiplied(by: rate)
    return place.flatMap { Int64(exactly: $0.rounded(.halfAwayFromZero)) }
  }
}

extension Packet {
  /// Whether a key frame needs no picture before it, by its own bytes.
  ///
  /// False only for H.264 and HEVC pictures that are no IDR: containers also call the start of
  /// an open group a key frame. (Rec. ITU-T H.264 table 7-1, H.265 table 7-1.)
  fileprivate func isIndependent(_ parameters: CodecParameters) -> Bool {
    guard parameters.readsUnits else { return true }
    let isHEVC = parameters.codecName == "hevc"
    return withBytes { bytes in
      var units = UnitReader(bytes, lengthSize: parameters.unitLengthSize)
      while let unit = units.next() {
        let first = bytes[unit.lowerBound]
        let type = isHEVC ? first >> 1 & 0x3F : first & 0x1F
        if isHEVC ? type == 19 || type == 20 : type == 5 { return true }
        // Any other slice; what is not one are parameter sets and remarks.
        if isHEVC ? type < 32 : (1...4).contains(type) { return false }
      }
      return false
    }
  }
}
