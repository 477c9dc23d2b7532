// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Reads an asset's audio at another sampling rate, or with another number of channels.
///
/// Positions are in samples at the new rate, from the asset's time zero. Forward reading is
/// fastest.
struct ConvertedAudio: ~Copyable {
  private var reader: AudioReader
  private let mixer: ChannelMixer
  /// The number of source samples that become `outputStep` converted samples.
  ///
  /// The ratio of the two numbers is in lowest terms.
  private let inputStep: Int64
  private let outputStep: Int64
  private let channelCount: Int
  private var resampler: Resampler?
  /// The converted samples of each channel.
  ///
  /// `bufferStart` is the position of the first sample in the buffer.
  private var buffer: [[Float]]
  private var bufferStart: Int64 = 0
  /// The position of the next source sample to convert.
  private var nextSample: Int64 = 0

  private static let blockLength = 8_192
  /// The number of converted samples before the last request that stay in the buffer.
  private static let kept = 96_000

  init(
    _ reader: consuming AudioReader, _ track: AudioTrack, sampleRate: Int, channelCount: Int
  ) {
    var (a, b) = (track.sampleRate, sampleRate)
    while b != 0 { (a, b) = (b, a % b) }
    inputStep = Int64(track.sampleRate / a)
    outputStep = Int64(sampleRate / a)
    mixer = ChannelMixer(from: track.channelCount, to: channelCount)
    self.channelCount = channelCount
    self.reader = reader
    buffer = Array(repeating: [], count: channelCount)
  }

  private var bufferEnd: Int64 { bufferStart + Int64(buffer.first?.count ?? 0) }

  /// Reads converted samples of each channel.
  ///
  /// - Throws: `MediaError` with `.invalidData` for audio that cannot be decoded or converted.
  mutating func samples(from start: Int64, count: Int) throws(MediaError) -> [[Float]] {
    if inputStep == outputStep {
      return mixer.mixed(try reader.samples(from: start, count: count))
    }
    do throws(CallFailure) {
      if resampler == nil { try restart(at: start) }
      if start < bufferStart || start > bufferEnd + Int64(4 * Self.blockLength) {
        try restart(at: start)
      }
    } catch { throw Self.failed(error) }
    let end = start + Int64(count)
    while bufferEnd < end {
      let block = mixer.mixed(try reader.samples(from: nextSample, count: Self.blockLength))
      nextSample += Int64(Self.blockLength)
      let converted: [[Float]]?
      do throws(CallFailure) { converted = try resampler?.convert(block) } catch {
        throw Self.failed(error)
      }
      guard let converted, converted.count == channelCount else { break }
      for channel in buffer.indices { buffer[channel] += converted[channel] }
    }
    let first = Int(start - bufferStart)
    let result = buffer.map { Array($0[first..<min($0.count, first + count)]) }
    let surplus = first - Self.kept
    if surplus > Self.kept {
      for channel in buffer.indices { buffer[channel].removeFirst(surplus) }
      bufferStart += Int64(surplus)
    }
    return result
  }

  /// Restarts conversion before a position.
  ///
  /// Only every `outputStep`-th converted sample has the same time as a source sample. Conversion
  /// starts at such a sample, early enough for the resampler's filter to be filled at the position.
  private mutating func restart(at position: Int64) throws(CallFailure) {
    let resampler = try Resampler(
      inputRate: Int32(clamping: inputStep), outputRate: Int32(clamping: outputStep),
      channelCount: channelCount)
    let lead = Int64(resampler.filterLength) * outputStep / inputStep + 1
    let early = position - lead
    let pair = early >= 0 ? early / outputStep : (early - outputStep + 1) / outputStep
    bufferStart = pair * outputStep
    nextSample = pair * inputStep
    buffer = Array(repeating: [], count: channelCount)
    self.resampler = consume resampler
  }

  private static func failed(_ error: CallFailure) -> MediaError {
    MediaError(error, at: CallStage(other: .init(.invalidData)))
  }
}
