// SPDX-License-Identifier: Apache-2.0

/// Corrections of packet times in a file whose clock restarts.
package struct TimeCorrections: Hashable, Sendable {
  /// The correction of a track's packets, beginning at one packet.
  package struct Part: Hashable, Sendable {
    /// The number of the first corrected packet, in the order in which ``Demuxer/nextPacket()``
    /// returns the track's packets.
    package let firstPacket: Int
    /// The ticks to add to the times of the packets from ``firstPacket``.
    package let ticks: Int64

    package init(firstPacket: Int, ticks: Int64) {
      (self.firstPacket, self.ticks) = (firstPacket, ticks)
    }
  }

  /// The corrections of each track, in the order of their packets.
  private let parts: [Int: [Part]]

  package init(_ parts: [Int: [Part]]) { self.parts = parts }

  /// Returns the ticks to add to the times of a packet of a track.
  package func ticks(ofPacket number: Int, track: Int) -> Int64 {
    parts[track]?.last { $0.firstPacket <= number }?.ticks ?? 0
  }
}
