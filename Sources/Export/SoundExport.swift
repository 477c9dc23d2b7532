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

  /// Makes the sound of a composition; nil for a source without.
  static func make(
    _ asset: Asset, _ composition: Composition, _ algorithm: AudioTimePitchAlgorithm,
    container: String, isCancelled: () -> Bool
  ) throws -> SoundExport? {
    guard let track = asset.soundTrack else { return nil }
    if isCopied(track, composition, of: asset, container: container) {
      return try SoundExport(copying: asset, track)
    }
    let codec = codec(for: track, container: container)
    return try SoundExport(rendering: asset, track, composition, algorithm, codec, isCancelled)
  }

  /// Whether the sound of a composition is copied as it is.
  static func isCopied(
    _ track: SoundTrack, _ composition: Composition, of asset: Asset, container: String
  ) -> Bool {
    composition.isWhole(of: asset) && isStorable(track, container: container)
  }

  /// MP4 has no uncompressed sound.
  private static func isStorable(_ track: SoundTrack, container: String) -> Bool {
    container == "mov" || !track.codec.hasPrefix("pcm_")
  }

  /// The encoder for sound that is rendered: uncompressed stays so where it can.
  private static func codec(for track: SoundTrack, container: String) -> String {
    guard track.codec.hasPrefix("pcm_"), container == "mov" else { return "aac" }
    let kept = [
      "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be", "pcm_f32le",
      "pcm_f32be",
    ]
    return kept.contains(track.codec) ? track.codec : "pcm_s16le"
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
    var demuxer = try Demuxer(opening: asset.path)
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
    rendering asset: Asset, _ track: SoundTrack, _ composition: Composition,
    _ algorithm: AudioTimePitchAlgorithm, _ codec: String, _ isCancelled: () -> Bool
  ) throws {
    var reader = try SoundReader(asset)
    let retimer = try AudioRetimer(
      algorithm: algorithm, sampleRate: track.sampleRate, channelCount: track.channelCount)
    var encoder = try Encoder(
      soundCodec: codec, sampleRate: track.sampleRate, channelCount: track.channelCount)
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
