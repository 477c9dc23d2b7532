// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// Reads one asset's audio, forward or in reverse.
package final class AudioSource {
  package let track: AudioTrack
  private let asset: Asset
  private var reader: ConvertedAudio
  /// The end of the audio, in samples at the requested rate, rounded to the nearest sample.
  private let end: Int64
  /// The last block of samples that was read for reverse playback.
  private var kept: (start: Int64, samples: [[Float]])?

  private static let stepLength = 96_000

  /// Opens the audio of an asset.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - track: The audio track of the asset.
  ///   - sampleRate: The sampling rate to which the audio is converted; nil for the track's.
  ///   - channelCount: The number of channels to which the audio is converted; nil for the track's.
  ///   - seeks: Whether to seek to distant positions, see ``AudioReader``.
  /// - Throws: `MediaError` with `.invalidData` for audio that cannot be decoded.
  package init(
    _ asset: Asset, _ track: AudioTrack, sampleRate: Int? = nil, channelCount: Int? = nil,
    seeks: Bool = false
  ) throws(MediaError) {
    let rate = sampleRate ?? track.sampleRate
    let position = try? (track.end * Rational(Int64(rate))).rounded(.halfAwayFromZero)
    guard let end = position.flatMap({ Int64(exactly: $0) }) else {
      throw .invalid(asset.path, "has audio at a time that is out of bounds")
    }
    let reader = try AudioReader(asset, seeks: seeks)
    self.asset = asset
    self.track = track
    self.end = end
    self.reader = ConvertedAudio(
      reader, track, sampleRate: rate, channelCount: channelCount ?? track.channelCount)
  }

  /// Returns `count` samples, beginning at a position.
  ///
  /// With `isReversed`, sample 0 is the last sample of the source.
  package func samples(
    from start: Int64, count: Int, isReversed: Bool
  ) throws(MediaError) -> [[Float]] {
    guard isReversed else { return try reader.samples(from: start, count: count) }
    return try samplesBackwards(from: end - start - Int64(count), count: count)
  }

  /// Returns `count` samples in reverse order, beginning at the position `start`, counted from the
  /// end of the audio.
  private func samplesBackwards(from start: Int64, count: Int) throws(MediaError) -> [[Float]] {
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
