// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat

/// Encodes audio in blocks of the size that its codec requires.
struct TakeAudioEncoder: ~Copyable {
  private var encoder: Encoder
  /// Samples that do not fill a block yet, an array for each channel.
  private var rest: [[Float]]
  /// The number of samples per channel in a block.
  let blockLength: Int
  private let sampleRate: Int
  /// The number of samples per channel encoded so far.
  private(set) var sampleCount: Int64 = 0
  /// The last encoded samples of each channel.
  ///
  /// The encoder of the next file starts with them.
  private(set) var recent: [[Float]]
  /// The number of samples that the decoder discards at the start of the file.
  private let padding: Int64
  /// The number of blocks whose samples are kept in `recent`.
  ///
  /// FFmpeg's AAC encoder distorts a tone in its first three blocks.
  private static let recentBlocks = 4

  /// An upper limit for the number of packets per second.
  ///
  /// Blocks have at least 1,024 samples.
  static func packetsPerSecond(atRate rate: Int) -> Int { rate / 1_024 + 1 }

  /// Opens the encoder.
  ///
  /// - Parameters:
  ///   - codec: The codec.
  ///   - sampleRate: The sample rate in hertz.
  ///   - channelCount: The number of channels.
  ///   - earlier: The last samples of the previous file, which precede the first sample of this
  ///     one. Without them, a lossy codec starts from silence, and a click is audible between the
  ///     two files.
  /// - Throws: `CallFailure` if libav lacks the codec, or the codec does not support the format.
  init(
    codec: AudioCodec, sampleRate: Int, channelCount: Int, after earlier: [[Float]] = []
  ) throws(CallFailure) {
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

  /// The codec parameters of the packets.
  var parameters: CodecParameters { encoder.parameters }

  /// The description of the track for the file.
  ///
  /// - Throws: `CallFailure` if the file's container does not support the codec.
  func head(of path: String) throws(CallFailure) -> FragmentedMovieWriter.Track {
    let parameters = encoder.parameters
    // The description needs no audio data, but the muxer requires a packet with one sample.
    return try FragmentedMovieWriter.Track(
      TrackMuxer.Format(
        parameters, in: MovieContainer(recording: path), timescale: Int32(clamping: sampleRate)),
      first: FirstSample(ticks: Int64(-parameters.initialPadding)),
      packet: Packet(copying: [UInt8](repeating: 0, count: 8 * rest.count)), path: path)
  }

  /// The number of samples per channel that do not fill a block yet.
  var restCount: Int { rest.first?.count ?? 0 }

  /// Adds samples, given as an array for each channel, to the blocks that are encoded next.
  mutating func keep(_ samples: [[Float]]) {
    for channel in rest.indices { rest[channel] += samples[channel] }
  }

  /// Encodes the first `count` of the added samples.
  ///
  /// `count` is the block length, or less at the end.
  mutating func encode(_ count: Int) throws(CallFailure) {
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

  /// Removes and returns the finished packets.
  ///
  /// The encoder buffers only a few packets, so this is called after each block. Packets of the
  /// previous file's samples are left out, except those that the decoder needs for the first
  /// sample.
  mutating func readyPackets() throws(CallFailure) -> [Packet] {
    var packets: [Packet] = []
    while let packet = try encoder.nextPacket() {
      if packet.pts.map({ $0 >= -padding }) ?? true { packets.append(packet) }
    }
    return packets
  }

  /// Flushes the encoder, and returns its last packets.
  mutating func flush() throws(CallFailure) -> [Packet] {
    var packets = try readyPackets()
    try encoder.send(nil)
    packets += try readyPackets()
    return packets
  }
}
