// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// Derives the presentation order of a track whose packets lack presentation times.
///
/// AVI stores only decode times, and MPEG program streams omit some times. A decoder returns frames
/// in presentation order, so the track is decoded once to learn this order.
struct PresentationOrder {
  /// The index of each frame's packet, in the order in which the decoder returned the frames.
  ///
  /// Packet indices are in decode order, while the decoder returns frames in presentation order.
  let shown: [Int]

  /// Decodes a track to determine the order of its frames.
  ///
  /// Blocks.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - track: The track.
  ///   - count: The number of packets in the track.
  /// - Throws: `CallFailure` if the file cannot be read or decoded.
  init(_ path: String, _ track: TrackFormat, count: Int) throws(CallFailure) {
    if track.parameters.isIntraOnly {
      shown = Array(0..<count)
      return
    }
    var demuxer = try Demuxer(opening: path)
    var decoder = try Decoder(
      parameters: track.parameters, subject: path, timeBase: track.timeBase)
    decoder.skipPixels()
    var shown: [Int] = []
    shown.reserveCapacity(count)
    var isGiven = [Bool](repeating: false, count: count)
    var sent = 0
    var isAtEnd = false
    while !isAtEnd {
      let packet = try demuxer.nextPacket()
      isAtEnd = packet == nil
      if let packet {
        guard packet.trackIndex == track.index, !packet.isCorrupt else { continue }
        defer { sent += 1 }
        do throws(CallFailure) { try decoder.send(try packet.shown(at: Int64(sent))) } catch {
          // A damaged packet produces no frame.
          guard error.isDamage else { throw error }
        }
      } else {
        try decoder.send(nil)
      }
      while let frame = try Self.next(&decoder) {
        guard let ticks = frame.pts, let index = Int(exactly: ticks),
          isGiven.indices.contains(index), !isGiven[index]
        else { continue }
        isGiven[index] = true
        shown.append(index)
      }
    }
    self.shown = shown
  }

  /// The next frame, or nil at the end.
  ///
  /// Packets that cannot be decoded are skipped.
  private static func next(_ decoder: inout Decoder) throws(CallFailure) -> MediaFrame? {
    while true {
      do throws(CallFailure) { return try decoder.nextFrame() } catch {
        guard error.isDamage else { throw error }
      }
    }
  }

  /// Returns the packets with presentation times.
  ///
  /// Packets for which the decoder returned no frame are marked as hidden.
  ///
  /// - Parameter records: All packets of the track in decode order.
  /// - Returns: The packets. Nil if the known times do not determine the missing ones.
  func timed(_ records: [PacketRecord]) -> [PacketRecord]? {
    guard let ticks = byDecodingTimes(records) ?? byDurations(records),
      zip(shown, shown.dropFirst()).allSatisfy({ ticks[$0] < ticks[$1] })
    else { return nil }
    var timed = records
    for index in timed.indices {
      timed[index].pts = ticks[index]
    }
    let isShown = Set(shown)
    for index in timed.indices where !isShown.contains(index) { timed[index].isDiscarded = true }
    return timed
  }

  /// Derives times from decode times: the nth frame in presentation order gets the nth decode time,
  /// plus a constant offset.
  ///
  /// The offset follows from the packets whose presentation time is known. Returns nil if these
  /// packets give different offsets.
  private func byDecodingTimes(_ records: [PacketRecord]) -> [Int64]? {
    let decoded = records.compactMap(\.dts)
    guard decoded.count == records.count, zip(decoded, decoded.dropFirst()).allSatisfy(<) else {
      return nil
    }
    let order = slots(count: records.count)
    let isShown = Set(shown)
    var distance: Int64?
    for (slot, index) in order.enumerated() {
      guard records[index].isStated, isShown.contains(index) else { continue }
      let (known, overflow) = records[index].pts.subtractingReportingOverflow(decoded[slot])
      guard !overflow, distance == nil || distance == known else { return nil }
      distance = known
    }
    var ticks = [Int64](repeating: 0, count: records.count)
    for (slot, index) in order.enumerated() {
      let (sum, overflow) = decoded[slot].addingReportingOverflow(distance ?? 0)
      guard !overflow else { return nil }
      ticks[index] = sum
    }
    return ticks
  }

  /// The indices of all packets, in presentation order.
  ///
  /// A packet for which the decoder returned no frame keeps its position from decode order.
  private func slots(count: Int) -> [Int] {
    let isShown = Set(shown)
    var rest = shown[...]
    return (0..<count).map { index in
      guard isShown.contains(index) else { return index }
      return rest.popFirst() ?? index
    }
  }

  /// Derives times from packet durations, between frames whose times are known.
  ///
  /// Returns nil if the durations do not add up to the time between two such frames.
  private func byDurations(_ records: [PacketRecord]) -> [Int64]? {
    let anchors = shown.indices.filter { records[shown[$0]].isStated }
    guard let first = anchors.first, let last = anchors.last,
      shown.allSatisfy({ (1..<Int64(1) << 40).contains(records[$0].duration) }),
      anchors.allSatisfy({ records[shown[$0]].pts.magnitude < 1 << 56 })
    else { return nil }
    func duration(_ range: Range<Int>) -> Int64 {
      range.reduce(0) { $0 &+ records[shown[$1]].duration }
    }
    var ticks = [Int64](repeating: 0, count: records.count)
    // The sum of durations may overflow and wrap. The times then decrease, so the caller rejects
    // them.
    var time = records[shown[first]].pts &- duration(0..<first)
    for position in 0..<first {
      ticks[shown[position]] = time
      time &+= records[shown[position]].duration
    }
    for (position, next) in zip(anchors, anchors.dropFirst()) {
      let (start, end) = (records[shown[position]].pts, records[shown[next]].pts)
      let count = Int64(next - position)
      // Each duration may be rounded by one tick, so the sum may be wrong by one tick for each
      // frame.
      guard end > start, (end - start &- duration(position..<next)).magnitude <= count else {
        return nil
      }
      for step in 0..<count {
        let ahead = Int128(end - start) * Int128(step) / Int128(count)
        ticks[shown[position + Int(step)]] = start + Int64(ahead)
      }
    }
    time = records[shown[last]].pts
    for position in last..<shown.count {
      ticks[shown[position]] = time
      time &+= records[shown[position]].duration
    }
    // A packet for which the decoder returned no frame gets the latest time of all frames decoded
    // before it.
    let isShown = Set(shown)
    var latest = ticks[shown[0]] &- 1
    for index in records.indices {
      if isShown.contains(index) {
        latest = max(latest, ticks[index])
      } else {
        ticks[index] = latest
      }
    }
    return ticks
  }
}
