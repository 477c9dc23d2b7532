// SPDX-License-Identifier: Apache-2.0

import Algorithms
package import OvercrankLibAV
import OvercrankMediaCore

/// Reads the packets of an asset's pictures by their place in the order of decoding; forwards is
/// fastest, and backwards goes in steps.
package final class PacketCursor {
  private let asset: Asset
  private var demuxer: Demuxer?
  private var next = 0
  /// Packets read lately, kept once somebody goes backwards.
  private var kept: [Int: Packet] = [:]
  private var keptBytes = 0
  private var goesBack = false
  /// When each packet is decoded, in the file's ticks; empty where the file does not say.
  private lazy var decodeTicks: [Int64] = Self.decodeTicks(of: asset)

  /// How far back a step goes, in packets and in bytes.
  private static let stepLength = 64
  private static let stepBytes = 64 << 20

  package init(_ asset: Asset) { self.asset = asset }

  /// The packet at an index in the order of decoding; nil where the file ends before it.
  ///
  /// - Throws: `LibAVError` where the file cannot be read.
  package func packet(at index: Int) throws(LibAVError) -> Packet? {
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
    // A failing disk was reported by the read itself.
    return nil
  }

  private func restart() throws(LibAVError) {
    // Other containers learn of their tracks only by reading on.
    let opened = try Demuxer(opening: asset.path, probes: asset.container != "mov")
    if asset.container == "mov", let track = asset.videoTrack,
      [.h264, .hevc].contains(track.codec) || track.format.parameters.isIntraOnly
    {
      opened.readAsStored()
    }
    demuxer = consume opened
    next = 0
  }

  /// The next packet of the pictures, counted as the asset counts them.
  private func nextPacket() throws(LibAVError) -> Packet? {
    while let packet = try demuxer?.nextPacket() {
      if packet.trackIndex == asset.videoTrack?.format.index, !packet.isCorrupt { return packet }
    }
    return nil
  }

  private func seek(to index: Int) throws(LibAVError) {
    guard index > 0, index < decodeTicks.count, let track = asset.videoTrack?.format.index else {
      return try restart()
    }
    try demuxer?.seek(track: track, toKeyFrameBefore: decodeTicks[index])
    // Where it came out is told by the first packet. (Not always at the key frame asked for:
    // libavformat goes one farther back where that is shown later than it is decoded.)
    guard let packet = try nextPacket(), let ticks = packet.dts else { return try restart() }
    let found = decodeTicks.partitioningIndex { $0 >= ticks }
    guard found < decodeTicks.count, decodeTicks[found] == ticks, found <= index else {
      return try restart()
    }
    kept[found] = packet
    keptBytes += packet.byteCount
    next = found + 1
  }

  /// The ticks in order of decoding, if they are all there and ascend.
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
