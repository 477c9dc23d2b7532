// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import OvercrankRetiming

/// The decisions about an export's audio, made before the export starts.
struct AudioExportPlan: Sendable {
  /// The method by which the audio is made.
  enum Method: Sendable {
    /// Copies the packets of the only source.
    case copied
    /// Renders and encodes the audio segments.
    case rendered([AudioSegment], AudioRetimer, codec: AudioCodec)
  }

  /// The assets whose audio is played.
  let assets: [Asset]
  /// The track of the first asset, which determines the codec.
  let track: AudioTrack
  /// The sampling rate of the output's audio in hertz.
  let sampleRate: Int
  /// The number of channels of the output's audio.
  let channelCount: Int
  let method: Method
  let duration: MediaTime
  let language: String?
  let processorCount: Int
  private let container: MovieContainer?
  /// The expected report about the audio.
  ///
  /// The final report may differ, because some values are known only after rendering.
  let report: ExportReport.Audio
  /// The end of the audio in composition time, in seconds.
  let end: Rational

  /// Plans the audio of a composition.
  ///
  /// Returns nil if the composition has no audio.
  init?(
    _ session: ExportSession, _ settings: ExportSettings, _ container: String
  ) throws {
    guard let composed = session.composition.track(.audio),
      composed.segments.contains(where: { !$0.isEmpty })
    else { return nil }
    var assets: [Asset] = []
    for case let source? in composed.segments.map(\.source)
    where !assets.contains(where: { $0.path == source.path }) {
      assets.append(try session.asset(for: source))
    }
    guard let first = assets.first, let track = first.audioTrack else { return nil }
    self.assets = assets
    self.track = track
    language = composed.language
    processorCount = settings.usedProcessorCount
    self.container = MovieContainer(rawValue: container)
    duration = max(composed.duration, session.composition.track(.video)?.duration ?? .zero)
    if settings.audioCodec?.isUncompressed == true, container != "mov" {
      throw MediaError(
        .unsupportedContainer, "\(settings.path) cannot hold uncompressed audio",
        recovery: "use the extension .mov, or choose AAC")
    }
    if session.composition.isWhole(of: first),
      settings.audioCodec == nil
        || Self.codec(for: track, container, settings.audioCodec) == track.codec,
      try Self.isStorable(first, track, container: container)
    {
      method = .copied
      (sampleRate, channelCount) = (track.sampleRate, track.channelCount)
      report = ExportReport.Audio(
        algorithm: "copy", samples: track.sampleCount, lengthErrorSamples: 0)
      end = track.end
      return
    }
    let pieces = try composed.segments.compactMap { try AudioSegment($0, of: assets) }
    let codec = Self.codec(for: track, container, settings.audioCodec)
    let tracks = assets.compactMap(\.audioTrack)
    let isRetimed = pieces.contains { !$0.mapping.isAtNormalSpeed }
    let rate = Self.sampleRate(
      atLeast: tracks.map(\.sampleRate).max() ?? track.sampleRate, codec, isRetimed: isRetimed)
    sampleRate = rate
    channelCount = tracks.map(\.channelCount).max() ?? track.channelCount
    let retimer =
      isRetimed || AudioRetimer.sampleRates.contains(rate)
      ? try AudioRetimer(
        algorithm: settings.audioTimePitchAlgorithm, sampleRate: rate,
        channelCount: channelCount, otherSpeeds: settings.otherAudioSpeeds)
      : try AudioRetimer(copyingAt: rate, channelCount: channelCount)
    method = .rendered(pieces, retimer, codec: codec)
    let samples = try retimer.sampleCount(segments: pieces, duration: duration)
    report = ExportReport.Audio(
      algorithm: settings.audioTimePitchAlgorithm.rawValue, samples: samples, lengthErrorSamples: 0)
    end = Rational(Int128(samples), over: Int128(rate))
  }

  /// Returns the sampling rate of rendered audio.
  ///
  /// This is the lowest supported rate at or above the rate of the source. The codec and the
  /// retimer restrict the supported rates.
  ///
  /// AAC supports no rate above 96 kHz. For a higher source rate, the result is the greatest
  /// supported rate that divides it by 2, 3 or 4, otherwise 96 kHz.
  private static func sampleRate(
    atLeast rate: Int, _ codec: AudioCodec, isRetimed: Bool
  ) -> Int {
    guard codec == .aac else {
      let range = AudioRetimer.sampleRates
      return isRetimed ? min(max(rate, range.lowerBound), range.upperBound) : rate
    }
    // The sampling rates of AAC in ISO/IEC 14496-3, table 1.18, without 7350 Hz, which few players
    // support.
    let rates = [
      8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000,
    ]
    let whole = rates.last { rate % $0 == 0 && rate > 96_000 && rate / $0 <= 4 }
    return rates.first { $0 >= rate } ?? whole ?? 96_000
  }

  /// Whether the packets of the only source are copied.
  var isCopied: Bool { if case .copied = method { true } else { false } }

  /// Warnings about assets whose audio is resampled or remixed, one sentence for each asset.
  var conversions: [String] {
    guard case .rendered = method else { return [] }
    return assets.compactMap { asset in
      guard let own = asset.audioTrack else { return nil }
      var changes: [String] = []
      if own.sampleRate != sampleRate {
        changes.append("resampled from \(own.sampleRate) to \(sampleRate) Hz")
      }
      if own.channelCount != channelCount {
        changes.append("converted from \(own.channelCount) to \(channelCount) channels")
      }
      guard !changes.isEmpty else { return nil }
      return "the audio of \(asset.path) is \(changes.joined(separator: " and "))"
    }
  }

  /// The sample descriptions of a copied track that the output's container can store unchanged.
  ///
  /// Empty if there are none, or several.
  var copiedDescriptions: [SampleDescription] {
    guard case .copied = method, assets[0].container == "mov",
      track.format.parameters.isStoredUnchanged,
      let source = SourceDescriptions(ofTrack: track.format.index, in: assets[0].path),
      source.container == container, source.descriptions.count == 1,
      container == .mp4 || source.descriptions.allSatisfy(\.fitsPacketTables)
    else { return [] }
    return source.descriptions
  }

  /// A warning if audio plays at a speed outside the range recommended for the algorithm, otherwise
  /// nil.
  var speedWarning: String? {
    guard case .rendered(let segments, let retimer, _) = method,
      let recommended = retimer.algorithm.recommendedSpeeds
    else { return nil }
    // The speeds at the two ends of a ramp are computed from rounded times, so a ramp that ends
    // exactly at the limit may seem to exceed it. A relative error of 1e-6 is therefore allowed.
    let least = recommended.lowerBound.fraction.doubleValue * 0.999_999
    let most = recommended.upperBound.fraction.doubleValue * 1.000_001
    let ranges = segments.map(\.mapping).filter { mapping in
      guard mapping.motion != .hold else { return false }
      let ends = [mapping.target.start, mapping.target.end]
        .compactMap { try? mapping.nearSpeed(at: $0.seconds).fraction.doubleValue }
      return ends.contains { !(least...most).contains($0) }
    }
    .map(\.target)
    guard let first = ranges.first, let last = ranges.last else { return nil }
    return "\(retimer.algorithm.rawValue) is made for speeds from \(recommended.lowerBound) to "
      + "\(recommended.upperBound), and audio between \(first.start.displayText) and "
      + "\(last.end.displayText) s is slower or faster; spectral suits it better"
  }

  /// Returns true if the container can store copies of an asset's audio packets, and false
  /// otherwise.
  ///
  /// MP4 does not support uncompressed audio. For unusual codecs, the first packet is written as a
  /// trial, because the muxer supports more codecs than the container's description lists.
  private static func isStorable(
    _ asset: Asset, _ track: AudioTrack, container: String
  ) throws -> Bool {
    // Some containers give packets without samples the time of the next one.
    guard track.hasAscendingTimes else { return false }
    let parameters = track.format.parameters
    if track.codec.isUncompressed {
      return container == "mov" && MovieWriter.hasTag(parameters, container: container)
    }
    if ["aac", "alac", "mp3", "ac3", "eac3"].contains(track.codec.rawValue) { return true }
    guard MovieWriter.hasTag(parameters, container: container) else { return false }
    var demuxer = try asset.demuxer()
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.format.index else { continue }
      return MovieWriter.accepts(
        parameters, timescale: Int32(clamping: track.sampleRate), packet: packet,
        container: MovieContainer(rawValue: container) ?? .mov)
    }
    return false
  }

  /// Returns the codec of rendered audio.
  ///
  /// This is the requested codec, if any. Otherwise it is PCM if the source is uncompressed and the
  /// container is MOV, and AAC in all other cases.
  private static func codec(
    for track: AudioTrack, _ container: String, _ requested: AudioCodec?
  ) -> AudioCodec {
    let isUncompressed = track.codec.isUncompressed && container == "mov"
    guard requested?.isUncompressed ?? isUncompressed else { return .aac }
    let kept = [
      "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be", "pcm_f32le",
      "pcm_f32be",
    ]
    return kept.contains(track.codec.rawValue) ? track.codec : .pcm
  }
}

extension PlaybackMapping {
  /// Whether the source plays forward at speed 1.
  fileprivate var isAtNormalSpeed: Bool {
    line.map { $0.source.duration == $0.target.duration } ?? false
  }
}

extension AudioSegment {
  /// Creates the audio segment for a composition segment.
  ///
  /// Returns nil if that segment is silent.
  ///
  /// The identifier of the audio segment's source is the index of the asset.
  init?(_ segment: TrackSegment, of assets: [Asset]) throws(MediaError) {
    guard let mapping = segment.mapping, mapping.motion != .hold,
      let id = assets.firstIndex(where: { $0.path == segment.source?.path })
    else { return nil }
    try self.init(playing: mapping, of: id, endingAt: assets[id].audioTrack?.end ?? .zero)
  }
}
