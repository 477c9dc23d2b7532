// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The positions at which the clock of a file restarts.
///
/// A clock restarts where recordings were concatenated byte by byte.
///
/// The times are corrected so that the recordings play one after the other. All tracks of a
/// recording are moved by the same time, so audio and video stay synchronized.
package struct ClockRestarts {
  /// The position of a packet in the sequence of packets in the file.
  package struct Position: Sendable {
    /// The number of the packet among the packets of its track.
    let number: Int
    /// The number of the packet among all packets of the file.
    let order: Int

    package init(number: Int, order: Int) { (self.number, self.order) = (number, order) }
  }

  /// Counts packets in the order of the file.
  package struct Positions {
    private var order = 0
    private var counts: [Int: Int] = [:]

    package init() {}

    /// Counts the next packet, and returns its position.
    package mutating func next(track: Int) -> Position {
      defer {
        order += 1
        counts[track, default: 0] += 1
      }
      return Position(number: counts[track, default: 0], order: order)
    }
  }

  /// A track, with its packets in decode order and the positions of these packets.
  package struct Track {
    package let format: TrackFormat
    package fileprivate(set) var packets: [PacketRecord]
    fileprivate let positions: [Position]

    package init(format: TrackFormat, packets: [PacketRecord], positions: [Position]) {
      (self.format, self.packets, self.positions) = (format, packets, positions)
    }
  }

  /// A packet whose time does not follow from the packet before.
  private struct Boundary {
    /// The index of the track in ``tracks``.
    let track: Int
    let index: Int
    let order: Int
    /// The start of the packet that the file states, in seconds.
    let time: Rational
    /// The difference between the stated start of the packet and the start that follows from the
    /// packet before, in seconds.
    let jump: Rational
  }

  /// The tracks with corrected times.
  package private(set) var tracks: [Track]
  /// The corrections of packet times for other readers of the file.
  package let corrections: TimeCorrections
  /// The corrected start of each concatenated recording but the first, in seconds on the file's
  /// time axis.
  package let times: [Rational]
  /// Whether the clock goes back in some tracks while it continues in others.
  package let isInconsistent: Bool

  /// The greatest difference in seconds between the jumps of tracks at the same restart.
  private static let tolerance = Rational.one
  /// The least backward jump in seconds that cannot come from rounding or reordering.
  private static let leastStepBack = Rational(1, over: 5)
  /// The least forward jump in seconds that counts as a restart even if no key frame follows it.
  private static let greatestGap = Rational(10)

  /// Finds the restarts.
  ///
  /// Returns nil if the clock never restarts.
  ///
  /// - Parameters:
  ///   - tracks: The video and audio tracks.
  ///   - container: libavformat's name of the container. In transport and program streams, a long
  ///     forward jump counts as a restart. In other containers, it is a gap in the recording.
  package init?(_ tracks: [Track], in container: String) {
    let hasGaps = container == "mpegts" || container == "mpeg"
    let found = tracks.indices
      .flatMap { Self.boundaries(of: tracks[$0], $0, hasGaps: hasGaps) }
      .sorted { $0.order < $1.order }
    guard !found.isEmpty else { return nil }
    var joints: [[Boundary]] = []
    for boundary in found {
      if let joint = joints.last, !joint.contains(where: { $0.track == boundary.track }),
        (joint[0].jump - boundary.jump).magnitude <= Self.tolerance
      {
        joints[joints.count - 1].append(boundary)
      } else {
        joints.append([boundary])
      }
    }
    let refused = joints.indices.filter { number in
      let next = number + 1 < joints.count ? joints[number + 1][0].order : .max
      return Self.isContradicted(joints[number], by: tracks, upTo: next)
    }
    isInconsistent = refused.contains { joints[$0][0].jump < .zero }
    let kept = joints.indices.filter { !refused.contains($0) }.map { joints[$0] }
    guard !kept.isEmpty || isInconsistent else { return nil }
    var corrected = tracks
    var starts = [Int](repeating: 0, count: tracks.count)
    var parts: [Int: [TimeCorrections.Part]] = [:]
    var times: [Rational] = []
    for (number, joint) in kept.enumerated() {
      // The packets of the track from the restart `joint` to the next one.
      func part(_ boundary: Boundary) -> Range<Int> {
        let next = kept[(number + 1)...].lazy.flatMap { $0 }.first { $0.track == boundary.track }
        return boundary.index..<(next?.index ?? tracks[boundary.track].packets.count)
      }
      let offset =
        joint.map { boundary in
          corrected[boundary.track].end(of: starts[boundary.track]..<boundary.index)
            - tracks[boundary.track].start(of: part(boundary))
        }.max() ?? .zero
      for boundary in joint {
        let track = tracks[boundary.track]
        let exact = try? (offset / track.format.timeBase).rounded(.towardPositiveInfinity)
        let ticks = exact.flatMap { Int64(exactly: $0) } ?? 0
        for index in part(boundary) { corrected[boundary.track].packets[index].move(by: ticks) }
        starts[boundary.track] = boundary.index
        parts[track.format.index, default: []].append(
          TimeCorrections.Part(
            firstPacket: track.positions[boundary.index].number, ticks: ticks))
      }
      if let first = joint.min(by: { $0.track < $1.track }) {
        times.append(corrected[first.track].start(of: part(first)))
      }
    }
    self.tracks = corrected
    self.times = times
    corrections = TimeCorrections(parts)
  }

  /// Reads all packets of a file to find the restarts; nil if its clock never restarts.
  ///
  /// Blocks. A MOV or MP4 file is not read: its times are sums of durations, so they never go back.
  ///
  /// - Throws: `CallFailure` if the file cannot be read.
  package init?(reading path: String) throws(CallFailure) {
    var demuxer = try Demuxer(opening: path)
    guard !demuxer.isMOV else { return nil }
    var counter = Positions()
    var packets: [Int: [PacketRecord]] = [:]
    var positions: [Int: [Position]] = [:]
    let tracks = demuxer.tracks.filter { $0.kind != .other }
    let formats = Dictionary(uniqueKeysWithValues: tracks.map { ($0.index, $0) })
    while let packet = try demuxer.nextPacket() {
      let position = counter.next(track: packet.trackIndex)
      guard !packet.isCorrupt, let format = formats[packet.trackIndex] else { continue }
      let access = packet.isKeyFrame ? packet.randomAccess(format.parameters) : .none
      guard let record = PacketRecord(packet, of: format, access) else { continue }
      packets[packet.trackIndex, default: []].append(record)
      positions[packet.trackIndex, default: []].append(position)
    }
    self.init(
      tracks.map {
        Track(
          format: $0, packets: packets[$0.index] ?? [], positions: positions[$0.index] ?? [])
      }, in: demuxer.containerName)
  }

  /// The message for a file whose clock restarts in some tracks while others go on.
  package static func refusal(of path: String) -> String {
    "the clock of \(path) restarts in some of its tracks, while others go on"
  }

  package static let recovery: Recovery =
    "split the file where the recordings were joined, with another program"

  private static func boundaries(of track: Track, _ number: Int, hasGaps: Bool) -> [Boundary] {
    func ticks(_ seconds: Rational) -> Int64 {
      let exact = try? (seconds / track.format.timeBase).rounded(.towardPositiveInfinity)
      return exact.flatMap { Int64(exactly: $0) } ?? .max
    }
    let (back, gap, longest) = (ticks(leastStepBack), ticks(tolerance), ticks(greatestGap))
    var result: [Boundary] = []
    var last: (time: Int64, interval: Int64)?
    for (index, packet) in track.packets.enumerated() where packet.isTimed {
      let time = packet.dts ?? packet.pts
      let interval = last.map { time &- $0.time } ?? 0
      var isRestart = false
      if let last {
        let length = packet.duration > 0 ? packet.duration : last.interval
        isRestart = interval < -back
        if hasGaps, interval > gap {
          let isLong =
            track.format.kind == .audio || packet.isKeyFrame && interval / 10 > max(1, length)
          isRestart = interval > longest || isLong
        }
        if isRestart {
          result.append(
            Boundary(
              track: number, index: index, order: track.positions[index].order,
              time: Rational(time) * track.format.timeBase,
              jump: Rational(interval &- length) * track.format.timeBase))
        }
      }
      last = (time, isRestart || interval <= 0 ? last?.interval ?? 0 : interval)
    }
    return result
  }

  /// Returns true if another track continues with the old clock, so that this is no restart.
  private static func isContradicted(
    _ joint: [Boundary], by tracks: [Track], upTo next: Int
  ) -> Bool {
    let order = joint.map(\.order).max() ?? 0
    return tracks.indices.contains { number in
      guard !joint.contains(where: { $0.track == number }) else { return false }
      let track = tracks[number]
      // If another track has packets in the time that the jump skips, the clock did not restart.
      let gap = (joint[0].time - joint[0].jump + leastStepBack, joint[0].time - leastStepBack)
      if gap.0 < gap.1,
        track.packets.contains(where: {
          let time = Rational($0.pts) * track.format.timeBase
          return gap.0 < time && time < gap.1
        })
      {
        return true
      }
      let indices = track.positions.indices.filter {
        order < track.positions[$0].order && track.positions[$0].order < next
      }
      guard let first = indices.first, let last = indices.last else { return false }
      return track.end(of: first..<last + 1) - track.start(of: first..<last + 1) > tolerance
    }
  }
}

extension ClockRestarts.Track {
  /// The earliest start of a range of packets, in seconds.
  fileprivate func start(of range: Range<Int>) -> Rational {
    Rational(packets[range].lazy.map(\.pts).min() ?? 0) * format.timeBase
  }

  /// The latest end of a range of packets, in seconds.
  fileprivate func end(of range: Range<Int>) -> Rational {
    let last = packets[range].suffix(2).map { $0.dts ?? $0.pts }
    let interval = last.count == 2 ? max(0, last[1] &- last[0]) : 0
    let end = packets[range].lazy.map { $0.pts &+ ($0.duration > 0 ? $0.duration : interval) }.max()
    return Rational(end ?? 0) * format.timeBase
  }
}

extension PacketRecord {
  /// Whether the record has a presentation time or a decode time.
  fileprivate var isTimed: Bool { dts != nil || isStated }

  fileprivate mutating func move(by ticks: Int64) {
    pts = pts &+ ticks
    dts = dts.map { $0 &+ ticks }
  }
}

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
