// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

/// Tells where a track can be cut without re-encoding it.
///
/// A range may start where a picture needs none before it (an IDR picture in H.264 and HEVC), and
/// end where no picture that is kept needs a later one, which are stored before those that they
/// help to predict. Packets that an edit list hides count as well: pictures may need them.
struct CutFinder {
  /// A packet of the track.
  struct Packet {
    /// Its index in the order of decoding.
    let decodeIndex: Int
    /// Its index in the order of presentation, in which hidden packets count too.
    let position: Int
    /// The number of the frame that it shows; nil where the source hides it.
    let frame: Int?
    /// Whether decoding may start here.
    let isKeyFrame: Bool
    /// Whether it and all that is decoded after it need no picture before it.
    let isIndependent: Bool
    /// Whether an edit list of the source jumps to it.
    var isJump = false
  }

  private let table: FrameTable
  private let path: String
  /// All packets in order of presentation.
  private let packets: [Packet]
  /// The position of the packet at each index in the order of decoding.
  private let positions: [Int]
  /// For each packet the last index in the order of decoding up to it, and the first from it on.
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

  /// The packets of a track in order of presentation: those that show frames, and those hidden
  /// between them.
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

  /// The position of a frame's packet.
  func position(of frame: Int) -> Int { positions[table.entries[frame].decodeIndex] }

  /// What may be done where a run cannot simply be cut.
  struct Means {
    /// How many other frames may be copied along and hidden.
    var hidden: Int
    /// How many of them before the run.
    var hiddenBefore: Int
    /// Whether frames may be encoded.
    var renders: Bool
    /// Why they may not, where that was asked for.
    var reason: String?
    /// Whether nothing comes before, so that what is hidden lies at negative times.
    var isFirst: Bool
    /// Whether nothing follows, so that what is hidden after it would be seen last.
    var isLast: Bool
  }

  /// How the frames of a run get into the file, by their numbers.
  struct Selection {
    /// Frames to encode, before those that are copied.
    var head: Range<Int>
    /// Packets to copy, in the order in which they are written.
    ///
    /// Those outside the run are hidden, and those that the source hides: others need them.
    var copied: [Packet] = []
    /// Frames to encode, after those that are copied.
    var tail: Range<Int>
  }

  /// The frames to write for those of a run.
  ///
  /// - Parameters:
  ///   - run: What is played.
  ///   - frames: The frames that it shows.
  ///   - means: What may be done at its ends.
  /// - Returns: The frames.
  /// - Throws: `MediaError` with `.cutNotOnKeyFrame`, which names the nearest free cuts, or
  ///   `.unsupportedSource` for what plays backwards and needs other pictures.
  func select(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, by means: Means
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
    // What the source hides at its own ends is hidden again: nobody asked for a cut there.
    let isOwnStart = means.isFirst && first == 0
    let isOwnEnd = means.isLast && end == table.entries.count
    if !isFreeStart(at: low) {
      if let found = (0..<low).last(where: isFreeStart(at:)),
        isOwnStart
          || copies(found, low..<high).count(where: { $0.position < low }) <= means.hiddenBefore
      {
        key = found
      } else {
        guard means.renders else { throw refusal(run, frames, isStart: true, means) }
        start = (first + 1..<end).first { isFreeStart(at: position(of: $0)) } ?? end
        key = start < end ? position(of: start) : high
      }
    }
    guard start < end else { return Selection(head: first..<end, tail: end..<end) }
    let copied = copies(key, position(of: start)..<high)
    guard !copied.dropFirst().contains(where: { $0.isJump && !$0.isIndependent }) else {
      throw MediaError(
        .unsupportedSource,
        "the edit list of \(path) jumps to a picture that needs others before it",
        recovery: Recovery("render it at a constant frame rate", .change(.outputFrameRate)))
    }
    // Negative times take no room.
    let hidden = copied.count {
      $0.position < low && !means.isFirst || $0.position >= high
    }
    // At the very end a hidden frame would be the last that is seen, if only for a tick: not
    // where the end can be encoded instead.
    if isOwnEnd || isFreeEnd(end) || hidden <= means.hidden && !(means.isLast && means.renders) {
      return Selection(head: first..<start, copied: copied, tail: end..<end)
    }
    guard means.renders else { throw refusal(run, frames, isStart: false, means) }
    guard let free = (start + 1..<end).last(where: isFreeEnd) else {
      return Selection(head: first..<end, tail: end..<end)
    }
    return Selection(
      head: first..<start, copied: copies(key, position(of: start)..<position(of: free - 1) + 1),
      tail: free..<end)
  }

  /// The packets that a decoder must be given for those at some positions, from a free start on,
  /// in order of decoding.
  ///
  /// None is left out in between, so that none that a shown frame may refer to is missing.
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
          + "pictures need those before them",
        recovery: Recovery(
          "render it at a constant frame rate; only images that stand alone (MJPEG, FFV1) are copied",
          .change(.outputFrameRate)))
    }
  }

  private func isFreeStart(at position: Int) -> Bool {
    // With nothing before it in the file, a track starts as it always did.
    packets[position].isIndependent || firstDecoded[position] == 0
  }

  /// Whether the frames before this one can do without it and those after it.
  private func isFreeEnd(_ index: Int) -> Bool {
    guard index > 0 else { return true }
    let next = position(of: index - 1) + 1
    return next == packets.count || lastDecoded[next - 1] < firstDecoded[next]
  }

  /// How many frames the source has.
  var frameCount: Int { table.entries.count }

  /// Packets as runs of neighbours in the order in which they are written.
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

  /// The times of the nearest free cuts at or before a frame, and after it: to start there, or to
  /// end what started at the frame `first`.
  func freeCuts(
    isStart: Bool, around index: Int, first: Int
  ) -> (before: MediaTime?, after: MediaTime?) {
    let count = table.entries.count
    func isFree(_ index: Int) -> Bool {
      if isStart { return index < count && isFreeStart(at: position(of: index)) }
      // The source's own end is no cut.
      return index > first && (index >= count || isFreeEnd(index))
    }
    let before = (0...index).reversed().first(where: isFree)
    let after = ((index + 1)..<max(index + 1, count + 1)).first(where: isFree)
    func time(_ index: Int?) -> MediaTime? {
      index.flatMap { try? table.time(ofFrame: Int64($0)) }
    }
    return (time(before), time(after))
  }

  /// Why a cut is not free, and where the nearest ones are that are.
  private func refusal(
    _ run: PlaybackRun, _ frames: ClosedRange<Int>, isStart: Bool, _ means: Means
  ) -> MediaError {
    let cuts = freeCuts(
      isStart: isStart, around: isStart ? frames.lowerBound : frames.upperBound + 1,
      first: frames.lowerBound)
    let free = [cuts.before, cuts.after].compactMap { $0?.exactDisplayText }
    let why =
      isStart
      ? "no picture can be decoded by itself" : "pictures need later ones that would be missing"
    return MediaError(
      .cutNotOnKeyFrame,
      "a part of \(path) \(isStart ? "starts" : "ends") at "
        + "\((isStart ? run.start : run.end).displayText) s, where \(why)"
        + (means.reason.map { "; \($0)" } ?? ""),
      recovery: free.isEmpty
        ? Recovery("render it at a constant frame rate", .change(.outputFrameRate))
        : Recovery(
          "cut at \(free.joined(separator: " or ")), or render it at a constant frame rate",
          .change(.outputFrameRate)))
  }
}
