// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

/// The sound of one of several assets.
final class AudioSource {
  let track: AudioTrack
  private let asset: Asset
  private var reader: AudioReader
  /// What was read last on the way back, a good piece at a time.
  private var kept: (start: Int64, samples: [[Float]])?

  private static let stepLength = 96_000

  init(_ asset: Asset, _ track: AudioTrack) throws(MediaError) {
    let reader = try AudioReader(asset)
    self.asset = asset
    self.track = track
    self.reader = consume reader
  }

  /// Samples by number; of the reversed source, counted from the one behind the last.
  func samples(
    from start: Int64, count: Int, isReversed: Bool
  ) throws(MediaError) -> [[Float]] {
    guard isReversed else { return try reader.samples(from: start, count: count) }
    let end = track.startSample + track.sampleCount
    return try samplesBackwards(from: end - start - Int64(count), count: count)
  }

  /// Samples in the other order: those from `start` on, the last one first.
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
