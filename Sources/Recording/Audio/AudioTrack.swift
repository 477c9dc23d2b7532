// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore

/// The sound of a take, encoded up to the same instant as its pictures.
struct AudioTrack: ~Copyable {
  private var encoder: Encoder
  private let source: TakeAudio
  /// What is heard since the last pause, and the sample of the take with which that begins.
  private var (audio, start): (any AlignedAudio, Int64)
  /// What became of the sound before that.
  private var earlier: RecordedAudio?
  /// Samples from before the last pause that make no whole block, for each channel.
  private var rest: [[Float]]
  private let codec: AudioCodec
  private let rate: Int
  private let channelCount: Int
  private let blockLength: Int
  /// Samples encoded so far.
  private(set) var sampleCount: Int64 = 0

  /// More packets than any of the encoders makes of a second: blocks have 1 024 samples.
  static func packetsPerSecond(atRate rate: Int) -> Int { rate / 1_024 + 1 }

  /// What the head of the file says of the track.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  func head() throws(LibAVError) -> InitializationSegment.Track {
    let parameters = encoder.parameters
    let first = Int64(-parameters.initialPadding)
    // Of sound the head needs no bytes, only that there are enough for a sample.
    let silence = [UInt8](repeating: 0, count: 8 * channelCount)
    let result = silence.withUnsafeBytes { bytes in
      Result { () throws(LibAVError) in
        try Packet(copying: bytes, pts: first, dts: first, duration: 1, isKeyFrame: true)
      }
    }
    return InitializationSegment.Track(
      parameters, timescale: Int32(clamping: rate),
      first: InitializationSegment.First(ticks: first, packet: try result.get()))
  }

  /// Opens the encoder; the take's zero is at `originMicroseconds` of the capture clock.
  init(
    source: TakeAudio, codec: AudioCodec, originMicroseconds: Int64
  ) throws(LibAVError) {
    let encoder = try Encoder(
      audioCodec: codec.rawValue, sampleRate: source.sampleRate,
      channelCount: source.channelCount)
    let audio = try source.aligned(fromMicroseconds: originMicroseconds)
    (rate, channelCount) = (source.sampleRate, source.channelCount)
    self.codec = codec
    self.source = source
    (self.audio, start) = (audio, 0)
    rest = Array(repeating: [], count: source.channelCount)
    blockLength = encoder.frameSize > 0 ? encoder.frameSize : 1_024
    self.encoder = encoder
  }

  /// What became of the sound, so far.
  var account: RecordedAudio {
    var account = audio.account.joined(to: earlier, atSample: start, rate: rate)
    account.codec = codec
    account.sampleRate = rate
    account.channelCount = channelCount
    account.sampleCount = sampleCount
    return account
  }

  /// The sample nearest to an instant, halves away from zero.
  static func sample(atMicroseconds time: Int64, rate: Int) -> Int64 {
    // A time too far for samples to count is a broken driver's; the sound then starts at once.
    (try? MediaTime(microseconds: time).converted(
      to: Int32(clamping: rate), rounding: .halfAwayFromZero
    ).value) ?? 0
  }

  /// Encodes whole blocks up to an instant of the take, as far as they have been heard, and gives
  /// the packets that are ready.
  mutating func advance(toMicroseconds time: Int64) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time, rate: rate)
    return try encode(upTo: start + (try audio.samplesReady(before: end - start)))
  }

  /// Ends what was heard before a pause at an instant of the take, exactly, and goes on with what
  /// is heard from a time of the capture clock on.
  mutating func goOn(
    atMicroseconds time: Int64, originMicroseconds origin: Int64
  ) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time, rate: rate)
    try audio.finish(before: end - start)
    let packets = try encode(upTo: end)
    let left = Int(end - sampleCount) - restCount
    if left > 0 { keep(audio.take(left)) }
    earlier = audio.account.joined(to: earlier, atSample: start, rate: rate)
    (audio, start) = (try source.aligned(fromMicroseconds: origin), end)
    return packets
  }

  private var restCount: Int { rest.first?.count ?? 0 }

  private mutating func keep(_ samples: [[Float]]) {
    for channel in rest.indices { rest[channel] += samples[channel] }
  }

  /// Encodes what is left up to the end of the take, exactly, and empties the encoder.
  mutating func finish(atMicroseconds time: Int64) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time, rate: rate)
    try audio.finish(before: end - start)
    var packets = try encode(upTo: end)
    let left = end - sampleCount
    if left > 0 { try encode(Int(left)) }
    packets += try readyPackets()
    try encoder.send(nil)
    packets += try readyPackets()
    return packets
  }

  /// Encodes the whole blocks that end by then.
  private mutating func encode(upTo end: Int64) throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    // An encoder holds only a few blocks: where pictures are missing, many are due at once.
    while sampleCount + Int64(blockLength) <= end {
      try encode(blockLength)
      packets += try readyPackets()
    }
    return packets
  }

  private mutating func encode(_ count: Int) throws(LibAVError) {
    keep(audio.take(max(0, count - restCount)))
    try encoder.send(audio: rest.map { Array($0.prefix(count)) }, at: sampleCount)
    for channel in rest.indices { rest[channel].removeFirst(min(count, rest[channel].count)) }
    sampleCount += Int64(count)
  }

  private mutating func readyPackets() throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    return packets
  }
}
