// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// Checks whether the presentation times of a track contradict the order in which its decoder
/// returns the frames.
///
/// The order follows from the headers of the packets, without decoding: in H.264 and HEVC from the
/// frame order counts (POC), which restart at each IDR frame, and in MPEG-1, MPEG-2 and MPEG-4
/// Part 2 from the frame types. The result is only a suspicion, which must be confirmed by
/// decoding.
struct DecodeOrderCheck {
  private let parser: PacketParser
  private let parameters: CodecParameters
  /// The order counts and times since the last IDR frame (H.264 and HEVC).
  private var period: [(order: Int, time: Int64)] = []
  /// The time of the last reference frame, which is shown after the B-frames that follow it (MPEG).
  private var waiting: Int64?
  private var last = Int64.min
  private var lastDecodeTime = Int64.min
  private var isSuspicious = false
  private var isComplete = true

  /// Creates a check of a track.
  ///
  /// Returns nil for a track whose frames are decoded in presentation order, and for a codec whose
  /// headers do not show the order.
  init?(_ track: TrackFormat) {
    guard track.kind == .video, track.parameters.isReordered,
      let parser = track.parameters.readsUnits
        ? PacketParser.ofFrameOrder(track.parameters)
        : PacketParser.ofFrameTypes(track.parameters)
    else { return nil }
    self.parser = parser
    parameters = track.parameters
  }

  /// Adds the next packet in decode order.
  mutating func add(_ packet: Packet, _ access: RandomAccess) {
    guard isComplete, let time = packet.pts else {
      isComplete = false
      return
    }
    // A decode time that decreases begins another part of the file, to which an edit list jumps.
    if let decodeTime = packet.dts {
      if decodeTime < lastDecodeTime { endPeriod() }
      lastDecodeTime = decodeTime
    }
    if parameters.readsUnits {
      if access == .independent { endPeriod() }
      period.append((parser.frameOrder(of: packet), time))
    } else if parser.isBidirectional(packet) {
      show(time)
    } else {
      if let waiting { show(waiting) }
      waiting = time
    }
  }

  private mutating func show(_ time: Int64) {
    if time <= last { isSuspicious = true }
    last = time
  }

  private mutating func endPeriod() {
    if let waiting { show(waiting) }
    (waiting, last) = (nil, .min)
    let sorted = period.sorted { $0.order < $1.order }
    period = []
    let pairs = zip(sorted, sorted.dropFirst())
    // Frames with the same order count are fields, or their headers cannot be read. The order of
    // such frames is unknown.
    guard pairs.allSatisfy({ $0.order < $1.order }) else { return }
    if !pairs.allSatisfy({ $0.time < $1.time }) { isSuspicious = true }
  }

  /// Ends the check after the last packet, and returns whether the presentation times seem to
  /// contradict the decoder's order.
  mutating func finish() -> Bool {
    endPeriod()
    return isComplete && isSuspicious
  }
}
