// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import LibAV
import MediaTiming
import Retiming

/// The sound of an export: copied where nothing is retimed, rendered and encoded elsewhere.
///
/// Its packets are made before the picture's, so that both can be written in step.
struct SoundExport {
  let parameters: CodecParameters
  /// Ticks per second of the packets' times.
  let timescale: Int32
  let metadata: [String: String]
  private(set) var packets: [(packet: Packet, pts: Int64, duration: Int64)] = []
  private(set) var report: ExportReport.Sound

  /// Makes the sound that a plan says.
  init(_ plan: SoundPlan, isCancelled: () -> Bool) throws {
    switch plan.way {
    case .copied: try self.init(copying: plan)
    case .rendered(let pieces, let retimer, let codec):
      try self.init(rendering: plan, pieces, retimer, codec, isCancelled)
    }
  }

  private init(copying plan: SoundPlan) throws {
    let track = plan.track
    parameters = track.format.parameters
    metadata = plan.language.map { ["language": $0] } ?? [:]
    timescale = Int32(clamping: track.sampleRate)
    report = plan.report
    var demuxer = try Demuxer(opening: plan.assets[0].path)
    let rate = Rational(Int64(track.sampleRate))
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.format.index, !packet.isCorrupt,
        let ticks = packet.pts ?? packet.dts
      else { continue }
      let scale = try track.format.timeBase.multiplied(by: rate)
      let time = try Rational(ticks).multiplied(by: scale).rounded(.halfAwayFromZero)
      let length = try Rational(packet.duration).multiplied(by: scale)
        .rounded(.halfAwayFromZero)
      packets.append(
        (packet, Int64(clamping: time) - track.originSample, Int64(clamping: length)))
    }
  }

  private init(
    rendering plan: SoundPlan, _ pieces: [TimeMapping], _ retimer: AudioRetimer,
    _ codec: String, _ isCancelled: () -> Bool
  ) throws {
    let track = plan.track
    let readers = try plan.assets.map { try SoundSource($0, $0.soundTrack ?? track) }
    var encoder = try Encoder(
      soundCodec: codec, sampleRate: track.sampleRate, channelCount: track.channelCount)
    parameters = encoder.parameters
    metadata = plan.language.map { ["language": $0] } ?? [:]
    timescale = Int32(clamping: track.sampleRate)
    let blockLength = encoder.frameSize > 0 ? encoder.frameSize : 4_096
    var pending: [[Float]] = Array(repeating: [], count: track.channelCount)
    var encoded: Int64 = 0
    var made: [Packet] = []
    func encode(_ count: Int) throws {
      let block = pending.map { Array($0.prefix(count)) }
      for channel in pending.indices { pending[channel].removeFirst(count) }
      try encoder.send(sound: block, at: encoded)
      encoded += Int64(count)
      while let packet = try encoder.nextPacket() { made.append(packet) }
    }
    let rendered = try retimer.render(
      mappings: pieces, duration: plan.duration, isCancelled: isCancelled,
      read: { try SoundTimeline.samples(from: $0, count: $1, of: readers) },
      write: { samples in
        for channel in pending.indices { pending[channel] += samples[channel] }
        while let count = pending.first?.count, count >= blockLength { try encode(blockLength) }
      })
    if let rest = pending.first?.count, rest > 0 { try encode(rest) }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { made.append(packet) }
    report = ExportReport.Sound(
      algorithm: rendered.algorithm.rawValue, samples: rendered.samples,
      lengthErrorSamples: rendered.lengthErrorSamples, snapped: rendered.snapped)
    // The last block of AAC holds more than belongs: its duration says where the sound ends.
    packets = made.enumerated().compactMap { index, packet in
      guard let pts = packet.pts else { return nil }
      let next = index + 1 < made.count ? made[index + 1].pts ?? pts : rendered.samples
      return (packet, pts, max(1, next - pts))
    }
  }
}

extension Composition {
  /// Whether this is one source, all of it, as it is.
  func isWhole(of asset: Asset) -> Bool {
    !tracks.isEmpty
      && tracks.allSatisfy { track in
        guard track.segments.count == 1, let line = track.segments.first?.mapping?.line else {
          return false
        }
        return line.source == line.target && line.source.start == .zero
          && line.source.end == asset.duration && track.segments[0].source?.path == asset.path
      }
  }
}
