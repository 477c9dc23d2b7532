// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// Encodes rendered audio in blocks of the encoder's frame size.
///
/// Long silence, for example in muted segments, is not encoded. After a few silent blocks, the
/// encoder returns the same packet for each further silent block, so that packet is repeated
/// instead.
struct AudioBlockEncoder: ~Copyable {
  private var encoder: Encoder
  /// The number of samples per channel in a block.
  let blockLength: Int
  /// The number of blocks that the encoder received; a repeated packet is not counted.
  private(set) var encodedCount = 0
  private let put: (AudioExport.TimedPacket) -> Void
  private var pending: [[Float]]
  /// The number of samples per channel that were encoded or skipped so far.
  private var position: Int64 = 0
  /// The number of samples per channel for which a packet was repeated.
  ///
  /// The encoder did not receive these samples, so the times of its packets are too early by this
  /// number.
  private var repeatedLength: Int64 = 0
  /// The number of consecutive silent blocks up to now.
  private var silentCount = 0
  /// The number of consecutive packets up to now that equal the packet before them.
  private var equalCount = 0
  /// The last packet of the encoder.
  ///
  /// A packet lasts until the next one starts, so each packet is held back until the next one
  /// arrives.
  private var last: (packet: Packet, pts: Int64)?

  /// The number of consecutive silent blocks, and of consecutive equal packets, after which the
  /// last packet is repeated.
  ///
  /// An encoder delays audio by one or two blocks and looks back at one block.
  private static let settlingCount = 8

  /// Creates a block encoder.
  ///
  /// It passes each finished packet to `put`.
  init(
    _ encoder: consuming Encoder, channelCount: Int,
    put: @escaping (AudioExport.TimedPacket) -> Void
  ) {
    blockLength = encoder.frameSize > 0 ? encoder.frameSize : 4_096
    self.encoder = encoder
    self.put = put
    pending = Array(repeating: [], count: channelCount)
  }

  /// Encodes samples, which are one array for each channel.
  ///
  /// Samples that do not fill a block wait for the next call.
  mutating func append(_ samples: [[Float]]) throws {
    for channel in pending.indices { pending[channel] += samples[channel] }
    var start = 0
    while let count = pending.first?.count, count - start >= blockLength {
      try encode(start..<start + blockLength)
      start += blockLength
    }
    for channel in pending.indices { pending[channel].removeFirst(start) }
  }

  /// Encodes the waiting samples, and ends the last packet at the sample `end`.
  ///
  /// The encoder pads the last AAC block with silence. The duration of the last packet is therefore
  /// cut to the real end of the audio, so that players do not play the padding.
  mutating func finish(at end: Int64) throws {
    if let rest = pending.first?.count, rest > 0 { try encode(0..<rest) }
    try encoder.send(nil)
    while let packet = try encoder.nextPacket() { take(packet) }
    emit(nil, at: end)
  }

  private mutating func encode(_ range: Range<Int>) throws {
    let isSilent = pending.allSatisfy { $0[range].allSatisfy { $0 == 0 } }
    (silentCount, equalCount) = isSilent ? (silentCount + 1, equalCount) : (0, 0)
    let isSettled = silentCount > Self.settlingCount && equalCount >= Self.settlingCount
    if isSettled, range.count == blockLength, let last {
      position += Int64(range.count)
      repeatedLength += Int64(range.count)
      emit(last.packet, at: last.pts + Int64(range.count))
      return
    }
    let block = pending.map { Array($0[range]) }
    try encoder.send(audio: block, at: position - repeatedLength)
    position += Int64(range.count)
    encodedCount += 1
    while let packet = try encoder.nextPacket() { take(packet) }
  }

  /// Processes a packet that the encoder returned.
  ///
  /// A packet without a time belongs to no samples, so it is left out.
  private mutating func take(_ packet: Packet) {
    guard let pts = packet.pts else { return }
    let isEqual = last.map { $0.packet.hasBytes(of: packet) } ?? false
    equalCount = isEqual && silentCount > 0 ? equalCount + 1 : 0
    emit(packet, at: pts + repeatedLength)
  }

  /// Passes on the packet that was held back, and holds back the new packet.
  ///
  /// Nil instead of a new packet ends the audio.
  private mutating func emit(_ packet: Packet?, at pts: Int64) {
    if let last {
      let length = max(1, pts - last.pts)
      put(AudioExport.TimedPacket(packet: last.packet, pts: last.pts, duration: length))
    }
    last = packet.map { ($0, pts) }
  }
}

extension Packet {
  /// Whether this packet has the same bytes as another one.
  fileprivate func hasBytes(of other: Packet) -> Bool {
    guard byteCount == other.byteCount else { return false }
    return withBytes { bytes in other.withBytes { bytes.elementsEqual($0) } }
  }
}
