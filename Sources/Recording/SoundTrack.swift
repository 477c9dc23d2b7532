// SPDX-License-Identifier: Apache-2.0
import Capture
import LibAV
import MediaTiming

/// The sound of a take, encoded up to the same instant as its pictures.
struct SoundTrack: ~Copyable {
  private var encoder: Encoder
  private let source: SyntheticSound
  /// The source's sample that sounds at the take's zero.
  private let offset: Int64
  private let blockLength: Int
  /// Samples encoded so far.
  private(set) var sampleCount: Int64 = 0

  /// More packets than any of the encoders makes of a second: blocks have 1 024 samples.
  static let packetsPerSecond = SyntheticSound.sampleRate / 1_024 + 1

  /// What the head of the file says of the track.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  func head() throws(LibAVError) -> MovieHead.Track {
    let parameters = encoder.parameters
    let first = Int64(-parameters.initialPadding)
    // Of sound the head needs no bytes, only that there are enough for a sample.
    let silence = [UInt8](repeating: 0, count: 8 * SyntheticSound.channelCount)
    let result = silence.withUnsafeBytes { bytes in
      Result { () throws(LibAVError) in
        try Packet(copying: bytes, pts: first, dts: first, duration: 1, isKeyFrame: true)
      }
    }
    return MovieHead.Track(
      parameters, timescale: Int32(SyntheticSound.sampleRate),
      first: MovieHead.First(ticks: first, packet: try result.get()))
  }

  /// Opens the encoder; `originMicroseconds` is the take's zero after the source's sample 0.
  init(
    source: SyntheticSound, codec: SoundCodec, originMicroseconds: Int64
  ) throws(LibAVError) {
    self.source = source
    encoder = try Encoder(
      soundCodec: codec.encoderName, sampleRate: SyntheticSound.sampleRate,
      channelCount: SyntheticSound.channelCount)
    blockLength = encoder.frameSize > 0 ? encoder.frameSize : 1_024
    offset = Self.sample(atMicroseconds: originMicroseconds)
  }

  /// The sample nearest to an instant, halves away from zero.
  static func sample(atMicroseconds time: Int64) -> Int64 {
    // A time too far for samples to count is a broken driver's; the sound then starts at once.
    (try? MediaTime(microseconds: time).converted(
      to: Int32(SyntheticSound.sampleRate), rounding: .halfAwayFromZero
    ).value) ?? 0
  }

  /// Encodes whole blocks up to an instant of the take, and gives the packets that are ready.
  mutating func advance(toMicroseconds time: Int64) throws(LibAVError) -> [Packet] {
    let end = Self.sample(atMicroseconds: time)
    var packets: [Packet] = []
    // An encoder holds only a few blocks: where pictures are missing, many are due at once.
    while sampleCount + Int64(blockLength) <= end {
      try encode(blockLength)
      packets += try readyPackets()
    }
    return packets
  }

  /// Encodes what is left up to the end of the take, exactly, and empties the encoder.
  mutating func finish(atMicroseconds time: Int64) throws(LibAVError) -> [Packet] {
    var packets = try advance(toMicroseconds: time)
    let rest = Self.sample(atMicroseconds: time) - sampleCount
    if rest > 0 { try encode(Int(rest)) }
    packets += try readyPackets()
    try encoder.send(nil)
    packets += try readyPackets()
    return packets
  }

  private mutating func encode(_ count: Int) throws(LibAVError) {
    let samples = source.samples(from: offset + sampleCount, count: count)
    let channels = Array(repeating: samples, count: SyntheticSound.channelCount)
    try encoder.send(sound: channels, at: sampleCount)
    sampleCount += Int64(count)
  }

  private mutating func readyPackets() throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    return packets
  }
}
