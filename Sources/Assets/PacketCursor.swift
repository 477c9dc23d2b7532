// SPDX-License-Identifier: Apache-2.0

import Algorithms
package import OvercrankLibAV
package import OvercrankMediaCore

/// Reads an asset's video packets by their index in decode order.
///
/// Forward access is fastest.
package final class PacketCursor {
  private let asset: Asset
  private var demuxer: Demuxer?
  private var next = 0
  /// The cached packets by their decode index.
  ///
  /// Packets are cached only after the first backward access.
  private var kept: [Int: Packet] = [:]
  private var keptBytes = 0
  private var goesBack = false
  /// The decode times in file ticks.
  ///
  /// Empty unless the file states the decode times of all packets.
  private lazy var decodeTicks: [Int64] = Self.decodeTicks(of: asset)

  /// The limits of the cache: `stepLength` packets, and `stepBytes` bytes.
  ///
  /// To reach a packet before the current position, the cursor goes back by up to 64 packets and
  /// caches the packets that it then reads. Further backward accesses then need no seek.
  private static let stepLength = 64
  private static let stepBytes = 64 << 20

  package init(_ asset: Asset) { self.asset = asset }

  /// The packet at an index in decode order, or nil if the file ends before that packet.
  ///
  /// - Throws: `CallFailure` if the file cannot be read.
  package func packet(at index: Int) throws(CallFailure) -> Packet? {
    if let packet = kept[index] { return packet }
    if demuxer == nil { try restart() }
    if index < next {
      goesBack = true
      (kept, keptBytes) = ([:], 0)
      try seek(to: max(0, index + 1 - Self.stepLength))
      if let packet = kept[index] { return packet }
    } else if index - next > Self.stepLength, index < decodeTicks.count {
      (kept, keptBytes) = ([:], 0)
      try seek(to: index)
      if let packet = kept[index] { return packet }
    }
    while let packet = try nextPacket() {
      let position = next
      next += 1
      if position == index { return packet }
      if goesBack, position > index - Self.stepLength, keptBytes < Self.stepBytes {
        kept[position] = packet
        keptBytes += packet.byteCount
      }
    }
    // A disk error would have been thrown by the read, so this is the end of the file.
    return nil
  }

  private func restart() throws(CallFailure) {
    // Probing reads packets to find tracks. MOV and MP4 list all tracks in their header, so only
    // other containers need probing.
    let opened = try asset.demuxer(probes: asset.container != "mov")
    if asset.container == "mov", let track = asset.videoTrack,
      [.h264, .hevc].contains(track.codec) || track.format.parameters.isIntraOnly
    {
      opened.readAsStored()
    }
    demuxer = consume opened
    next = 0
  }

  /// Returns the next packet of the video track.
  ///
  /// Corrupt packets are skipped, as in the asset's index, so that the decode indices agree with
  /// the index.
  private func nextPacket() throws(CallFailure) -> Packet? {
    while let packet = try demuxer?.nextPacket() {
      if packet.trackIndex == asset.videoTrack?.format.index, !packet.isCorrupt { return packet }
    }
    return nil
  }

  private func seek(to index: Int) throws(CallFailure) {
    guard index > 0, index < decodeTicks.count, let track = asset.videoTrack?.format.index else {
      return try restart()
    }
    try demuxer?.seek(track: track, toKeyFrameBefore: decodeTicks[index])
    // The decode time of the first packet after a seek shows which packet was reached. That packet
    // may be one key frame earlier than necessary, if a key frame is decoded before the target but
    // presented after it.
    guard let packet = try nextPacket(), let ticks = packet.dts else { return try restart() }
    let found = decodeTicks.partitioningIndex { $0 >= ticks }
    guard found < decodeTicks.count, decodeTicks[found] == ticks, found <= index else {
      return try restart()
    }
    kept[found] = packet
    keptBytes += packet.byteCount
    next = found + 1
  }

  /// Returns all decode times in decode order.
  ///
  /// Returns an empty array unless all are known and ascending.
  private static func decodeTicks(of asset: Asset) -> [Int64] {
    guard asset.container == "mov", let frames = asset.videoTrack?.frames else { return [] }
    let known =
      frames.entries.map { ($0.decodeIndex, $0.decodeTicks) }
      + frames.hiddenPackets.map { ($0.decodeIndex, $0.decodeTicks) }
    let ticks = known.sorted { $0.0 < $1.0 }.compactMap(\.1)
    let isWhole = ticks.count == known.count && zip(ticks, ticks.dropFirst()).allSatisfy(<)
    return isWhole ? ticks : []
  }
}
