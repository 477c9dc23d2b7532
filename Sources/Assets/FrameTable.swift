// SPDX-License-Identifier: Apache-2.0
public import MediaTiming

/// When each frame of a picture track is shown, in order of presentation.
///
/// Times are in ticks of the track's timescale, counted from the first frame: frame 0 is at 0.
public struct FrameTable: Sendable {
  /// One frame, as the file stores it.
  public struct Entry: Hashable, Sendable {
    /// When it is shown, in ticks from the first frame.
    public let ticks: Int64
    /// How long it is shown, in ticks.
    public let duration: Int64
    /// Whether decoding may start here.
    public let isKeyFrame: Bool
    /// Its place in the order of decoding, from 0.
    public let decodeIndex: Int
  }

  /// Ticks per second.
  public let timescale: Int32
  /// The frames in order of presentation.
  public let entries: [Entry]
  /// What the file's own ticks say of the first frame.
  package let originTicks: Int64
  /// The file's ticks are multiples of this many of ours; 1 in movies of MOV and MP4.
  package let tickFactor: Int64

  /// The end of the last frame, in ticks.
  public var endTicks: Int64 { entries.last.map { $0.ticks + $0.duration } ?? 0 }

  /// The time of a frame; the end for the number after the last.
  ///
  /// - Throws: `AssetError` with `.outsideAsset` for a frame that is not there.
  public func time(ofFrame index: Int64) throws -> MediaTime {
    guard index >= 0, index <= entries.count else {
      throw AssetError(
        .outsideAsset, "there is no frame \(index) among \(entries.count)",
        hint: "frames are counted from 0")
    }
    let ticks = index == entries.count ? endTicks : entries[Int(index)].ticks
    return try MediaTime(value: ticks, timescale: timescale)
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
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].ticks <= ticks { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : low - 1
  }

  /// Whether the frames do not follow each other evenly, as far as the timescale can tell.
  ///
  /// Steps that differ by one tick are those of an even rate that the timescale rounds.
  public var isVariable: Bool {
    let steps = zip(entries.dropFirst(), entries).map { $0.ticks - $1.ticks }
    guard let shortest = steps.min(), let longest = steps.max() else { return false }
    return longest - shortest > 1
  }

  /// Frames per second on average: their number over the time they fill; nil for none.
  public var averageFrameRate: FrameRate? {
    guard endTicks > 0 else { return nil }
    return try? FrameRate(
      Rational(Int128(entries.count) * Int128(timescale), Int128(endTicks)))
  }

  init(_ packets: [PacketRecord], timescale: Int32, tickFactor: Int64) throws(AssetError) {
    let shown = packets.enumerated().filter { !$0.element.isDiscarded }
      .sorted { $0.element.pts < $1.element.pts }
    let origin = shown.first?.element.pts ?? 0
    var entries: [Entry] = []
    entries.reserveCapacity(shown.count)
    for (place, item) in shown.enumerated() {
      let (ticks, overflow) = item.element.pts.subtractingReportingOverflow(origin)
      let (scaled, scaleOverflow) = ticks.multipliedReportingOverflow(by: tickFactor)
      var duration = item.element.duration.multipliedReportingOverflow(by: tickFactor)
      if place + 1 < shown.count {
        let step = shown[place + 1].element.pts.subtractingReportingOverflow(item.element.pts)
        guard !step.overflow, step.partialValue > 0 else {
          throw AssetError(
            .invalidData, "two frames share the time \(item.element.pts)",
            hint: "the file is damaged")
        }
        duration = step.partialValue.multipliedReportingOverflow(by: tickFactor)
      }
      guard !overflow, !scaleOverflow, !duration.overflow,
        !scaled.addingReportingOverflow(duration.partialValue).overflow
      else {
        throw AssetError(
          .invalidData, "a frame has the time \(item.element.pts), which is out of bounds",
          hint: "the file is damaged")
      }
      entries.append(
        Entry(
          ticks: scaled, duration: max(0, duration.partialValue),
          isKeyFrame: item.element.isKeyFrame, decodeIndex: item.offset))
    }
    // A file that does not say how long its last frame lasts: as long as the one before.
    if let last = entries.last, last.duration == 0, entries.count > 1 {
      entries[entries.count - 1] = Entry(
        ticks: last.ticks, duration: entries[entries.count - 2].duration,
        isKeyFrame: last.isKeyFrame, decodeIndex: last.decodeIndex)
    }
    self.timescale = timescale
    self.entries = entries
    originTicks = origin
    self.tickFactor = tickFactor
  }
}

/// What the index of a track says of one packet, in the file's ticks.
struct PacketRecord {
  let pts: Int64
  let duration: Int64
  let isKeyFrame: Bool
  let isDiscarded: Bool
}
