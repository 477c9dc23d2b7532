// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The decoded audio of a track, block by block.
final class DecodedAudio: SampleProducer {
  private var reader: AudioReader
  private let sampleRate: Int
  private var positions: Range<Int64>

  private static let blockLength: Int64 = 4_096

  init(
    _ asset: Asset, _ track: AssetTrack, _ audio: AudioTrack, _ range: TimeRange?
  ) throws(MediaError) {
    sampleRate = audio.sampleRate
    positions = audio.startSample..<audio.startSample + audio.sampleCount
    if let range {
      let rate = Rational(Int64(audio.sampleRate))
      func position(at time: MediaTime) throws(MediaError) -> Int64 {
        let exact = try (time.seconds * rate).rounded(.towardPositiveInfinity)
        return Int64(clamping: exact)
      }
      positions = try (position(at: range.start)..<position(at: range.end)).clamped(to: positions)
    }
    reader = try AudioReader(asset.choosing(track))
  }

  func next() throws(MediaError) -> AssetSample? {
    guard let start = positions.first else { return nil }
    let count = min(Self.blockLength, positions.upperBound - start)
    positions = start + count..<positions.upperBound
    let samples = try reader.samples(from: start, count: Int(count))
    return AssetSample(
      .audio(samples), at: try MediaTime(Rational(Int128(start), over: Int128(sampleRate))),
      duration: try MediaTime(Rational(Int128(count), over: Int128(sampleRate))))
  }
}
