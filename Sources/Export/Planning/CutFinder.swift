// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

/// Finds the positions at which a track can be cut without encoding or hiding frames.
///
/// Such a cut is called free. Playback of a source can start with a free cut at a frame that can be
/// decoded without earlier frames (an IDR frame in H.264 and HEVC). Playback can end with a free
/// cut if no frame before the cut needs a frame after it. This is the case if all frames before the
/// cut are stored before all frames after it. Packets that an edit list hides are included, because
/// frames may need them for decoding.
struct CutFinder {
  /// A packet of the track.
  struct Packet {
    /// The index in decode order.
    let decodeIndex: Int
    /// The index in presentation order, in which hidden packets count, too.
    let position: Int
    /// The index of the frame that the packet contains; nil for a hidden packet.
    let frame: Int?
    /// Whether decoding can start at this packet.
    let isKeyFrame: Bool
    /// Whether neither this packet nor a later one in decode order needs a packet before this one.
    let isIndependent: Bool
    /// Whether the edit list of the source jumps to this packet.
    var isJump = false
  }

  private let table: FrameTable
  private let path: String
  /// All packets in presentation order.
  private let packets: [Packet]
  /// For each packet, in decode order, its index in presentation order.
  private let positions: [Int]
  /// For each position in presentation order, the highest decode index at or before it.
  ///
  /// `firstDecoded` is the lowest decode index at or after the position.
  private let lastDecoded: [Int]
  private let firstDecoded: [Int]

  init(_ table: FrameTable, path: String) {
    self.table = table
    self.path = path
    let packets = Self.packets(of: table)
    self.packets = packets
    var last = -1
    lastDecoded = packets.map {
      last = max(last, $0.decodeIndex)
      return last
    }
    var first = Int.max
    var reversed: [Int] = []
    reversed.reserveCapacity(packets.count)
    for packet in packets.reversed() {
      first = min(first, packet.decodeIndex)
      reversed.append(first)
    }
    firstDecoded = reversed.reversed()
    var positions = [Int](repeating: 0, count: packets.count)
    for packet in packets { positions[packet.decodeIndex] = packet.position }
    self.positions = positions
  }

  /// Returns all packets in presentation order, including hidden ones.
  private static func packets(of table: FrameTable) -> [Packet] {
    var packets: [Packet] = []
    packets.reserveCapacity(table.entries.count + table.hiddenPackets.count)
    var hidden = table.hiddenPackets[...]
    func addHidden(before frame: Int) {
      while let next = hidden.first, next.nextFrame <= frame {
        packets.append(
          Packet(
            decodeIndex: next.decodeIndex, position: packets.count, frame: nil,
            isKeyFrame: next.isKeyFrame, isIndependent: next.isIndependent, isJump: next.isJump))
        hidden.removeFirst()
      }
    }
    for (number, entry) in table.entries.enumerated() {
      addHidden(before: number)
      packets.append(
        Packet(
          decodeIndex: entry.decodeIndex, position: packets.count, frame: number,
          isKeyFrame: entry.isKeyFrame, isIndependent: entry.isIndependent))
    }
    addHidden(before: table.entries.count)
    return packets
  }

  /// Returns the index in presentation order of a frame's packet.
  func position(of frame: Int) -> Int { positions[table.entries[frame].decodeIndex] }

  /// The allowed methods at a cut that needs extra frames for decoding.
  struct Policy {
    /// The greatest number of frames that may be copied for decoding and hidden at the cuts of a
    /// playback run.
    var hidden: Int
    /// The greatest number of frames that may be copied for decoding and hidden before the run.
    var hiddenBefore: Int
    /// Whether frames may be encoded.
    var renders: Bool
    /// The reason why frames cannot be encoded although this was requested, otherwise nil.
    var reason: String?
    /// Whether this is the first run of the movie.
    ///
    /// Frames hidden before the first run get negative times and are never shown.
    var isFirst: Bool
    /// Whether this is the last run of the movie.
    ///
    /// A frame hidden after the last run would be the last frame of the movie and stay on screen.
    var isLast: Bool
  }

  /// The frames of a playback run that are encoded, and the packets that are copied.
  struct Selection {
    /// The frames to encode before the copied packets.
    var head: Range<Int>
    /// The packets to copy, in file order.
    ///
    /// Packets outside the run and packets that the source's edit list hides are included if a
    /// shown frame may need them for decoding.
    var copied: [Packet] = []
    /// The frames to encode after the copied packets.
    var tail: Range<Int>
  }

  /// Selects the frames to encode and the packets to copy for a playback run.
  ///
  /// - Parameters:
  ///   - run: The playback run.
  ///   - frames: The frames that the run shows.
  ///   - policy: The methods allowed at the start and the end of the run.
  /// - Returns: The frames to encode and the packets to copy.
  /// - Throws: `MediaError` with `.cutNotOnKeyFrame` if a cut is not possible (the message names
  ///   the nearest cuts that need no extra frames), or with `.unsupportedSource` if the run is
  ///   reversed and its frames need other frames.
  func select(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, by policy: Policy
  ) throws(MediaError) -> Selection {
    let (first, end) = (frames.lowerBound, frames.upperBound + 1)
    guard !run.isReversed else {
      try checkReverse(run, frames)
      let copied = frames.reversed().map { packets[position(of: $0)] }
      return Selection(head: first..<first, copied: copied, tail: end..<end)
    }
    let low = position(of: first)
    let high = position(of: frames.upperBound) + 1
    var start = first
    var key = low
    // The source's edit list may hide packets before the first and after the last frame. If the run
    // begins or ends there, this is not a cut: the packets are copied and stay hidden.
    let isOwnStart = policy.isFirst && first == 0
    let isOwnEnd = policy.isLast && end == table.entries.count
    if !isFreeStart(at: low) {
      if let found = (0..<low).last(where: isFreeStart(at:)),
        isOwnStart
          || copies(found, low..<high).count(where: { $0.position < low }) <= policy.hiddenBefore
      {
        key = found
      } else {
        guard policy.renders else { throw refusal(run, frames, isStart: true, policy) }
        start = (first + 1..<end).first { isFreeStart(at: position(of: $0)) } ?? end
        key = start < end ? position(of: start) : high
      }
    }
    guard start < end else { return Selection(head: first..<end, tail: end..<end) }
    let copied = copies(key, position(of: start)..<high)
    guard !copied.dropFirst().contains(where: { $0.isJump && !$0.isIndependent }) else {
      throw MediaError(
        .unsupportedSource,
        "the edit list of \(path) jumps to a frame that needs earlier frames",
        recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
    }
    // Frames hidden before the first run get negative times. They take no ticks of the movie, so
    // they are not counted.
    let hidden = copied.count {
      $0.position < low && !policy.isFirst || $0.position >= high
    }
    // A frame hidden at the end of the movie would stay on screen as its last frame, so the end of
    // the last run is encoded if encoding is possible.
    if isOwnEnd || isFreeEnd(end) || hidden <= policy.hidden && !(policy.isLast && policy.renders) {
      return Selection(head: first..<start, copied: copied, tail: end..<end)
    }
    guard policy.renders else { throw refusal(run, frames, isStart: false, policy) }
    guard let free = (start + 1..<end).last(where: isFreeEnd) else {
      return Selection(head: first..<end, tail: end..<end)
    }
    return Selection(
      head: first..<start, copied: copies(key, position(of: start)..<position(of: free - 1) + 1),
      tail: free..<end)
  }

  /// Returns the packets that are needed to decode a range of positions, in decode order.
  ///
  /// Decoding starts at the position `key`, where no earlier packet is needed.
  ///
  /// All packets from there to the end of the range are included, because a shown frame may need
  /// any of them.
  private func copies(_ key: Int, _ range: Range<Int>) -> [Packet] {
    let last = packets[range].lazy.filter { $0.frame != nil }.map(\.decodeIndex).max()
    let first = firstDecoded[key]
    guard let last, first <= last else { return [] }
    return positions[first...last].map { packets[$0] }
  }

  private func checkReverse(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>
  ) throws(MediaError) {
    guard frames.allSatisfy({ table.entries[$0].isIndependent }) else {
      throw MediaError(
        .unsupportedSource,
        "\(path) plays backwards from \(run.end.displayText) to \(run.start.displayText) s, and its "
          + "frames need earlier frames",
        recovery: Recovery(
          "render it at a constant frame rate; only images that stand alone (MJPEG, FFV1) are copied",
          .change(.outputFrameRate)))
    }
  }

  private func isFreeStart(at position: Int) -> Bool {
    // If the first packet of the file is shown at or after this position, decoding starts at the
    // beginning of the file. No earlier packet can then be missing.
    packets[position].isIndependent || firstDecoded[position] == 0
  }

  /// Returns true if the frames before `index` can be decoded without the frame at `index` and all
  /// later ones, and false otherwise.
  private func isFreeEnd(_ index: Int) -> Bool {
    guard index > 0 else { return true }
    let next = position(of: index - 1) + 1
    return next == packets.count || lastDecoded[next - 1] < firstDecoded[next]
  }

  /// The number of frames in the source.
  var frameCount: Int { table.entries.count }

  /// Groups packets in file order into ranges of consecutive packets of the source.
  func copies(_ packets: [Packet]) -> [ExportReport.Copy] {
    var copies: [ExportReport.Copy] = []
    for index in packets.lazy.map({ Int64($0.decodeIndex) }) {
      if let last = copies.last, last.firstPacket + last.packetCount == index {
        copies[copies.count - 1].packetCount += 1
      } else {
        copies.append(ExportReport.Copy(path: path, firstPacket: index, packetCount: 1))
      }
    }
    return copies
  }

  /// Returns the nearest cuts that need no extra frames: one at or before a frame, and one after
  /// that frame.
  ///
  /// If the frame ends a range, only cuts after the range's first frame are considered.
  func freeCuts(
    isStart: Bool, around index: Int, first: Int
  ) -> (before: MediaTime?, after: MediaTime?) {
    let count = table.entries.count
    func isFree(_ index: Int) -> Bool {
      if isStart { return index < count && isFreeStart(at: position(of: index)) }
      // No frame comes after the end of the source, so a cut there never needs extra frames.
      return index > first && (index >= count || isFreeEnd(index))
    }
    let before = (0...index).reversed().first(where: isFree)
    let after = ((index + 1)..<max(index + 1, count + 1)).first(where: isFree)
    func time(_ index: Int?) -> MediaTime? {
      index.flatMap { try? table.time(ofFrame: Int64($0)) }
    }
    return (time(before), time(after))
  }

  /// Creates the error for a cut that needs extra frames for decoding.
  ///
  /// The message of the error names the nearest cuts that need no extra frames.
  private func refusal(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, isStart: Bool, _ policy: Policy
  ) -> MediaError {
    let cuts = freeCuts(
      isStart: isStart, around: isStart ? frames.lowerBound : frames.upperBound + 1,
      first: frames.lowerBound)
    let free = [cuts.before, cuts.after].compactMap { $0?.exactDisplayText }
    let why =
      isStart
      ? "no frame can be decoded on its own" : "frames need later frames that would be missing"
    return MediaError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(isStart ? "starts" : "ends") at "
        + "\((isStart ? run.start : run.end).displayText) s, where \(why)"
        + (policy.reason.map { "; \($0)" } ?? ""),
      recovery: free.isEmpty
        ? Recovery("render it at a constant frame rate", .change(.outputFrameRate))
        : Recovery(
          "cut at \(free.joined(separator: " or ")), or render it at a constant frame rate",
          .change(.outputFrameRate)))
  }
}
