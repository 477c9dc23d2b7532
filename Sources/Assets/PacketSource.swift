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
  /// The derived presentation times of all packets; nil if the file states them.
  private let madeTicks: [Int64]?
  /// The number of the track's packets that were read so far.
  private var readCount = 0
  /// The number of packets sent to the decoder so far.
  private(set) var sentCount = 0
  /// A packet that was read to find out where a seek ended.
  ///
  /// It is decoded next.
  private var held: Packet?
  /// The ticks to add to a decode time so that libavformat seeks to exactly that time.
  ///
  /// Zero until it is measured.
  private var seekOffset: Int64 = 0
  /// The number of further attempts to measure ``seekOffset``.
  private var trialsLeft = 3

  private init(
    _ asset: Asset, _ track: TrackFormat, madeTicks: [Int64]?, readsAsStored: Bool,
    threadCount: Int
  ) throws(CallFailure) {
    let demuxer = try asset.demuxer(probes: !readsAsStored)
    if readsAsStored { demuxer.readAsStored() }
    var decoder = try Decoder(
      parameters: track.parameters, subject: asset.path, timeBase: track.timeBase,
      threadCount: threadCount)
    // Camera frames have the BT.601 matrix, and recordings of this library have no tag for that.
    // For other files, the decoder may guess the matrix.
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
    do throws(CallFailure) {
      let video = asset.videoTrack
      let made = video?.format.index == track.index ? video?.frames.madeTicks : nil
      // The asset already has the codec parameters. In a MOV file where each packet is one frame,
      // the times of all packets are known as well, so probing and parsing are not needed.
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
  /// number from the start, which is unknown after a seek.
  mutating func seek(to ticks: Int64) throws(CallFailure) {
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
  /// For a seek in a MOV file, libavformat expects a presentation time, but its index contains
  /// decode times. In a file with B-frames, it therefore searches for a time that is too early by a
  /// constant, and finds the previous key frame. The constant is measured by a seek to any packet,
  /// once for each open file.
  ///
  /// - Returns: True if the next packet is the key frame, and false if it may be another one.
  mutating func seek(toKeyFrameDecodedAt ticks: Int64) throws(CallFailure) -> Bool {
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
    // No corrected target led to the wanted key frame, so the demuxer seeks to the wanted time itself.
    // The result may be an earlier key frame, which only costs time.
    try seek(to: ticks)
    return false
  }

  /// Reads the next packet of the track in advance, and returns its decode time.
  ///
  /// Returns nil at the end of the file, and for a damaged packet.
  private mutating func holdNext() throws(CallFailure) -> Int64? {
    held = nil
    do throws(CallFailure) {
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

  private mutating func nextPacket() throws(CallFailure) -> Packet? {
    guard let packet = held else { return try demuxer.nextPacket() }
    held = nil
    return packet
  }

  /// The next frame in presentation order, or nil at the end of the track.
  ///
  /// A frame may be skipped if no requested frame depends on it. With an intra-only codec, all
  /// frames before the time `start` and all unwanted frames are skipped. With other codecs, only
  /// unwanted frames that no other frame references are skipped.
  mutating func nextFrame(
    from start: Int64 = .min, _ isWanted: (Int64) -> Bool = { _ in true }
  ) throws(CallFailure) -> MediaFrame? {
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
