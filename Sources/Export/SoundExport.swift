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
  /// Where the sound ends, in seconds of the composition.
  private(set) var end: Rational

  /// Makes the sound of a composition; nil for a source without.
  static func make(
    _ asset: Asset, _ composition: Composition, _ algorithm: AudioTimePitchAlgorithm,
    isCancelled: () -> Bool
  ) throws -> SoundExport? {
    guard let track = asset.soundTrack else { return nil }
    if composition.isWhole(of: asset) { return try SoundExport(copying: asset, track) }
    return try SoundExport(rendering: asset, track, composition, algorithm, isCancelled)
  }

  private static func language(_ track: SoundTrack) -> [String: String] {
    track.format.metadata.filter { $0.key == "language" }
  }

  private init(copying asset: Asset, _ track: SoundTrack) throws {
    parameters = track.format.parameters
    metadata = Self.language(track)
    timescale = Int32(clamping: track.sampleRate)
    report = ExportReport.Sound(
      algorithm: "copy", samples: track.sampleCount, lengthErrorSamples: 0)
    end = try Rational(Int128(track.startSample + track.sampleCount), Int128(track.sampleRate))
    var demuxer = try Demuxer(opening: asset.path)
    let rate = Rational(Int64(track.sampleRate))
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.format.index, let ticks = packet.pts ?? packet.dts else {
        continue
      }
      let scale = try track.format.timeBase.multiplied(by: rate)
      let time = try Rational(ticks).multiplied(by: scale).rounded(.halfAwayFromZero)
      let length = try Rational(packet.duration).multiplied(by: scale)
        .rounded(.halfAwayFromZero)
      packets.append(
        (packet, Int64(clamping: time) - track.originSample, Int64(clamping: length)))
    }
  }

  private init(
    rendering asset: Asset, _ track: SoundTrack, _ composition: Composition,
    _ algorithm: AudioTimePitchAlgorithm, _ isCancelled: () -> Bool
  ) throws {
    var reader = try SoundReader(asset)
    let retimer = try AudioRetimer(
      algorithm: algorithm, sampleRate: track.sampleRate, channelCount: track.channelCount)
    let isPCM = track.codec.hasPrefix("pcm_")
    var encoder = try Encoder(
      soundCodec: isPCM ? "pcm_s16le" : "aac", sampleRate: track.sampleRate,
      channelCount: track.channelCount)
    parameters = encoder.parameters
    metadata = Self.language(track)
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
      mappings: composition.segments.compactMap(\.mapping), duration: composition.duration,
      isCancelled: isCancelled,
      read: { try reader.samples(from: $0, count: $1) },
      write: { samples in
        for channel in pending.indices { pending[channel] += samples[channel] }
        while let count = pending.first?.count, count >= blockLength { try encode(blockLength) }
      })
    if let rest = pending.first?.count, rest > 0 { try encode(rest) }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { made.append(packet) }
    report = ExportReport.Sound(
      algorithm: rendered.algorithm.rawValue, samples: rendered.samples,
      lengthErrorSamples: rendered.lengthErrorSamples)
    end = try Rational(Int128(rendered.samples), Int128(track.sampleRate))
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
    guard segments.count == 1, let mapping = segments.first?.mapping else { return false }
    return mapping.source == mapping.target && mapping.source.start == .zero
      && mapping.source.end == asset.duration
  }
}
