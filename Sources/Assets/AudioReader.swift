// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
package import OvercrankMediaCore

/// Reads any samples of an asset's sound; forward is fastest.
///
/// Sample 0 is at the asset's zero. What the encoder put before the sound is left out, and
/// outside the sound there is silence.
package struct AudioReader: ~Copyable {
  private let asset: Asset
  private let track: AudioTrack
  private var source: PacketSource
  /// Decoded samples of each channel, and the place of the first of them.
  private var buffer: [[Float]]
  private var bufferStart: Int64
  private var isAtEnd = false

  /// Samples kept before what was asked for last, so that small steps back cost nothing.
  private static let kept = 192_000

  /// Opens the asset's sound.
  ///
  /// - Throws: `MediaError` with `.invalidData` for an asset without sound that can be decoded.
  package init(_ asset: Asset) throws(MediaError) {
    guard let track = asset.audioTrack else { throw .invalid(asset.path, "holds no sound") }
    let source = try PacketSource.open(asset, track.format)
    self.asset = asset
    self.track = track
    self.source = consume source
    buffer = Array(repeating: [], count: track.channelCount)
    bufferStart = track.startSample
  }

  private var bufferEnd: Int64 { bufferStart + Int64(buffer.first?.count ?? 0) }

  /// `count` samples of each channel from number `start` on, between -1 and 1.
  ///
  /// - Throws: `MediaError` with `.invalidData` for sound that cannot be decoded.
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
      for place in first..<available {
        result[channel][Int(place - start)] = buffer[channel][Int(place - bufferStart)]
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

  /// Appends a block at its own place; containers that round times to milliseconds may be off by
  /// some samples, which is no gap.
  private mutating func append(_ frame: MediaFrame) throws(LibAVError) {
    guard let samples = frame.samples(), samples.count == track.channelCount else {
      throw LibAVError("decode the sound of", asset.path, code: -22)
    }
    var place = bufferEnd
    if let ticks = frame.pts, let own = track.format.sample(atTicks: ticks) {
      place = own &- track.originSample
    }
    let isInSamples = track.format.timeBase.denominator % Int128(track.sampleRate) == 0
    let tolerance = isInSamples ? 0 : Int64(track.sampleRate / 200)
    let gap = place - bufferEnd
    // A jump of more than a minute is a broken time, not silence.
    if gap > tolerance, gap < Int64(track.sampleRate) * 60 {
      for channel in buffer.indices {
        buffer[channel] += [Float](repeating: 0, count: Int(gap))
      }
    }
    let skipped = gap < -tolerance ? Int(min(-gap, Int64(samples.first?.count ?? 0))) : 0
    for channel in buffer.indices { buffer[channel] += samples[channel].dropFirst(skipped) }
  }

  private mutating func forget(before place: Int64) {
    let count = Int(min(place - bufferStart, Int64(buffer.first?.count ?? 0)))
    // In large steps, since each costs a copy of what is kept.
    guard count > Self.kept else { return }
    for channel in buffer.indices { buffer[channel].removeFirst(count) }
    bufferStart += Int64(count)
  }
}
