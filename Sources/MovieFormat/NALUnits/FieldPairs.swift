// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Joins the two fields of an interlaced H.264 frame that a container stores as two packets.
///
/// MPEG transport streams (AVCHD) store fields in this way, but a decoder returns one frame for
/// both fields (complementary field pairs, Rec. ITU-T H.264, 3.30).
package struct FieldPairs<Packet> {
  /// The role of a packet in the pairing of fields.
  package enum Content {
    /// A packet of another track.
    case otherTrack
    /// A complete frame of the track.
    case frame
    /// A field that may be the first of a frame.
    case firstField
    /// A field that completes the field before it, which has the other parity and the same
    /// `frame_num`.
    case secondField
  }

  /// A first field that waits for its second field.
  private var first: Packet?
  /// Packets of other tracks that arrived while a first field was waiting.
  private var others: [Packet] = []
  /// Packets that are ready for output, in order.
  private var ready: Deque<Packet> = []

  package init() {}

  /// Returns the next output packet, or nil if more packets must be appended first.
  package mutating func next() -> Packet? { ready.popFirst() }

  /// Adds the next packet from the container.
  ///
  /// - Parameters:
  ///   - packet: The packet.
  ///   - content: The role of the packet.
  ///   - join: Joins a first and a second field into one packet.
  /// - Throws: The error of `join`.
  package mutating func append<Failure: Error>(
    _ packet: Packet, _ content: Content,
    joining join: (Packet, Packet) throws(Failure) -> Packet
  ) throws(Failure) {
    if content == .otherTrack {
      if first == nil { ready.append(packet) } else { others.append(packet) }
      return
    }
    if let waiting = first {
      first = nil
      if content == .secondField {
        ready.append(try join(waiting, packet))
        releaseOthers()
        return
      }
      ready.append(waiting)
      releaseOthers()
    }
    if content == .frame { ready.append(packet) } else { first = packet }
  }

  /// Moves the waiting packets to the output, at the end of the file.
  package mutating func finish() {
    if let first { ready.append(first) }
    first = nil
    releaseOthers()
  }

  /// Discards the waiting packets before a seek.
  package mutating func reset() { (first, others, ready) = (nil, [], []) }

  private mutating func releaseOthers() {
    ready += others
    others = []
  }
}
