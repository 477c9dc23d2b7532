// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Encodes audio in blocks of the size that its codec requires.
struct AudioBlockEncoder: ~Copyable {
  private var encoder: Encoder
  /// Samples of each channel that do not fill a block yet.
  private var rest: [[Float]]
  /// The number of samples in a block.
  let blockLength: Int
  private let sampleRate: Int
  /// The number of samples encoded so far.
  private(set) var sampleCount: Int64 = 0

  /// An upper limit of the packets per second: blocks have at least 1,024 samples.
  static func packetsPerSecond(atRate rate: Int) -> Int { rate / 1_024 + 1 }

  /// Opens the encoder.
  ///
  /// - Throws: `LibAVError` if libav lacks the codec, or the codec does not support the format.
  init(codec: AudioCodec, sampleRate: Int, channelCount: Int) throws(LibAVError) {
    encoder = try Encoder(
      audioCodec: codec.rawValue, sampleRate: sampleRate, channelCount: channelCount)
    self.sampleRate = sampleRate
    rest = Array(repeating: [], count: channelCount)
    blockLength = encoder.frameSize > 0 ? encoder.frameSize : 1_024
  }

  /// The description of the track for the initialization segment.
  ///
  /// - Throws: `LibAVError` if memory is unavailable.
  func head() throws(LibAVError) -> InitializationSegment.Track {
    let parameters = encoder.parameters
    // The initialization segment needs no audio data, but the muxer expects a packet with one
    // sample.
    return InitializationSegment.Track(
      parameters, timescale: Int32(clamping: sampleRate),
      first: try InitializationSegment.First(
        ticks: Int64(-parameters.initialPadding),
        placeholder: [UInt8](repeating: 0, count: 8 * rest.count)))
  }

  /// The number of samples that wait for a full block.
  var restCount: Int { rest.first?.count ?? 0 }

  /// Adds samples, an array for each channel.
  mutating func keep(_ samples: [[Float]]) {
    for channel in rest.indices { rest[channel] += samples[channel] }
  }

  /// Encodes `count` of the added samples: a block, or fewer at the end.
  mutating func encode(_ count: Int) throws(LibAVError) {
    try encoder.send(audio: rest.map { Array($0.prefix(count)) }, at: sampleCount)
    for channel in rest.indices { rest[channel].removeFirst(min(count, rest[channel].count)) }
    sampleCount += Int64(count)
  }

  /// The finished packets.
  ///
  /// The encoder buffers only a few, so they are read after each block.
  mutating func readyPackets() throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    while let packet = try encoder.nextPacket() { packets.append(packet) }
    return packets
  }

  /// Flushes the encoder, and returns its last packets.
  mutating func flush() throws(LibAVError) -> [Packet] {
    var packets = try readyPackets()
    try encoder.send(nil)
    packets += try readyPackets()
    return packets
  }
}
