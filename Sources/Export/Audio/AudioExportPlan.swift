// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming

/// What the sound of an export is made of.
struct AudioExportPlan: Sendable {
  /// How it is made.
  enum Method: Sendable {
    /// The packets of the one source are copied.
    case copied
    /// Rendered from these pieces, and encoded.
    case rendered([PlaybackMapping], AudioRetimer, codec: String)
  }

  /// The assets that are heard; the first says what the sound is like.
  let assets: [Asset]
  let track: AudioTrack
  let method: Method
  let duration: MediaTime
  let language: String?
  /// What will have been made, but for what the engines say.
  let report: ExportReport.Audio
  /// Where the sound ends, in seconds.
  let end: Rational

  /// Plans the sound of a composition; nil where nothing is to be heard.
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
    for asset in assets {
      guard let other = asset.audioTrack, other.sampleRate == track.sampleRate,
        other.channelCount == track.channelCount
      else {
        throw ExportError(
          .unsupportedSource,
          "the sound of \(asset.path) is of another kind than that of \(first.path)",
          hint: "give files with the same sampling rate and number of channels")
      }
    }
    self.assets = assets
    self.track = track
    language = composed.language
    duration = max(composed.duration, session.composition.track(.video)?.duration ?? .zero)
    let rate = Int128(track.sampleRate)
    if settings.audioCodec == .pcm, container != "mov" {
      throw ExportError(
        .unsupportedContainer, "\(settings.path) cannot hold uncompressed sound",
        hint: "name it .mov, or choose AAC")
    }
    if session.composition.isWhole(of: first),
      Self.codec(for: track, container, settings.audioCodec).hasPrefix(track.codec)
        || settings.audioCodec == .auto,
      try Self.isStorable(first, track, container: container)
    {
      method = .copied
      report = ExportReport.Audio(
        algorithm: "copy", samples: track.sampleCount, lengthErrorSamples: 0)
      end = try Rational(Int128(track.startSample + track.sampleCount), rate)
      return
    }
    let pieces = try composed.segments.compactMap { try AudioTimeline.mapping(of: $0, assets) }
    let retimer = try AudioRetimer(
      algorithm: settings.audioTimePitchAlgorithm, sampleRate: track.sampleRate,
      channelCount: track.channelCount, otherSpeeds: settings.otherAudioSpeeds)
    method = .rendered(
      pieces, retimer, codec: Self.codec(for: track, container, settings.audioCodec))
    let samples = try retimer.sampleCount(mappings: pieces, duration: duration)
    report = ExportReport.Audio(
      algorithm: settings.audioTimePitchAlgorithm.rawValue, samples: samples, lengthErrorSamples: 0)
    end = try Rational(Int128(samples), rate)
  }

  /// Whether a container can hold copies of an asset's audio packets.
  ///
  /// MP4 has no uncompressed audio. What is rare is tried with its first packet.
  private static func isStorable(
    _ asset: Asset, _ track: AudioTrack, container: String
  ) throws -> Bool {
    if track.codec.hasPrefix("pcm_") { return container == "mov" }
    if ["aac", "alac", "mp3", "ac3", "eac3"].contains(track.codec) { return true }
    var demuxer = try Demuxer(opening: asset.path)
    while let packet = try demuxer.nextPacket() {
      guard packet.trackIndex == track.format.index else { continue }
      return MovieWriter.accepts(
        track.format.parameters, timescale: Int32(clamping: track.sampleRate), packet: packet,
        container: container)
    }
    return false
  }

  /// The encoder for sound that is rendered: uncompressed stays so where it can.
  private static func codec(
    for track: AudioTrack, _ container: String, _ asked: ExportAudioCodec
  ) -> String {
    let isUncompressed = track.codec.hasPrefix("pcm_") && container == "mov"
    guard asked == .pcm || (asked == .auto && isUncompressed) else { return "aac" }
    let kept = [
      "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be", "pcm_f32le",
      "pcm_f32be",
    ]
    return kept.contains(track.codec) ? track.codec : "pcm_s16le"
  }
}

/// One line of time on which several sources lie far apart, each of them twice.
///
/// The second time it is mirrored, so that what plays backwards is rendered forwards.
enum AudioTimeline {
  /// Seconds from the start of one source to the next; a source is shorter than a quarter of it.
  private static let spacing: Int64 = 1 << 24
  private static let mirror: Int64 = 1 << 23

  /// What a segment's sound is rendered by, forwards; nil where it is silent.
  static func mapping(of segment: TrackSegment, _ assets: [Asset]) throws -> PlaybackMapping? {
    guard let mapping = segment.mapping, mapping.motion != .hold,
      let source = assets.firstIndex(where: { $0.path == segment.source?.path })
    else { return nil }
    let asset = assets[source]
    guard asset.duration < MediaTime(seconds: mirror / 2) else {
      throw TimingError(.overflow, "the sound of \(asset.path)")
    }
    func place(_ time: Rational) throws -> MediaTime {
      let offset = Rational(Int64(source) * spacing)
      guard mapping.isReversed else { return try MediaTime(time.adding(offset)) }
      // The mirror lies about the end of the sound's last sample.
      let mirrored = try end(of: asset).subtracting(time).adding(offset)
        .adding(Rational(mirror))
      return try (try? MediaTime(mirrored)) ?? nanoseconds(mirrored)
    }
    func range(_ start: Rational, _ end: Rational) throws -> TimeRange {
      let ends = try [place(start), place(end)].sorted()
      return try TimeRange(start: ends[0], end: ends[1])
    }
    guard case .ramp(let ramp) = mapping.motion else {
      return try PlaybackMapping(
        TimeMapping(
          source: range(mapping.sourceStart, mapping.sourceEnd), target: mapping.target))
    }
    let whole = try range(mapping.whole.start.seconds, mapping.whole.end.seconds)
    let part = mapping.part
    return try PlaybackMapping(
      partOf: mapping.isReversed ? ramp.reversed : ramp, source: whole,
      from: mapping.isReversed ? Rational.one.subtracting(part.upper) : part.lower,
      to: mapping.isReversed ? Rational.one.subtracting(part.lower) : part.upper,
      isReversed: false, target: mapping.target)
  }

  private static func nanoseconds(_ seconds: Rational) throws -> MediaTime {
    let units = try seconds.multiplied(by: Rational(1_000_000_000)).rounded(.halfAwayFromZero)
    return MediaTime(nanoseconds: Int64(clamping: units))
  }

  private static func end(of asset: Asset) throws -> Rational {
    guard let track = asset.audioTrack else { return .zero }
    return try Rational(Int128(lastSample(of: track)), Int128(track.sampleRate))
  }

  private static func lastSample(of track: AudioTrack) -> Int64 {
    track.startSample + track.sampleCount
  }

  /// Samples of the line from a number on, out of the source that lies there.
  static func samples(
    from start: Int64, count: Int, of readers: [AudioSource]
  ) throws -> [[Float]] {
    guard let rate = readers.first?.track.sampleRate else { return [] }
    let (spacing, mirror) = (spacing * Int64(rate), mirror * Int64(rate))
    // What is read ahead of a source's first sample belongs to it too.
    let shifted = start + spacing / 8
    let index = Int(max(0, min(Int64(readers.count) - 1, shifted / spacing)))
    let place = start - Int64(index) * spacing
    let reader = readers[index]
    guard place > mirror - spacing / 8 else {
      return try reader.samples(from: place, count: count)
    }
    let first = lastSample(of: reader.track) - (place - mirror) - Int64(count)
    return try reader.samplesBackwards(from: first, count: count)
  }
}

/// The sound of one of several assets.
final class AudioSource {
  let track: AudioTrack
  private let asset: Asset
  private var reader: AudioReader
  /// What was read last on the way back, a good piece at a time.
  private var kept: (start: Int64, samples: [[Float]])?

  private static let stepLength = 96_000

  init(_ asset: Asset, _ track: AudioTrack) throws(AssetError) {
    let reader = try AudioReader(asset)
    self.asset = asset
    self.track = track
    self.reader = consume reader
  }

  func samples(from start: Int64, count: Int) throws(AssetError) -> [[Float]] {
    try reader.samples(from: start, count: count)
  }

  /// Samples in the other order: those from `start` on, the last one first.
  func samplesBackwards(from start: Int64, count: Int) throws(AssetError) -> [[Float]] {
    if let kept, kept.start <= start,
      start + Int64(count) <= kept.start + Int64(kept.samples.first?.count ?? 0)
    {
      let first = Int(start - kept.start)
      return kept.samples.map { $0[first..<first + count].reversed() }
    }
    let length = max(count, Self.stepLength)
    let first = start + Int64(count) - Int64(length)
    kept = (first, try reader.samples(from: first, count: length))
    return try samplesBackwards(from: start, count: count)
  }
}
