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
  /// Whether a distant position is reached by a seek.
  ///
  /// If false, the track is decoded from its start instead.
  private let seeks: Bool
  /// The sample before which decoded blocks are discarded after a seek.
  ///
  /// Nil when the position in the track is known.
  private var placement: Int64?

  /// The number of samples kept from before the last request.
  ///
  /// A small backward step then needs no seek.
  private static let kept = 192_000

  /// Opens the asset's audio.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - seeks: True to seek to distant positions, which is fast. Some codecs then decode slightly
  ///     different samples. False to decode from the start, which always gives the same samples.
  /// - Throws: `MediaError` with `.invalidData` for an asset without decodable audio.
  package init(_ asset: Asset, seeks: Bool = false) throws(MediaError) {
    guard let track = asset.audioTrack else { throw .invalid(asset.path, "contains no audio") }
    let source = try PacketSource.open(asset, track.format)
    self.asset = asset
    self.track = track
    self.source = consume source
    buffer = Array(repeating: [], count: track.channelCount)
    bufferStart = track.startSample
    self.seeks = seeks && track.hasTimesInSamples
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
    if first < bufferStart { try restart(at: first) }
    if seeks, first > bufferEnd + 4 * Self.runUp(track) { try restart(at: first) }
    try decode(upTo: last)
    let end = min(last, bufferEnd)
    // After a seek, the first block may begin late.
    let available = max(first, bufferStart)
    guard available < end else { return result }
    for channel in result.indices {
      for position in available..<end {
        result[channel][Int(position - start)] = buffer[channel][Int(position - bufferStart)]
      }
    }
    forget(before: start - Int64(Self.kept))
    return result
  }

  /// The number of samples that are decoded before the requested ones after a seek.
  ///
  /// Decoders need some blocks until their output is correct.
  private static func runUp(_ track: AudioTrack) -> Int64 { Int64(track.sampleRate / 2) }

  /// Starts decoding again, before a sample.
  private mutating func restart(at sample: Int64) throws(MediaError) {
    source = try PacketSource.open(asset, track.format)
    buffer = Array(repeating: [], count: track.channelCount)
    bufferStart = track.startSample
    isAtEnd = false
    placement = nil
    let start = sample - Self.runUp(track)
    guard seeks, start > track.startSample + Self.runUp(track),
      let ticks = track.ticks(atSample: start)
    else { return }
    do throws(LibAVError) {
      try source.seek(to: ticks)
      placement = start + Self.runUp(track) / 2
    } catch { source = try PacketSource.open(asset, track.format) }
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
    if let placement {
      // The first blocks after a seek may be wrong, so they are left out.
      guard position >= placement else { return }
      bufferStart = position
      self.placement = nil
    }
    // No block comes before the first one. Decoders such as that of Vorbis return nothing for the
    // first packet, so it may begin late.
    let isFirst = buffer.first?.isEmpty != false && bufferStart == track.startSample
    let tolerance = track.hasTimesInSamples || isFirst ? 0 : Int64(track.sampleRate / 200)
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

extension AudioTrack {
  /// Whether the times of packets are exact in samples, and not rounded to a coarser unit.
  fileprivate var hasTimesInSamples: Bool {
    format.timeBase.denominator % Int128(sampleRate) == 0
  }

  /// The last tick of the file at or before a sample, counted from the asset's time zero.
  fileprivate func ticks(atSample sample: Int64) -> Int64? {
    let seconds = Rational(Int128(sample) + Int128(originSample), over: Int128(sampleRate))
    let ticks = try? (seconds / format.timeBase).rounded(.towardNegativeInfinity)
    return ticks.flatMap { Int64(exactly: $0) }
  }
}
