// SPDX-License-Identifier: Apache-2.0

/// Corrections of packet times in a file whose clock restarts.
package struct TimeCorrections: Hashable, Sendable {
  /// The packets of a track from one number on.
  package struct Part: Hashable, Sendable {
    /// The number of the first packet among those of the track that ``Demuxer/nextPacket()`` returns.
    package let firstPacket: Int
    /// The ticks to add to the times of the packets.
    package let ticks: Int64

    package init(firstPacket: Int, ticks: Int64) {
      (self.firstPacket, self.ticks) = (firstPacket, ticks)
    }
  }

  /// The parts of each track, in the order of their packets.
  private let parts: [Int: [Part]]

  package init(_ parts: [Int: [Part]]) { self.parts = parts }

  /// Returns the ticks to add to the times of a packet.
  package func ticks(ofPacket number: Int, track: Int) -> Int64 {
    parts[track]?.last { $0.firstPacket <= number }?.ticks ?? 0
  }
}
