// SPDX-License-Identifier: Apache-2.0

import Algorithms
public import OvercrankMediaCore

/// When each frame of a picture track is shown, in order of presentation.
///
/// Times are in ticks of the track's timescale, counted from the first frame: frame 0 is at 0.
public struct FrameTable: Sendable {
  /// One frame, as the file stores it.
  public struct Entry: Hashable, Sendable {
    /// When it is shown, in ticks from the first frame.
    public let ticks: Int64
    /// How long it is shown, in ticks.
    public internal(set) var duration: Int64
    /// Whether decoding may start here.
    public let isKeyFrame: Bool
    /// Its place in the order of decoding, from 0.
    public let decodeIndex: Int
    /// When it is decoded, in the file's own ticks; nil where the file does not say.
    package let decodeTicks: Int64?
    /// Whether it and all that is decoded after it need no picture before it: an IDR picture in
    /// H.264 and HEVC, and any picture of a codec without prediction in time.
    package let isIndependent: Bool
  }

  /// A packet of the file that shows no frame, because an edit list hides it.
  ///
  /// Frames that are shown may be predicted from it.
  package struct HiddenPacket: Hashable, Sendable {
    /// Its index in the order of decoding, from 0; shown frames and hidden packets share it.
    package let decodeIndex: Int
    /// The number of the frame that is shown next after it; the count of frames behind the last.
    package let nextFrame: Int
    /// When it is decoded, in the file's own ticks; nil where the file does not say.
    package let decodeTicks: Int64?
    /// Whether decoding may start here.
    package let isKeyFrame: Bool
    /// Whether it and all that is decoded after it need no picture before it.
    package let isIndependent: Bool
    /// Whether the edit list jumps to it: what is decoded before it is not what was encoded before.
    package let isJump: Bool
  }

  /// Ticks per second.
  public let timescale: Int32
  /// The frames in order of presentation.
  public private(set) var entries: [Entry]
  /// The packets that show no frame, in order of presentation.
  package let hiddenPackets: [HiddenPacket]
  /// What the file's own ticks say of the first frame.
  package let originTicks: Int64
  /// When each packet's frame is shown, in the file's own ticks and in the order of decoding, where
  /// the packets themselves do not all say so; nil where they do.
  package let madeTicks: [Int64]?
  /// The file's ticks are multiples of this many of ours; 1 in movies of MOV and MP4.
  package let tickFactor: Int64

  /// How far a frame's time may be from the one that was meant, in ticks; at most a quarter of the
  /// shortest frame.
  ///
  /// Zero where all durations are multiples of one: such times were not rounded. Else half a tick,
  /// or a microsecond where a tick is less than two: drivers cut their times off to microseconds,
  /// and a frame's time is the difference of two of these.
  package private(set) var uncertainty = Rational.zero

  /// The end of the last frame, in ticks.
  public var endTicks: Int64 { entries.last.map { $0.ticks + $0.duration } ?? 0 }

  /// The time of a frame; the end for the number after the last.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for a frame that is not there.
  public func time(ofFrame index: Int64) throws(MediaError) -> MediaTime {
    guard index >= 0, index <= entries.count else {
      throw MediaError(
        .outsideSource, "there is no frame \(index) among \(entries.count)",
        recovery: "frames are counted from 0")
    }
    let ticks = index == entries.count ? endTicks : entries[Int(index)].ticks
    return MediaTime(ticks, over: timescale)
  }

  /// The frame that is shown at a time: the last that starts at or before it.
  ///
  /// - Returns: Its index, or nil before the first frame and from the end of the last on.
  public func index(at time: MediaTime) -> Int? {
    guard let ticks = try? time.converted(to: timescale, rounding: .towardNegativeInfinity).value,
      ticks >= 0, ticks < endTicks
    else { return nil }
    return lastIndex(atOrBefore: ticks)
  }

  /// The last frame that starts at or before a number of ticks.
  package func lastIndex(atOrBefore ticks: Int64) -> Int? {
    let next = entries.partitioningIndex { $0.ticks > ticks }
    return next == 0 ? nil : next - 1
  }

  init(
    _ packets: [PacketRecord], timesAreMade: Bool = false, timescale: Int32, tickFactor: Int64,
    statedTicks: Int64?,
    isInFragments: Bool, path: String
  ) throws(MediaError) {
    let shown = packets.enumerated().filter { !$0.element.isDiscarded }
      .sorted { ($0.element.pts, $0.offset) < ($1.element.pts, $1.offset) }
    let origin = shown.first?.element.pts ?? 0
    func ticks(from start: Int64, to end: Int64) throws(MediaError) -> Int64 {
      let (distance, overflow) = end.subtractingReportingOverflow(start)
      let (ticks, scaleOverflow) = distance.multipliedReportingOverflow(by: tickFactor)
      guard !overflow, !scaleOverflow, ticks < Self.largestTicks else {
        throw .invalid(path, "has a frame at the time \(end), which is out of bounds")
      }
      return ticks
    }
    var entries: [Entry] = []
    entries.reserveCapacity(shown.count)
    // The last place in the order of decoding that a frame shown earlier has.
    var decodedLast = -1
    // Also by those that are hidden: where decoding goes on, and the times shown go back.
    var isReordered = zip(packets, packets.dropFirst()).contains { packet, next in
      packet.pts > next.pts && (packet.dts ?? .min) < (next.dts ?? .max)
    }
    for (position, item) in shown.enumerated() {
      let record = item.element
      var duration = max(0, min(record.duration, Self.largestTicks / tickFactor)) * tickFactor
      if position + 1 < shown.count {
        duration = try ticks(from: record.pts, to: shown[position + 1].element.pts)
        guard duration > 0 else {
          throw .invalid(path, "has two frames at the time \(record.pts)")
        }
      }
      isReordered = isReordered || item.offset < decodedLast
      entries.append(
        Entry(
          ticks: try ticks(from: origin, to: record.pts), duration: duration,
          isKeyFrame: record.isKeyFrame, decodeIndex: item.offset, decodeTicks: record.dts,
          isIndependent: record.isIndependent && item.offset > decodedLast))
      decodedLast = max(decodedLast, item.offset)
    }
    self.timescale = timescale
    originTicks = origin
    madeTicks = timesAreMade ? packets.map(\.pts) : nil
    self.tickFactor = tickFactor
    self.entries = entries
    hiddenPackets =
      shown.count == packets.count ? [] : Self.hidden(packets, shown: shown.map(\.offset))
    if let last = entries.last {
      self.entries[entries.count - 1].duration = Self.lastDuration(
        last, before: entries.dropLast().last, usesStated: isReordered || isInFragments,
        statedTicks: statedTicks.map { $0.multipliedReportingOverflow(by: tickFactor) })
    }
    uncertainty = Self.uncertainty(of: self.entries.dropLast().map(\.duration), timescale)
  }

  private static func uncertainty(of durations: [Int64], _ timescale: Int32) -> Rational {
    guard let shortest = durations.min(), durations.contains(where: { $0 % shortest != 0 })
    else { return .zero }
    let microsecond = Rational(Int128(timescale), over: 1_000_000)
    return min(max(Rational(1, over: 2), microsecond), Rational(shortest) / 4)
  }

  /// The same in seconds.
  package var uncertaintyInSeconds: Rational {
    // A tick or less over 32 bits: always fits.
    uncertainty / Rational(Int64(timescale))
  }

  /// Whether frames come evenly, as far as ticks can say that; some may be missing.
  package var isRegular: Bool {
    let durations = entries.dropLast().map(\.duration)
    guard !durations.isEmpty else { return true }
    let median = durations.sorted()[durations.count / 2]
    return durations.allSatisfy { duration in
      let periods = max(1, (duration + median / 2) / median)
      return abs(duration - periods * median) <= periods
    }
  }

  /// The largest time, so that sums and differences of times never overflow.
  private static let largestTicks: Int64 = 1 << 53

  /// The packets that are hidden, each with its place among the frames that are shown.
  ///
  /// - Parameters:
  ///   - packets: All packets in the order of decoding.
  ///   - shown: The indices of those that are shown, in order of presentation.
  /// - Returns: The hidden packets in order of presentation.
  private static func hidden(_ packets: [PacketRecord], shown: [Int]) -> [HiddenPacket] {
    // Where an edit list jumps, the times of what it hides overlap those of the part before or
    // behind it: only inside a part do they tell an order. Each part starts its own decoding
    // times, which otherwise ascend.
    var parts: [Int] = []
    parts.reserveCapacity(packets.count)
    for (index, record) in packets.enumerated() {
      let goesBack = index > 0 && (record.dts ?? .max) <= (packets[index - 1].dts ?? .min)
      parts.append((parts.last ?? 0) + (goesBack ? 1 : 0))
    }
    // The numbers of the first and the last frame shown in each part; where none is, the place
    // is behind the part before.
    var numbers = [Range<Int>?](repeating: nil, count: (parts.last ?? 0) + 1)
    for (number, index) in shown.enumerated() {
      let known = numbers[parts[index]] ?? number..<number
      numbers[parts[index]] = min(known.lowerBound, number)..<number + 1
    }
    var end = 0
    let places = numbers.map { range -> Range<Int> in
      end = max(end, range?.upperBound ?? end)
      return range ?? end..<end
    }
    func number(after pts: Int64, in range: Range<Int>) -> Int {
      range.partitioningIndex { packets[shown[$0]].pts > pts }
    }
    let hidden = packets.enumerated().filter(\.element.isDiscarded).map { index, record in
      HiddenPacket(
        decodeIndex: index, nextFrame: number(after: record.pts, in: places[parts[index]]),
        decodeTicks: record.dts, isKeyFrame: record.isKeyFrame,
        isIndependent: record.isIndependent,
        isJump: index > 0 && parts[index] != parts[index - 1])
    }
    return hidden.sorted { first, second in
      let (one, other) = (packets[first.decodeIndex], packets[second.decodeIndex])
      return (first.nextFrame, parts[first.decodeIndex], one.pts, first.decodeIndex)
        < (second.nextFrame, parts[second.decodeIndex], other.pts, second.decodeIndex)
    }
  }

  /// How long the last frame is shown.
  ///
  /// Where frames are reordered, a movie stores how long decoding takes, which is another frame's
  /// duration, and in fragments libav does not know the last one's; there the track's own length
  /// tells. A file that says nothing is taken to go on as
  /// it did before.
  private static func lastDuration(
    _ last: Entry, before: Entry?, usesStated: Bool,
    statedTicks: (partialValue: Int64, overflow: Bool)?
  ) -> Int64 {
    if usesStated, let stated = statedTicks, !stated.overflow, stated.partialValue > last.ticks,
      stated.partialValue < largestTicks
    {
      return stated.partialValue - last.ticks
    }
    return last.duration > 0 ? last.duration : max(1, before?.duration ?? 1)
  }
}
