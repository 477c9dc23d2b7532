// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

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
    do throws(LibAVError) { return try PresentationOrder(path, track, count: count) } catch {
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
