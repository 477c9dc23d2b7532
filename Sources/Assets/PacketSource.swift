// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The decoded frames of one track, from where its file was opened or sought to.
struct PacketSource: ~Copyable {
  private var demuxer: Demuxer
  private var decoder: Decoder
  private let track: Int
  private let isIntraOnly: Bool
  private var isDrained = false
  /// When the frame of each packet is shown, where packets do not say so themselves.
  private let madeTicks: [Int64]?
  /// How many packets of the track were read.
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

  /// The same, with an asset's error.
  static func open(
    _ asset: Asset, _ track: TrackFormat, threadCount: Int = 0
  ) throws(MediaError) -> PacketSource {
    do throws(LibAVError) {
      let video = asset.videoTrack
      let made = video?.format.index == track.index ? video?.frames.madeTicks : nil
      return try PacketSource(asset.path, track, madeTicks: made, threadCount: threadCount)
    } catch { throw MediaError(reading: error) }
  }

  /// Goes to the last key frame at or before a time in the file's ticks; not where times are made,
  /// since packets are then known by their count.
  mutating func seek(to ticks: Int64) throws(LibAVError) {
    try demuxer.seek(track: track, toKeyFrameBefore: ticks)
    decoder.flush()
    isDrained = false
  }

  /// The next frame in order of presentation, or nil at the end.
  ///
  /// Pictures that stand by themselves may be left out where they are shown before `start`, and
  /// all that no other needs where they are not wanted: decoding them would help nobody.
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
      // What was cut off with the file is no frame.
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
