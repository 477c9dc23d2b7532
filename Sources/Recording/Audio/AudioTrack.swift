// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore

/// The encoded audio of a take, which ends at the same time as the video.
struct AudioTrack: ~Copyable {
  private var blocks: AudioBlockEncoder
  private let source: TakeAudio
  /// The audio since the last pause, and the output sample at which it starts.
  private var (audio, start): (any AlignedAudio, Int64)
  /// The report of the audio before the last pause.
  private var earlier: RecordedAudio?
  private let codec: AudioCodec
  private let rate: Int
  private let channelCount: Int
  /// The number of samples encoded so far.
  var sampleCount: Int64 { blocks.sampleCount }

  /// The description of the track for the initialization segment.
  ///
  /// - Throws: `LibAVError` if memory is unavailable.
  func head() throws(LibAVError) -> InitializationSegment.Track { try blocks.head() }

  /// Opens the encoder.
  ///
  /// `originMicroseconds` is the capture-clock time of the take's first frame.
  init(
    source: TakeAudio, codec: AudioCodec, originMicroseconds: Int64
  ) throws(LibAVError) {
    let audio = try source.aligned(fromMicroseconds: originMicroseconds)
    self.blocks = try AudioBlockEncoder(
      codec: codec, sampleRate: source.sampleRate, channelCount: source.channelCount)
    (rate, channelCount) = (source.sampleRate, source.channelCount)
    self.codec = codec
    self.source = source
    (self.audio, start) = (audio, 0)
  }

  /// The report of the audio so far.
  var account: RecordedAudio {
    var account = audio.account.joined(to: earlier, atSample: start, rate: rate)
    account.codec = codec
    account.sampleRate = rate
    account.channelCount = channelCount
    account.sampleCount = sampleCount
    return account
  }

  /// The index of the sample nearest to a time; halves are rounded away from zero.
  static func sample(atMicroseconds time: Int64, rate: Int) -> Int64 {
    // An overflow means that the driver's clock is broken. The result is then sample 0.
    (try? MediaTime(microseconds: time).converted(
      to: Int32(clamping: rate), rounding: .halfAwayFromZero
    ).value) ?? 0
  }

  /// Encodes whole blocks of available audio up to a time of the take.
  ///
  /// Returns the finished packets.
  mutating func advance(toMicroseconds time: Int64) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time, rate: rate)
    return try encode(upTo: start + (try audio.samplesReady(before: end - start)))
  }

  /// Ends the audio at a pause, and continues with the audio after it.
  ///
  /// `atMicroseconds` is the position of the pause in the take. `originMicroseconds` is the
  /// capture-clock time at which the take continues.
  mutating func goOn(
    atMicroseconds time: Int64, originMicroseconds origin: Int64
  ) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time, rate: rate)
    try audio.finish(before: end - start)
    let packets = try encode(upTo: end)
    let left = Int(end - sampleCount) - blocks.restCount
    if left > 0 { blocks.keep(audio.take(left)) }
    earlier = audio.account.joined(to: earlier, atSample: start, rate: rate)
    (audio, start) = (try source.aligned(fromMicroseconds: origin), end)
    return packets
  }

  /// Encodes the remaining audio up to the end of the take, and flushes the encoder.
  mutating func finish(atMicroseconds time: Int64) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time, rate: rate)
    try audio.finish(before: end - start)
    let packets = try encode(upTo: end)
    let left = end - sampleCount
    if left > 0 { try encode(Int(left)) }
    return try packets + blocks.flush()
  }

  /// Encodes the whole blocks that end at or before a sample.
  private mutating func encode(upTo end: Int64) throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    // `end` is usually the time of a frame. If frames were missing before it, many audio blocks may
    // end before it, so this is a loop.
    while sampleCount + Int64(blocks.blockLength) <= end {
      try encode(blocks.blockLength)
      packets += try blocks.readyPackets()
    }
    return packets
  }

  private mutating func encode(_ count: Int) throws(LibAVError) {
    blocks.keep(audio.take(max(0, count - blocks.restCount)))
    try blocks.encode(count)
  }
}
