// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A reader of one asset's audio, in both directions.
package final class AudioSource {
  package let track: AudioTrack
  private let asset: Asset
  private var reader: AudioReader
  /// The last block read for reverse playback.
  private var kept: (start: Int64, samples: [[Float]])?

  private static let stepLength = 96_000

  /// Opens the audio of an asset.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - track: The audio track of the asset.
  ///   - seeks: Whether distant positions are reached by a seek, see ``AudioReader``.
  /// - Throws: `MediaError` with `.invalidData` for audio that cannot be decoded.
  package init(_ asset: Asset, _ track: AudioTrack, seeks: Bool = false) throws(MediaError) {
    let reader = try AudioReader(asset, seeks: seeks)
    self.asset = asset
    self.track = track
    self.reader = consume reader
  }

  /// Returns samples from a position on.
  ///
  /// With `isReversed`, sample 0 is the last sample of the source.
  package func samples(
    from start: Int64, count: Int, isReversed: Bool
  ) throws(MediaError) -> [[Float]] {
    guard isReversed else { return try reader.samples(from: start, count: count) }
    let end = track.startSample + track.sampleCount
    return try samplesBackwards(from: end - start - Int64(count), count: count)
  }

  /// Returns `count` samples from `start` on in reverse order.
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
