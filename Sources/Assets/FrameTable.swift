// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankLibAV
public import OvercrankMediaCore

/// The presentation times of a video track's frames, in presentation order.
///
/// Times are in ticks of the track's timescale. The first frame is at tick 0.
public struct FrameTable: Sendable {
  /// A frame of the track.
  public struct Entry: Hashable, Sendable {
    /// The presentation time of the frame, in ticks after the first frame.
    public let ticks: Int64
    /// The duration of the frame in ticks.
    public internal(set) var duration: Int64
    /// Whether decoding can start at this frame.
    public let isKeyFrame: Bool
    /// The index of the frame in decode order, from 0.
    public let decodeIndex: Int
    /// The decode time in the file's ticks, or nil if the file does not contain it.
    package let decodeTicks: Int64?
    /// Whether this frame and all frames decoded after it can be decoded without any earlier frame.
    ///
    /// True for an IDR picture in H.264 and HEVC, and for any frame of an intra-only codec.
    package let isIndependent: Bool
  }

  /// A packet whose frame is hidden by an edit list.
  ///
  /// Shown frames may reference the hidden frame.
  package struct HiddenPacket: Hashable, Sendable {
    /// The index in decode order, from 0, in which shown frames are counted, too.
    package let decodeIndex: Int
    /// The index of the next shown frame.
    ///
    /// If no shown frame follows, this is the number of frames.
    package let nextFrame: Int
    /// The decode time in the file's ticks, or nil if the file does not contain it.
    package let decodeTicks: Int64?
    /// Whether decoding can start at this packet.
    package let isKeyFrame: Bool
    /// Whether this packet and all packets decoded after it can be decoded without any earlier
    /// packet.
    package let isIndependent: Bool
    /// Whether an edit list jumps to this packet.
    ///
    /// The packet before it then belongs to another entry of the edit list, and was not encoded
    /// directly before it.
    package let isJump: Bool
  }

  /// The number of ticks per second for the times of the frames.
  public let timescale: Int32
  /// The frames of the track in presentation order.
  public private(set) var entries: [Entry]
  /// The hidden packets in presentation order.
  package let hiddenPackets: [HiddenPacket]
  /// The number of frames whose time in the file was replaced because it contradicted the order of
  /// the frames.
  ///
  /// In the file, such a frame has the same time as another frame, or a time that is not between
  /// those of its neighbors.
  public let correctedTimeCount: Int
  /// The number of time units in one tick of the file.
  ///
  /// ``originTicks`` and ``madeTicks`` are in these units.
  ///
  /// The number is 1 unless corrected times need fractions of ticks.
  package let refinement: Int64
  /// The time of the first frame, in units of 1 / ``refinement`` tick of the file.
  package let originTicks: Int64
  /// The derived presentation times of all packets in decode order, in the units of
  /// ``originTicks``.
  ///
  /// They are derived from decode times, durations or neighboring frames.
  ///
  /// Nil if the file contains the presentation times of all packets.
  package let madeTicks: [Int64]?
  /// The number of this table's ticks in one unit of ``originTicks``.
  ///
  /// The number is 1 for MOV and MP4.
  package let tickFactor: Int64

  /// The greatest rounding error of a frame time, in ticks.
  ///
  /// It is at most a quarter of the shortest frame duration.
  ///
  /// If all durations are multiples of one duration, the times were not rounded, so the error is
  /// zero. Otherwise it is half a tick or one microsecond, whichever is greater. The microsecond
  /// allows for drivers, which truncate timestamps to microseconds.
  package private(set) var uncertainty = Rational.zero

  /// The end of the track's last frame, in ticks.
  public var endTicks: Int64 { entries.last.map { $0.ticks + $0.duration } ?? 0 }

  /// The time of a frame.
  ///
  /// For the index after the last frame, this is the end of the track.
  ///
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range.
  public func time(ofFrame index: Int64) throws(MediaError) -> MediaTime {
    guard index >= 0, index <= entries.count else {
      throw MediaError(
        .outsideSource, "frame \(index) is outside the \(entries.count) frames",
        recovery: "count frames from 0")
    }
    let ticks = index == entries.count ? endTicks : entries[Int(index)].ticks
    return MediaTime(ticks, over: timescale)
  }

  /// The index of the frame shown at a time: the last frame that starts at or before this time.
  ///
  /// - Returns: The index, or nil before the first frame and at or after the end.
  public func index(at time: MediaTime) -> Int? {
    guard let ticks = try? time.converted(to: timescale, rounding: .towardNegativeInfinity).value,
      ticks >= 0, ticks < endTicks
    else { return nil }
    return lastIndex(atOrBefore: ticks)
  }

  /// The index of the last frame that starts at or before a time in ticks.
  package func lastIndex(atOrBefore ticks: Int64) -> Int? {
    let next = entries.partitioningIndex { $0.ticks > ticks }
    return next == 0 ? nil : next - 1
  }

  /// Returns the index of the last key frame at or before a frame; nil if there is none.
  package func keyFrame(atOrBefore index: Int) -> Int? {
    entries[...index].lastIndex(where: \.isKeyFrame)
  }

  /// Returns the index of the first key frame after a frame; nil if there is none.
  package func keyFrame(after index: Int) -> Int? {
    entries[(index + 1)...].firstIndex(where: \.isKeyFrame)
  }

  init(
    _ presentation: AssetIndex.Presentation, timescale: Int32, tickFactor: Int64,
    statedTicks: Int64?, isInFragments: Bool, path: String
  ) throws(MediaError) {
    let packets = presentation.records
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
    // The greatest decode index of the frames up to the current one, in presentation order.
    var decodedLast = -1
    // Frames are reordered if the presentation time decreases somewhere in decode order. Hidden
    // packets are compared as well.
    var isReordered = zip(packets, packets.dropFirst()).contains { packet, next in
      packet.pts > next.pts && (packet.dts ?? .min) < (next.dts ?? .max)
    }
    for (position, item) in shown.enumerated() {
      let record = item.element
      var duration = max(0, min(record.duration, Self.largestTicks / tickFactor)) * tickFactor
      if position + 1 < shown.count {
        duration = try ticks(from: record.pts, to: shown[position + 1].element.pts)
        guard duration > 0 else {
          throw .invalid(path, "has frames whose times contradict their order")
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
    // The refinement was chosen so that this multiplication does not overflow.
    self.timescale = timescale * Int32(clamping: presentation.refinement)
    refinement = presentation.refinement
    correctedTimeCount = presentation.correctedCount
    originTicks = origin
    madeTicks = presentation.isMade ? packets.map(\.pts) : nil
    self.tickFactor = tickFactor
    self.entries = entries
    hiddenPackets =
      shown.count == packets.count ? [] : Self.hidden(packets, shown: shown.map(\.offset))
    if let last = entries.last {
      self.entries[entries.count - 1].duration = Self.lastDuration(
        last, before: entries.dropLast().last, usesStated: isReordered || isInFragments,
        statedTicks: statedTicks.map {
          $0.multipliedReportingOverflow(by: tickFactor * presentation.refinement)
        })
    }
    uncertainty = Self.uncertainty(
      of: self.entries.dropLast().map(\.duration), self.timescale)
  }

  private static func uncertainty(of durations: [Int64], _ timescale: Int32) -> Rational {
    guard let shortest = durations.min(), durations.contains(where: { $0 % shortest != 0 })
    else { return .zero }
    let microsecond = Rational(Int128(timescale), over: 1_000_000)
    return min(max(Rational(1, over: 2), microsecond), Rational(shortest) / 4)
  }

  /// The greatest rounding error of a frame time, in seconds.
  package var uncertaintyInSeconds: Rational {
    // The quotient can always be represented, because the numerator is a fraction of a tick and the
    // timescale has 32 bits.
    uncertainty / Rational(Int64(timescale))
  }

  /// Whether all frame intervals are multiples of one period, apart from rounding.
  ///
  /// An interval of several periods means that frames are missing.
  package var isRegular: Bool {
    let durations = entries.dropLast().map(\.duration)
    guard !durations.isEmpty else { return true }
    let median = durations.sorted()[durations.count / 2]
    return durations.allSatisfy { duration in
      let periods = max(1, (duration + median / 2) / median)
      return abs(duration - periods * median) <= periods
    }
  }

  /// The greatest frame time that is accepted, in ticks.
  ///
  /// Sums and differences of two such times cannot overflow.
  private static let largestTicks: Int64 = 1 << 53

  /// The hidden packets, each with the shown frame that follows it.
  ///
  /// - Parameters:
  ///   - packets: All packets in decode order.
  ///   - shown: The indices of the shown packets, in presentation order.
  /// - Returns: The hidden packets in presentation order.
  private static func hidden(_ packets: [PacketRecord], shown: [Int]) -> [HiddenPacket] {
    // An edit list may jump, so that the file has several parts with overlapping times. Times
    // define an order only within one part. A decode time that decreases marks the start of a new
    // part.
    var parts: [Int] = []
    parts.reserveCapacity(packets.count)
    for (index, record) in packets.enumerated() {
      let goesBack = index > 0 && (record.dts ?? .max) <= (packets[index - 1].dts ?? .min)
      parts.append((parts.last ?? 0) + (goesBack ? 1 : 0))
    }
    // For each part, the range of indices of its shown frames. For a part without shown frames, the
    // range is empty and begins where the range of the previous part ends.
    var numbers = [Range<Int>?](repeating: nil, count: (parts.last ?? 0) + 1)
    for (number, index) in shown.enumerated() {
      let known = numbers[parts[index]] ?? number..<number
      numbers[parts[index]] = min(known.lowerBound, number)..<number + 1
    }
    var end = 0
    let spans = numbers.map { range -> Range<Int> in
      end = max(end, range?.upperBound ?? end)
      return range ?? end..<end
    }
    func number(after pts: Int64, in range: Range<Int>) -> Int {
      range.partitioningIndex { packets[shown[$0]].pts > pts }
    }
    let hidden = packets.enumerated().filter(\.element.isDiscarded).map { index, record in
      HiddenPacket(
        decodeIndex: index, nextFrame: number(after: record.pts, in: spans[parts[index]]),
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

  /// The duration of the last frame.
  ///
  /// The last frame ends with the track if frames are reordered or stored in fragments. With
  /// reordered frames, the last duration in a movie belongs to the frame decoded last, not to the
  /// frame shown last. With fragments, libav does not know the last duration. In all other cases,
  /// the result is the duration in the file or, if it has none, that of the frame before.
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

extension FrameTable {
  /// Whether the frame durations vary.
  ///
  /// Durations that differ by at most one tick count as equal, because the timescale rounds them.
  public var isVariable: Bool {
    guard let range = stepRange else { return false }
    return range.upperBound - range.lowerBound > 1
  }

  /// The exact average frame rate: the frame count divided by the duration.
  ///
  /// Nil without frames.
  public var averageFrameRate: Rational? {
    guard endTicks > 0 else { return nil }
    return Rational(Int128(entries.count) * Int128(timescale), over: Int128(endTicks)).ifValid
  }

  /// The nominal frame rate, or nil if no rate matches the frame times.
  ///
  /// If the intervals between frames differ by at most one tick, this is the standard rate that
  /// matches the time of the last frame to within one tick. For example, it is 240/1 if the
  /// intervals alternate between 4166 and 4167 µs. If no standard rate matches but all intervals
  /// are equal, it is the rate of that interval. If the intervals differ more, it is the whole rate
  /// within 1 % of the rate of the median interval.
  public var nominalFrameRate: FrameRate? {
    guard let first = entries.first, let last = entries.last else { return nil }
    guard let range = stepRange else { return rate(steps: 1, ticks: first.duration, off: 1) }
    if range.upperBound - range.lowerBound > 1 { return medianRate }
    // The times of the first and the last frame are each rounded by at most half a tick. Their
    // difference is therefore wrong by at most one tick.
    let count = Int64(entries.count - 1)
    if let rate = rate(steps: count, ticks: last.ticks, off: 1) { return rate }
    return range.lowerBound == range.upperBound
      ? FrameRate(exactly: Rational(Int128(timescale), over: Int128(range.lowerBound))) : nil
  }

  /// The shortest and the longest interval between frames, in ticks.
  ///
  /// Nil for fewer than two frames.
  private var stepRange: ClosedRange<Int64>? {
    var range: ClosedRange<Int64>?
    // The duration of the last frame is ignored, because it is not an interval between frames.
    for entry in entries.dropLast() {
      let step = entry.duration
      guard let found = range else {
        range = step...step
        continue
      }
      range = min(found.lowerBound, step)...max(found.upperBound, step)
    }
    return range
  }

  private var medianRate: FrameRate? {
    let steps = entries.dropLast().map(\.duration).sorted()
    let rate = Double(timescale) / Double(steps[steps.count / 2])
    guard rate.rounded() >= 1, abs(rate.rounded() / rate - 1) < 0.01 else { return nil }
    return FrameRate(exactly: Rational(Int64(rate.rounded())))
  }

  /// The standard rate at which `steps` frame intervals last from `ticks - off` to `ticks + off`
  /// ticks, or nil if no standard rate does.
  private func rate(steps: Int64, ticks: Int64, off: Int64) -> FrameRate? {
    guard ticks > off else { return nil }
    let perSecond = Int128(steps) * Int128(timescale)
    // The standard rates are whole rates, NTSC rates (1000/1001 of a whole rate) and half of a
    // whole rate.
    for (numerator, denominator) in [(1, 1), (1_000, 1_001), (1, 2)] as [(Int128, Int128)] {
      // The measured rate is steps·timescale/ticks. `count` is the whole number for which the
      // candidate count·numerator/denominator is nearest to the measured rate.
      let above = perSecond * denominator
      let below = Int128(ticks) * numerator
      let count = (2 * above + below) / (2 * below)
      let (least, most) = (Int128(ticks - off), Int128(ticks + off))
      guard count > 0, above >= count * numerator * least, above <= count * numerator * most,
        let rate = FrameRate(exactly: Rational(count * numerator, over: denominator))
      else { continue }
      return rate
    }
    return nil
  }
}

extension FrameTable {
  /// The indices of the frames that are shown during a time range of the asset.
  ///
  /// - Parameters:
  ///   - range: The range in the asset's time. Nil means all frames.
  ///   - offset: The time of this table's first frame on the asset's time axis, in seconds.
  /// - Returns: The indices; empty if no frame is shown in the range.
  /// - Throws: `MediaError` with `.overflow` if a time cannot be represented.
  func numbers(in range: TimeRange?, offset: Rational) throws(MediaError) -> Range<Int> {
    guard let range else { return entries.indices }
    guard !range.isEmpty else { return 0..<0 }
    func ticks(_ time: MediaTime, _ rounding: TimeRounding) throws(MediaError) -> Int64 {
      let exact = (time.seconds - offset) * Rational(Int64(timescale))
      return Int64(clamping: try exact.rounded(rounding))
    }
    let start = max(0, try ticks(range.start, .towardNegativeInfinity))
    // The first tick at or after the end of the range. A frame that starts at this tick is no
    // longer in the range.
    let end = try ticks(range.end, .towardPositiveInfinity)
    guard start < min(end, endTicks), let first = lastIndex(atOrBefore: start) else { return 0..<0 }
    let last = lastIndex(atOrBefore: end - 1) ?? first
    return first..<last + 1
  }

  /// Converts a time in this table's ticks to the asset's time.
  ///
  /// `offset` is the time of this table's first frame on the asset's time axis, in seconds.
  func time(ofTicks ticks: Int64, offset: Rational) throws(MediaError) -> MediaTime {
    let own = MediaTime(ticks, over: timescale)
    return offset == .zero ? own : try MediaTime(own.seconds + offset)
  }

  /// The decode index of the packet at which decoding must start to reach a frame.
  ///
  /// This packet is the last shown key frame at or before the frame. If there is none, it is the
  /// last hidden key frame before the frame.
  func decodingStart(ofFrame number: Int) -> Int {
    var key = number
    while key > 0, !entries[key].isKeyFrame { key -= 1 }
    let index = entries[key].decodeIndex
    if entries[key].isKeyFrame { return index }
    return hiddenPackets.lazy.filter { $0.isKeyFrame && $0.decodeIndex < index }
      .map(\.decodeIndex).max() ?? 0
  }
}
