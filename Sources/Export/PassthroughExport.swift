// SPDX-License-Identifier: Apache-2.0
import Assets
import LibAV
import MediaTiming

/// Copies the packets that a plan names, with the times it gives them.
struct PassthroughExport {
  let plan: PassthroughPlan
  let asset: Asset
  let track: VideoTrack

  func write(
    to output: inout ExportOutput, _ report: inout ExportReport,
    _ progress: (Int64, Int64) -> Void
  ) throws {
    try output.begin(track.format.parameters, timescale: plan.timescale)
    var source = try PacketCursor(asset.path, track.format.index)
    let total = Int64(plan.frames.count)
    for frame in plan.frames {
      let packet = try source.packet(at: frame.decodeIndex)
      try checkCut(frame, packet)
      try output.write(packet, pts: frame.pts, dts: frame.dts, duration: frame.duration)
      report.framesCopied += 1
      progress(report.framesCopied, total)
    }
    report.framesSkipped = max(0, Int64(track.frameCount) - total)
    report.duration = try MediaTime(value: plan.endTicks, timescale: plan.timescale)
    report.maxTimeErrorNanoseconds = try ExportSession.nanoseconds(
      plan.maxTimeError, .towardPositiveInfinity)
  }

  /// A cut relies on a picture that needs none before it; the container's word for key frame also
  /// covers pictures that do (the start of an open group).
  private func checkCut(_ frame: PassthroughPlan.Frame, _ packet: Packet) throws {
    guard let (_, cut) = plan.cutPackets.first(where: { $0.decodeIndex == frame.decodeIndex }),
      !packet.withBytes({ KeyFrame.isIndependent($0, codec: track.codec) })
    else { return }
    throw ExportError(
      .cutNotOnKeyFrame,
      "a part of \(asset.path) starts at \(cut) s, at a key frame of an open group",
      hint: "cut at another key frame, or render it with --fps")
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
      guard packet.trackIndex == track, !packet.isCorrupt, packet.pts ?? packet.dts != nil else {
        continue
      }
      next += 1
      if next == index + 1 { return packet }
    }
    throw LibAVError("read packet \(index) of", path, code: -5)
  }
}

/// Whether a picture can be decoded without any before it, read from its own bytes.
enum KeyFrame {
  /// - Parameters:
  ///   - bytes: A packet as MOV and MP4 store it: units with their length in four bytes before.
  ///   - codec: FFmpeg's name of the codec.
  /// - Returns: False only for H.264 and HEVC pictures that are no IDR.
  static func isIndependent(_ bytes: UnsafeRawBufferPointer, codec: String) -> Bool {
    guard codec == "h264" || codec == "hevc" else { return true }
    var place = 0
    while place + 5 <= bytes.count {
      let length = bytes[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
      let unit = bytes[place + 4]
      if codec == "h264" {
        if unit & 0x1F == 5 { return true }
        if unit & 0x1F == 1 { return false }
      } else {
        let type = unit >> 1 & 0x3F
        if type == 19 || type == 20 { return true }
        if type < 32 { return false }
      }
      place += 4 + length
    }
    return false
  }
}
