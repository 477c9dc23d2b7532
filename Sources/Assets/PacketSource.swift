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
  /// The number of packets sent to the decoder.
  private(set) var sentCount = 0
  /// A packet that was read to learn where a seek ended, and is to be decoded next.
  private var held: Packet?
  /// The ticks to add to a decode time so that libavformat seeks to it; zero until measured.
  private var seekOffset: Int64 = 0
  /// The measurements of ``seekOffset`` that may still be made.
  private var trialsLeft = 3

  private init(
    _ asset: Asset, _ track: TrackFormat, madeTicks: [Int64]?, readsAsStored: Bool,
    threadCount: Int
  ) throws(LibAVError) {
    let demuxer = try asset.demuxer(probes: !readsAsStored)
    if readsAsStored { demuxer.readAsStored() }
    var decoder = try Decoder(
      parameters: track.parameters, subject: asset.path, timeBase: track.timeBase,
      threadCount: threadCount)
    // The frames of cameras are BT.601, and recordings of this library have no tag for it.
    decoder.guessesMatrix = asset.metadata[RecordingInfo.key] == nil
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
      // The asset has the codec parameters. A MOV file states the times of all packets, so neither
      // probing nor parsing adds anything, if each packet is one frame.
      let isStored =
        asset.container == "mov" && track.kind == .video
        && (track.parameters.readsUnits || track.parameters.isIntraOnly)
      return try PacketSource(
        asset, track, madeTicks: made, readsAsStored: isStored, threadCount: threadCount)
    } catch { throw MediaError(reading: error) }
  }

  /// Seeks to the last key frame at or before a time in the file's ticks.
  ///
  /// Not supported if presentation times are derived. The packets are then identified by their
  /// count from the start, which a seek would lose.
  mutating func seek(to ticks: Int64) throws(LibAVError) {
    try demuxer.seek(track: track, toKeyFrameBefore: ticks)
    restart()
  }

  private mutating func restart() {
    decoder.flush()
    isDrained = false
    held = nil
  }

  /// Seeks to a key frame by its decode time in the file's ticks.
  ///
  /// libavformat takes the time of a MOV seek for a presentation time, but its index has decode
  /// times. In a file with B-frames, it therefore searches too early by a constant, and finds the key
  /// frame before. A seek to any packet shows the constant, once per open file.
  ///
  /// - Returns: True if the next packet is the key frame, and false if it may be another one.
  mutating func seek(toKeyFrameDecodedAt ticks: Int64) throws(LibAVError) -> Bool {
    restart()
    let (target, overflow) = ticks.addingReportingOverflow(seekOffset)
    guard !overflow else { return false }
    try demuxer.seek(track: track, toKeyFrameBefore: target)
    if try holdNext() == ticks { return true }
    guard trialsLeft > 0 else { return false }
    trialsLeft -= 1
    try demuxer.seek(track: track, toPacketBefore: ticks)
    if let found = try holdNext() {
      let (offset, isTooFar) = ticks.subtractingReportingOverflow(found)
      let (target, overflow) = ticks.addingReportingOverflow(isTooFar ? 0 : offset)
      try demuxer.seek(track: track, toKeyFrameBefore: overflow ? ticks : target)
      if try holdNext() == ticks {
        (seekOffset, trialsLeft) = (offset, 0)
        return true
      }
    }
    // Either the file has no such constant, or the key frame is too near to the start to show it. A
    // search that ends too early costs time only.
    try seek(to: ticks)
    return false
  }

  /// Reads the next packet of the track ahead, and returns its decode time.
  ///
  /// Nil at the end, and for a damaged packet.
  private mutating func holdNext() throws(LibAVError) -> Int64? {
    held = nil
    do throws(LibAVError) {
      while let packet = try demuxer.nextPacket() {
        guard packet.trackIndex == track, !packet.isCorrupt else { continue }
        held = packet
        return packet.dts
      }
    } catch {
      guard error.isDamage else { throw error }
    }
    return nil
  }

  private mutating func nextPacket() throws(LibAVError) -> Packet? {
    guard let packet = held else { return try demuxer.nextPacket() }
    held = nil
    return packet
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
      guard var packet = try nextPacket() else {
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
      sentCount += 1
      try decoder.send(packet)
    }
  }
}
