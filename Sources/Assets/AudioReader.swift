// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
package import OvercrankMediaCore

/// Reads an asset's audio samples in any order.
///
/// Forward reading is fastest.
///
/// Sample 0 is at the asset's time zero. Encoder padding is left out. Samples outside the audio
/// track are silent.
package struct AudioReader: ~Copyable {
  private let asset: Asset
  private let track: AudioTrack
  private var source: PacketSource
  /// The decoded samples of each channel.
  ///
  /// `bufferStart` is the index of the first sample in the buffer.
  private var buffer: [[Float]]
  private var bufferStart: Int64
  private var isAtEnd = false
  /// Whether the reader seeks to reach a distant position.
  ///
  /// If false, the track is decoded from its start instead.
  private let seeks: Bool
  /// The index of the sample before which decoded blocks are discarded after a seek.
  ///
  /// Nil as soon as the position in the track is known again.
  private var placement: Int64?
  /// The number of samples in the longest block so far.
  private var longestBlock: Int64 = 0
  /// The conversion of the last decoded block to the track's format; nil if the block had this
  /// format.
  private var conversion: BlockConversion?

  /// The number of samples before the last request that stay in the buffer.
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

  /// Reads samples of each channel, with values from -1 to 1.
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
    // After a seek, the first decoded block may begin after the requested sample.
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

  /// The number of samples before the requested ones at which decoding starts after a seek.
  ///
  /// The first blocks that a decoder returns after a seek may be wrong.
  private static func runUp(_ track: AudioTrack) -> Int64 { Int64(track.sampleRate / 2) }

  /// Restarts decoding before a sample.
  private mutating func restart(at sample: Int64) throws(MediaError) {
    source = try PacketSource.open(asset, track.format)
    buffer = Array(repeating: [], count: track.channelCount)
    bufferStart = track.startSample
    isAtEnd = false
    placement = nil
    conversion = nil
    let start = sample - Self.runUp(track)
    guard seeks, start > track.startSample + Self.runUp(track),
      let ticks = track.ticks(atSample: start)
    else { return }
    do throws(CallFailure) {
      try source.seek(to: ticks)
      placement = start + Self.runUp(track) / 2
    } catch { source = try PacketSource.open(asset, track.format) }
  }

  private mutating func decode(upTo end: Int64) throws(MediaError) {
    do throws(CallFailure) {
      while bufferEnd < end, !isAtEnd {
        guard let frame = try nextFrame() else {
          isAtEnd = true
          try endConversion()
          return
        }
        try append(frame)
      }
    } catch { throw MediaError(reading: error) }
  }

  /// Decodes the next block.
  ///
  /// If the container says that bytes are missing, a packet that cannot be decoded is left out. The
  /// next block has its own time, so that the gap is silent.
  private mutating func nextFrame() throws(CallFailure) -> MediaFrame? {
    while true {
      do throws(CallFailure) { return try source.nextFrame() } catch {
        guard asset.lacksBytes, error.isDamage else { throw error }
      }
    }
  }

  /// Appends a decoded block at the time that the block states.
  ///
  /// Some containers round times to milliseconds, so the time of a block may be wrong by some
  /// samples. In such a file, a deviation of up to 5 ms is ignored, and the block follows the
  /// previous one without a gap. The blocks of Vorbis have different lengths, and some programs
  /// state the times of their ends. A deviation of up to the longest block is therefore ignored.
  private mutating func append(_ frame: MediaFrame) throws(CallFailure) {
    guard var samples = frame.samples(), !samples.isEmpty else {
      throw CallFailure("decode the audio of", asset.path, code: -22)
    }
    let continues = try convert(&samples, rate: frame.sampleRate)
    if continues {
      for channel in buffer.indices { buffer[channel] += samples[channel] }
      return
    }
    var position = bufferEnd
    if let ticks = frame.pts, let own = track.format.sample(atTicks: ticks) {
      position = own &- track.originSample
    }
    if let placement {
      // The first blocks after a seek may be wrong, so they are discarded.
      guard position >= placement else { return }
      bufferStart = position
      self.placement = nil
    }
    // The first block of the track continues no other block, so its time is taken as it is. Some
    // decoders, such as Vorbis, return nothing for the first packet, so this block may begin late.
    // If the exact start of the track is known, the block begins there.
    let isFirst =
      buffer.first?.isEmpty != false && bufferStart == track.startSample && !track.hasExactExtent
    longestBlock = max(longestBlock, Int64(samples.first?.count ?? 0))
    let jitter = max(
      track.codec.rawValue == "vorbis" ? longestBlock : 0, Int64(track.sampleRate / 200))
    let tolerance = track.hasTimesInSamples || isFirst ? 0 : jitter
    let gap = position - bufferEnd
    // If the time jumps by more than one minute, it is probably wrong, so no silence is inserted.
    if gap > tolerance, gap < Int64(track.sampleRate) * 60 {
      for channel in buffer.indices {
        buffer[channel] += [Float](repeating: 0, count: Int(gap))
      }
    }
    let skipped = gap < -tolerance ? Int(min(-gap, Int64(samples.first?.count ?? 0))) : 0
    for channel in buffer.indices { buffer[channel] += samples[channel].dropFirst(skipped) }
  }

  /// Converts a block to the track's format, if the block has another format.
  ///
  /// A stream may change its sampling rate or its channels, as broadcasts do.
  ///
  /// - Returns: True if the block continues a resampled block, so that its position is known.
  private mutating func convert(
    _ samples: inout [[Float]], rate: Int
  ) throws(CallFailure) -> Bool {
    let isPlain = rate == track.sampleRate && samples.count == track.channelCount
    if conversion?.fits(samples, rate: rate) != true { try endConversion() }
    guard !isPlain, rate > 0 else { return false }
    let continues = conversion?.resamples == true
    do throws(CallFailure) {
      if conversion == nil {
        conversion = try BlockConversion(from: rate, channelCount: samples.count, to: track)
      }
      samples = try conversion?.converted(samples) ?? samples
    } catch { throw error.attributed(to: "convert the audio of", asset.path) }
    return continues
  }

  /// Ends the current conversion, and appends the samples that are still in its resampler.
  private mutating func endConversion() throws(CallFailure) {
    guard conversion != nil else { return }
    do throws(CallFailure) {
      if placement == nil, let rest = try conversion?.rest(), rest.count == buffer.count {
        for channel in buffer.indices { buffer[channel] += rest[channel] }
      }
    } catch { throw error.attributed(to: "convert the audio of", asset.path) }
    conversion = nil
  }

  private mutating func forget(before position: Int64) {
    let count = Int(min(position - bufferStart, Int64(buffer.first?.count ?? 0)))
    // Removing samples copies the remaining ones, so it is done only for many samples at once.
    guard count > Self.kept else { return }
    for channel in buffer.indices { buffer[channel].removeFirst(count) }
    bufferStart += Int64(count)
  }
}

/// Converts consecutive blocks of one format to a track's format.
private struct BlockConversion: ~Copyable {
  private let inputRate: Int
  private let outputRate: Int
  private let inputCount: Int
  private let outputCount: Int
  private let mixer: ChannelMixer
  /// The resampler; nil if the sample rates are equal.
  private var resampler: Resampler?
  private var takenCount = 0
  private var givenCount = 0

  var resamples: Bool { inputRate != outputRate }

  init(from rate: Int, channelCount: Int, to track: AudioTrack) throws(CallFailure) {
    (inputRate, outputRate) = (rate, track.sampleRate)
    (inputCount, outputCount) = (channelCount, track.channelCount)
    mixer = ChannelMixer(from: inputCount, to: outputCount)
    guard inputRate != outputRate else { return }
    var (divisor, rest) = (inputRate, outputRate)
    while rest > 0 { (divisor, rest) = (rest, divisor % rest) }
    resampler = try Resampler(
      inputRate: Int32(clamping: inputRate / divisor),
      outputRate: Int32(clamping: outputRate / divisor), channelCount: outputCount)
  }

  /// Whether blocks of this format can continue this conversion.
  func fits(_ samples: [[Float]], rate: Int) -> Bool {
    rate == inputRate && samples.count == inputCount
  }

  mutating func converted(_ samples: [[Float]]) throws(CallFailure) -> [[Float]] {
    let mixed = mixer.mixed(samples)
    guard resamples else { return mixed }
    takenCount += samples.first?.count ?? 0
    let result = try resampler?.convert(mixed) ?? mixed
    givenCount += result.first?.count ?? 0
    return result
  }

  /// The samples that remain in the resampler's filter after the last block.
  mutating func rest() throws(CallFailure) -> [[Float]]? {
    guard let length = resampler?.filterLength else { return nil }
    let silence = Array(repeating: [Float](repeating: 0, count: length), count: outputCount)
    let count = Int(Int128(takenCount) * Int128(outputRate) / Int128(inputRate)) - givenCount
    return try resampler?.convert(silence).map { Array($0.prefix(max(0, count))) }
  }
}

extension AudioTrack {
  /// Whether the times of packets are exact in samples, and not rounded to a coarser unit.
  fileprivate var hasTimesInSamples: Bool {
    format.timeBase.denominator % Int128(sampleRate) == 0
  }

  /// The last tick of the file at or before a sample.
  ///
  /// The sample is counted from the asset's time zero.
  fileprivate func ticks(atSample sample: Int64) -> Int64? {
    let seconds = Rational(Int128(sample) + Int128(originSample), over: Int128(sampleRate))
    let ticks = try? (seconds / format.timeBase).rounded(.towardNegativeInfinity)
    return ticks.flatMap { Int64(exactly: $0) }
  }
}
