// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Decodes the frames of one track from the start or from a seek point.
struct PacketSource: ~Copyable {
  private var demuxer: Demuxer
  private var decoder: Decoder
  private let track: Int
  private let isIntraOnly: Bool
  private var isDrained = false
  /// The derived presentation time of each packet, if packets lack their own.
  private let madeTicks: [Int64]?
  /// The number of the track's packets read so far.
  private var readCount = 0

  init(
    _ path: String, _ track: TrackFormat, madeTicks: [Int64]?, threadCount: Int
  ) throws(LibAVError) {
    let demuxer = try Demuxer(opening: path)
    let decoder = try Decoder(
      parameters: track.parameters, subject: path, timeBase: track.timeBase,
      threadCount: threadCount)
    self.demuxer = consume demuxer
    self.decoder = consume decoder
    self.track = track.index
    self.madeTicks = madeTicks
    isIntraOnly = track.parameters.isIntraOnly
  }

  /// Opens a track of an asset.
  static func open(
    _ asset: Asset, _ track: TrackFormat, threadCount: Int = 0
  ) throws(MediaError) -> PacketSource {
    do throws(LibAVError) {
      let video = asset.videoTrack
      let made = video?.format.index == track.index ? video?.frames.madeTicks : nil
      return try PacketSource(asset.path, track, madeTicks: made, threadCount: threadCount)
    } catch { throw MediaError(reading: error) }
  }

  /// Seeks to the last key frame at or before a time in the file's ticks.
  ///
  /// Not supported if presentation times are derived. The packets are then identified by their
  /// count from the start, which a seek would lose.
  mutating func seek(to ticks: Int64) throws(LibAVError) {
    try demuxer.seek(track: track, toKeyFrameBefore: ticks)
    decoder.flush()
    isDrained = false
  }

  /// The next frame in presentation order, or nil at the end.
  ///
  /// A frame may be skipped if no requested frame depends on it. With an intra-only codec, these
  /// are the frames before the time `start` and the unwanted frames. With other codecs, these are
  /// the unwanted frames that no other frame references.
  mutating func nextFrame(
    from start: Int64 = .min, _ isWanted: (Int64) -> Bool = { _ in true }
  ) throws(LibAVError) -> MediaFrame? {
    while true {
      if let frame = try decoder.nextFrame() { return frame }
      if isDrained { return nil }
      guard var packet = try demuxer.nextPacket() else {
        isDrained = true
        try decoder.send(nil)
        continue
      }
      // A truncated packet contains no complete frame.
      guard packet.trackIndex == track, !packet.isCorrupt else { continue }
      if let madeTicks, madeTicks.indices.contains(readCount) {
        packet = try packet.shown(at: madeTicks[readCount])
      }
      readCount += 1
      let isNeeded = packet.pts.map(isWanted) ?? true
      if isIntraOnly, let time = packet.pts ?? packet.dts, time < start || !isNeeded { continue }
      decoder.skipsUnreferenced = !isNeeded
      try decoder.send(packet)
    }
  }
}
