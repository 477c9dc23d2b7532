// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
package import OvercrankMediaCore

/// Reads samples of an asset's audio in any order.
///
/// Forward reading is fastest.
///
/// Sample 0 is at the asset's time zero. Encoder padding is left out. Samples outside the audio
/// track are silent.
package struct AudioReader: ~Copyable {
  private let asset: Asset
  private let track: AudioTrack
  private var source: PacketSource
  /// Decoded samples of each channel, and the index of the first one.
  private var buffer: [[Float]]
  private var bufferStart: Int64
  private var isAtEnd = false

  /// The number of samples kept from before the last request.
  ///
  /// A small backward step then needs no seek.
  private static let kept = 192_000

  /// Opens the asset's audio.
  ///
  /// - Throws: `MediaError` with `.invalidData` for an asset without decodable audio.
  package init(_ asset: Asset) throws(MediaError) {
    guard let track = asset.audioTrack else { throw .invalid(asset.path, "contains no audio") }
    let source = try PacketSource.open(asset, track.format)
    self.asset = asset
    self.track = track
    self.source = consume source
    buffer = Array(repeating: [], count: track.channelCount)
    bufferStart = track.startSample
  }

  private var bufferEnd: Int64 { bufferStart + Int64(buffer.first?.count ?? 0) }

  /// Reads samples of each channel, as numbers from -1 to 1.
  ///
  /// - Throws: `MediaError` with `.invalidData` for audio that cannot be decoded.
  package mutating func samples(from start: Int64, count: Int) throws(MediaError) -> [[Float]] {
    var result = Array(repeating: [Float](repeating: 0, count: count), count: track.channelCount)
    let first = max(start, track.startSample)
    let last = min(start + Int64(count), track.startSample + track.sampleCount)
    guard first < last else { return result }
    if first < bufferStart { try restart() }
    try decode(upTo: last)
    let available = min(last, bufferEnd)
    guard first < available else { return result }
    for channel in result.indices {
      for position in first..<available {
        result[channel][Int(position - start)] = buffer[channel][Int(position - bufferStart)]
      }
    }
    forget(before: start - Int64(Self.kept))
    return result
  }

  private mutating func restart() throws(MediaError) {
    source = try PacketSource.open(asset, track.format)
    buffer = Array(repeating: [], count: track.channelCount)
    bufferStart = track.startSample
    isAtEnd = false
  }

  private mutating func decode(upTo end: Int64) throws(MediaError) {
    do throws(LibAVError) {
      while bufferEnd < end, !isAtEnd {
        guard let frame = try source.nextFrame() else {
          isAtEnd = true
          return
        }
        try append(frame)
      }
    } catch { throw MediaError(reading: error) }
  }

  /// Appends a decoded block at its own time.
  ///
  /// Some containers round times to milliseconds, so the time of a block may be wrong by some
  /// samples. In such a file, a deviation of up to 5 ms is ignored, and the block follows the one
  /// before without a gap.
  private mutating func append(_ frame: MediaFrame) throws(LibAVError) {
    guard let samples = frame.samples(), samples.count == track.channelCount else {
      throw LibAVError("decode the audio of", asset.path, code: -22)
    }
    var position = bufferEnd
    if let ticks = frame.pts, let own = track.format.sample(atTicks: ticks) {
      position = own &- track.originSample
    }
    let isInSamples = track.format.timeBase.denominator % Int128(track.sampleRate) == 0
    let tolerance = isInSamples ? 0 : Int64(track.sampleRate / 200)
    let gap = position - bufferEnd
    // A jump of more than one minute is an invalid time rather than a gap, so no silence is
    // inserted.
    if gap > tolerance, gap < Int64(track.sampleRate) * 60 {
      for channel in buffer.indices {
        buffer[channel] += [Float](repeating: 0, count: Int(gap))
      }
    }
    let skipped = gap < -tolerance ? Int(min(-gap, Int64(samples.first?.count ?? 0))) : 0
    for channel in buffer.indices { buffer[channel] += samples[channel].dropFirst(skipped) }
  }

  private mutating func forget(before position: Int64) {
    let count = Int(min(position - bufferStart, Int64(buffer.first?.count ?? 0)))
    // Each removal copies the remaining samples, so many samples are removed at once.
    guard count > Self.kept else { return }
    for channel in buffer.indices { buffer[channel].removeFirst(count) }
    bufferStart += Int64(count)
  }
}
