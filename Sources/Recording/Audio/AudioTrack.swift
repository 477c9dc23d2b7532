// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankLibAV
import OvercrankMediaCore

/// The encoded audio of a take, which ends at the same time as the video.
struct AudioTrack: ~Copyable {
  private var encoder: Encoder
  private let source: TakeAudio
  /// The audio since the last pause, and the output sample at which it starts.
  private var (audio, start): (any AlignedAudio, Int64)
  /// The report of the audio before the last pause.
  private var earlier: RecordedAudio?
  /// The samples of each channel before the last pause that did not fill an encoder block.
  private var rest: [[Float]]
  private let codec: AudioCodec
  private let rate: Int
  private let channelCount: Int
  private let blockLength: Int
  /// The number of samples encoded so far.
  private(set) var sampleCount: Int64 = 0

  /// The greatest number of packets per second.
  ///
  /// An encoder block has at least 1,024 samples.
  static func packetsPerSecond(atRate rate: Int) -> Int { rate / 1_024 + 1 }

  /// The description of the track for the initialization segment.
  ///
  /// - Throws: `LibAVError` if memory is unavailable.
  func head() throws(LibAVError) -> InitializationSegment.Track {
    let parameters = encoder.parameters
    let first = Int64(-parameters.initialPadding)
    // The initialization segment needs no audio data, but the muxer writes it only after a packet.
    // The packet contains one sample of silence.
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

  /// Opens the encoder.
  ///
  /// `originMicroseconds` is the capture-clock time of the take's first frame.
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

  /// Encodes the remaining audio up to the end of the take, and flushes the encoder.
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

  /// Encodes the whole blocks that end at or before a sample.
  private mutating func encode(upTo end: Int64) throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    // After missing frames, many blocks may be due at once. The encoder buffers only a few packets,
    // so they are read after each block.
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
