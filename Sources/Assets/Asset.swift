// SPDX-License-Identifier: Apache-2.0
package import LibAV
public import MediaTiming

/// What a movie file holds, with the exact time of each of its frames.
///
/// Time zero is the first picture (or the first sample of a file without pictures). The index is
/// read once, when the asset is made.
public struct Asset: Sendable {
  /// The file.
  public let path: String
  /// The container, by the name of its family: `mov`, `matroska`, `avi`.
  public let container: String
  /// The first track of pictures, or nil.
  public let videoTrack: VideoTrack?
  /// The first track of sound, or nil.
  public let soundTrack: SoundTrack?
  /// The tags of the file.
  public let metadata: [String: String]
  /// The chapters of the file.
  package let chapterList: [LibAV.Chapter]
  /// Tracks that are neither, which an export leaves out.
  package let otherTrackCount: Int

  /// Reads what a file holds.
  ///
  /// - Throws: `AssetError`: `.notFound`, `.noPermission`, or `.invalidData` for a file that is
  ///   no movie, is damaged or is cut off.
  public init(path: String) throws(AssetError) {
    try AssetFile.check(path)
    self.path = path
    var index: AssetIndex
    do throws(LibAVError) { index = try AssetIndex(path) } catch { throw AssetError(error) }
    container = index.containerName.split(separator: ",").first.map(String.init) ?? "unknown"
    metadata = index.metadata
    chapterList = index.chapters
    videoTrack = try index.videoTrack(path)
    soundTrack = try index.soundTrack(path, origin: videoTrack)
    otherTrackCount = index.tracks.count - (videoTrack == nil ? 0 : 1) - (soundTrack == nil ? 0 : 1)
    guard videoTrack != nil || soundTrack != nil else {
      throw .invalid(path, "holds neither pictures nor sound")
    }
  }

  /// How long the asset plays: to the end of its last picture, or of its sound without pictures.
  public var duration: MediaTime {
    if let frames = videoTrack?.frames,
      let time = try? MediaTime(value: frames.endTicks, timescale: frames.timescale)
    {
      return time
    }
    guard let soundTrack, let rate = Int32(exactly: soundTrack.sampleRate),
      let time = try? MediaTime(value: soundTrack.sampleCount, timescale: rate)
    else { return .zero }
    return time
  }

  /// The chapters: title, start and end in seconds of the file.
  public var chapters: [(title: String, start: Rational, end: Rational)] {
    chapterList.map { ($0.title, $0.start, $0.end) }
  }
}

/// What reading all packets of a file tells.
private struct AssetIndex {
  let containerName: String
  let tracks: [TrackFormat]
  let metadata: [String: String]
  let chapters: [LibAV.Chapter]
  var packets: [Int: [PacketRecord]] = [:]
  var cutOff: Set<Int> = []

  init(_ path: String) throws(LibAVError) {
    var demuxer = try Demuxer(opening: path)
    containerName = demuxer.containerName
    tracks = demuxer.tracks
    metadata = demuxer.metadata
    chapters = demuxer.chapters
    while let packet = try demuxer.nextPacket() {
      // A packet that ends with the file is cut off; what follows cannot be read.
      if packet.isCorrupt {
        cutOff.insert(packet.trackIndex)
        continue
      }
      guard let pts = packet.pts ?? packet.dts else { continue }
      packets[packet.trackIndex, default: []].append(
        PacketRecord(
          pts: pts, duration: packet.duration, isKeyFrame: packet.isKeyFrame,
          isDiscarded: packet.isDiscarded))
    }
  }

  func videoTrack(_ path: String) throws(AssetError) -> VideoTrack? {
    guard let track = tracks.first(where: { $0.kind == .video }) else { return nil }
    let records = packets[track.index] ?? []
    guard track.indexedCount <= records.count else {
      throw .invalid(
        path, "is cut off: \(records.count) of \(track.indexedCount) frames can be read")
    }
    guard let timescale = Int32(exactly: track.timeBase.denominator),
      let factor = Int64(exactly: track.timeBase.numerator)
    else { throw .invalid(path, "has a time base of \(track.timeBase) s") }
    let frames = try FrameTable(records, timescale: timescale, tickFactor: factor)
    guard !frames.entries.isEmpty else { throw .invalid(path, "holds no frame that can be read") }
    guard track.parameters.width > 0, track.parameters.height > 0 else {
      throw .invalid(path, "does not say how large its pictures are")
    }
    return VideoTrack(
      codec: track.parameters.codecName, width: track.parameters.width,
      height: track.parameters.height, rotation: track.rotation,
      nominalFrameRate: track.nominalFrameRate, frames: frames, format: track)
  }

  func soundTrack(
    _ path: String, origin video: VideoTrack?
  ) throws(AssetError) -> SoundTrack? {
    guard let track = tracks.first(where: { $0.kind == .audio }) else { return nil }
    let records = packets[track.index] ?? []
    let rate = track.parameters.sampleRate
    guard let first = records.first, let last = records.last, rate > 0,
      track.parameters.channelCount > 0
    else { return nil }
    func sample(_ ticks: Int64) throws(AssetError) -> Int64 {
      do throws(TimingError) {
        let seconds = try Rational(ticks).multiplied(by: track.timeBase)
        let place = try seconds.multiplied(by: Rational(Int64(rate))).rounded(.halfAwayFromZero)
        guard abs(place) < 1 << 53 else { throw TimingError(.overflow, "a time of sound") }
        return Int64(place)
      } catch { throw .invalid(path, "has sound at a time that is out of bounds") }
    }
    // What an encoder put before its first sample has times below the file's zero.
    let start = try max(0, sample(first.pts))
    let end = try max(start, sample(last.pts.addingReportingOverflow(last.duration).partialValue))
    let origin: Int64
    if let video {
      let seconds = try? Rational(video.frames.originTicks).multiplied(by: video.format.timeBase)
        .multiplied(by: Rational(Int64(rate)))
      origin = seconds.map { Int64(clamping: $0.rounded(.halfAwayFromZero)) } ?? 0
    } else {
      origin = start
    }
    return SoundTrack(
      codec: track.parameters.codecName, sampleRate: rate,
      channelCount: track.parameters.channelCount, sampleCount: end - start,
      startSample: start - origin, format: track, originSample: origin)
  }
}
