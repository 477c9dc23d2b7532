// SPDX-License-Identifier: Apache-2.0
import Assets
import LibAV
import MediaTiming

/// Copies the packets that a plan names, with the times it gives them.
struct PassthroughExport {
  let plan: PassthroughPlan
  let asset: Asset
  let track: VideoTrack

  func write(to output: inout ExportOutput, _ progress: (Int64, Int64) -> Void) throws {
    try output.begin(track.format.parameters, timescale: plan.timescale)
    var source = try PacketCursor(asset.path, track.format.index)
    let total = Int64(plan.frames.count)
    for (number, frame) in plan.frames.enumerated() {
      let packet = try source.packet(at: frame.decodeIndex)
      try output.write(packet, pts: frame.pts, dts: frame.dts, duration: frame.duration)
      progress(Int64(number) + 1, total)
    }
  }
}

/// Reads the packets of a track by their place in the order of decoding.
private struct PacketCursor: ~Copyable {
  private let path: String
  private let track: Int
  private var demuxer: Demuxer
  private var next = 0

  init(_ path: String, _ track: Int) throws(LibAVError) {
    let demuxer = try Demuxer(opening: path)
    self.path = path
    self.track = track
    self.demuxer = consume demuxer
  }

  mutating func packet(at index: Int) throws(LibAVError) -> Packet {
    if index < next {
      demuxer = try Demuxer(opening: path)
      next = 0
    }
    while let packet = try demuxer.nextPacket() {
      // Counted as the asset counts them.
      guard packet.trackIndex == track, !packet.isCorrupt, packet.pts ?? packet.dts != nil else {
        continue
      }
      next += 1
      if next == index + 1 { return packet }
    }
    throw LibAVError("read packet \(index) of", path, code: -5)
  }
}
