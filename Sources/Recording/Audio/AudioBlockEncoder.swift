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
  /// The last encoded samples of each channel, with which the encoder of the next file starts.
  private(set) var recent: [[Float]]
  /// The number of samples that the decoder discards at the start of the file.
  private let padding: Int64
  /// The number of blocks in `recent`.
  ///
  /// FFmpeg's AAC encoder distorts a tone in its first three blocks.
  private static let recentBlocks = 4

  /// An upper limit of the packets per second: blocks have at least 1,024 samples.
  static func packetsPerSecond(atRate rate: Int) -> Int { rate / 1_024 + 1 }

  /// Opens the encoder.
  ///
  /// - Parameters:
  ///   - codec: The codec.
  ///   - sampleRate: The sample rate in hertz.
  ///   - channelCount: The number of channels.
  ///   - earlier: The samples before the first one, from the file before this one. Without them, a
  ///     lossy codec starts from silence, which is audible as a click between two files.
  /// - Throws: `LibAVError` if libav lacks the codec, or the codec does not support the format.
  init(
    codec: AudioCodec, sampleRate: Int, channelCount: Int, after earlier: [[Float]] = []
  ) throws(LibAVError) {
    var encoder = try Encoder(
      audioCodec: codec.rawValue, sampleRate: sampleRate, channelCount: channelCount)
    let blockLength = encoder.frameSize > 0 ? encoder.frameSize : 1_024
    let padding = Int64(encoder.parameters.initialPadding)
    var left = padding > 0 ? (earlier.first?.count ?? 0) / blockLength * blockLength : 0
    while left > 0 {
      let block = earlier.map { Array($0.suffix(left).prefix(blockLength)) }
      try encoder.send(audio: block, at: Int64(-left))
      while try encoder.nextPacket() != nil {}
      left -= blockLength
    }
    self.encoder = encoder
    self.sampleRate = sampleRate
    self.blockLength = blockLength
    self.padding = padding
    rest = Array(repeating: [], count: channelCount)
    recent = rest
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
    for channel in rest.indices {
      let encoded = rest[channel].prefix(count)
      if padding > 0 {
        recent[channel] = (recent[channel] + encoded).suffix(Self.recentBlocks * blockLength)
      }
      rest[channel].removeFirst(encoded.count)
    }
    sampleCount += Int64(count)
  }

  /// The finished packets.
  ///
  /// The encoder buffers only a few, so they are read after each block. The packets of the file
  /// before this one are left out, but for those that the decoder needs for the first sample.
  mutating func readyPackets() throws(LibAVError) -> [Packet] {
    var packets: [Packet] = []
    while let packet = try encoder.nextPacket() {
      if packet.pts.map({ $0 >= -padding }) ?? true { packets.append(packet) }
    }
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
