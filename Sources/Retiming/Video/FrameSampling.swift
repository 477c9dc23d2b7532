// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// What a frame of an export at a constant rate shows of the frames that the source has about it.
public enum FrameSampling: String, Hashable, Sendable, CaseIterable {
  /// The last frame that starts at or before the slot: what a viewer of the source sees then.
  case hold
  /// The frame that starts nearest to the slot; of two equally near the earlier.
  case nearest
  /// All frames that are on during the slot, each for as much of it as it is on, mixed as light: a
  /// camera whose shutter stands open all the time.
  case blend
}

/// What one slot, or several in a row, show.
public struct BlendedFrame: Hashable, Sendable {
  /// A frame in a picture.
  public struct Part: Hashable, Sendable {
    /// Its place among the frames given.
    public let frame: Int
    /// How long it is on, in parts of the picture's ``BlendedFrame/total``.
    public let share: Int64
  }

  /// The frames that it is made of, in order; one but for `blend`.
  public let parts: [Part]
  /// How many slots in a row show it; above zero.
  public fileprivate(set) var count: Int64

  /// The sum of all shares; above zero.
  public var total: Int64 { parts.reduce(0) { $0 + $1.share } }
}

extension OutputFrameGrid {
  /// Tells what the slots show, in order; the counts add up to that of the slots.
  ///
  /// - Parameters:
  ///   - times: When each frame starts, in seconds of the composition, none before the one before
  ///     it; of two that are equal only the second is shown. Before the first there is the first.
  ///   - end: When the last frame ends; a slot is blended of what lies before.
  ///   - sampling: `blend` takes times to within half a nanosecond, the others exactly.
  ///   - jittered: Frames that come a little early or late, with slots enough for each of them. `hold`
  ///     may show these up to half a slot early, so that fewer are skipped.
  /// - Returns: Pictures that differ from their neighbours; none where there is no frame.
  /// - Throws: `MediaError` with `.notAscending`, or `.notExact` when a slot cannot be computed
  ///   exactly.
  public func frames(
    of times: [Rational], until end: Rational, _ sampling: FrameSampling,
    jittered: [Range<Int>] = []
  ) throws(MediaError) -> [BlendedFrame] {
    guard !times.isEmpty else { return [] }
    if sampling == .blend { return try blended(times, end) }
    // The first slot of each frame, and the end.
    var starts: [Int64] = [0]
    starts.reserveCapacity(times.count + 1)
    for (time, next) in zip(times, times.dropFirst()) {
      guard time <= next else { throw Self.notAscending(time, next) }
      starts.append(
        sampling == .hold
          ? try count(before: next)
          : time == next ? starts[starts.count - 1] : try count(nearer: time, than: next))
    }
    starts.append(count)
    if sampling == .hold {
      for range in jittered { try spread(&starts, of: times, over: range) }
    }
    return times.indices.compactMap { index in
      let shown = starts[index + 1] - starts[index]
      return shown > 0
        ? BlendedFrame(parts: [.init(frame: index, share: 1)], count: shown) : nil
    }
  }

  /// Shows frames that no slot shows in place of ones that are shown more than once.
  ///
  /// A frame that comes just after the slot meant for it leaves this to the one before it; where the
  /// next one comes in time, no slot is left. Each frame may take the slot before it if this one is
  /// the nearest to it, and no frame before it is nearer to that slot. So a chain of late frames
  /// moves by one slot each, from one that is shown twice to one that was not shown.
  ///
  /// - Parameters:
  ///   - starts: The first slot of each frame, and the number of slots.
  ///   - times: When each frame starts.
  ///   - range: The frames that may move.
  /// - Throws: `MediaError` with `.notExact` when a slot cannot be computed exactly.
  private func spread(
    _ starts: inout [Int64], of times: [Rational], over range: Range<Int>
  ) throws(MediaError) {
    // The last frame with a slot to spare; all frames behind it have one, and may move.
    var spare: Int?
    for index in range {
      let shown = starts[index + 1] - starts[index]
      if shown > 1 {
        spare = index
      } else if try !isLate(times, index, for: starts[index] - 1) {
        spare = nil
      } else if shown == 0 {
        if let spare { for moved in (spare + 1)...index { starts[moved] -= 1 } }
        spare = nil
      }
    }
  }

  /// Whether a slot is the nearest to the frame that comes after it, and the frame to the slot.
  private func isLate(
    _ times: [Rational], _ index: Int, for slot: Int64
  ) throws(MediaError) -> Bool {
    guard index > 0, slot >= 0 else { return false }
    let instant = seconds(of: slot)
    let late = try (times[index] - instant).exact("the slot at \(instant) s")
    let early = try (instant - times[index - 1]).exact("the slot at \(instant) s")
    return late <= early && 2 * late * rate.framesPerSecond <= 1
  }

  private static func notAscending(_ time: Rational, _ next: Rational) -> MediaError {
    MediaError(
      .notAscending, "a frame at \(next.displayText) s follows one at \(time.displayText) s")
  }

  /// The number of slots that are as near to one time as to a later one, or nearer.
  private func count(
    nearer time: Rational, than next: Rational
  ) throws(MediaError) -> Int64 {
    let middle = try ((time + next) * rate.framesPerSecond / 2)
      .exact("the slots about \(time.displayText) s")
    let last = try middle.rounded(.towardNegativeInfinity)
    return Int64(clamping: min(max(last, -1) + 1, Int128(count)))
  }

  /// Ticks per second so fine that half of one is less than a nanosecond, and each slot a whole
  /// number of them.
  private var finePerNumerator: Int64 { max(1, 2_000_000_000 / Int64(rate.numerator)) }

  private func blended(
    _ times: [Rational], _ end: Rational
  ) throws(MediaError) -> [BlendedFrame] {
    let fine = finePerNumerator
    let scale = Rational(fine * Int64(rate.numerator))
    func ticks(_ time: Rational) throws(MediaError) -> Int64 {
      try (time * scale).exact("the time \(time.displayText) s")
        .wholeNumber(.halfAwayFromZero, of: "the time \(time.displayText) s")
    }
    var starts: [Int64] = []
    starts.reserveCapacity(times.count)
    for (index, time) in times.enumerated() {
      if index > 0, time < times[index - 1] { throw Self.notAscending(times[index - 1], time) }
      starts.append(try ticks(time))
    }
    let endTicks = try ticks(end)
    let (slotTicks, overflow) = fine.multipliedReportingOverflow(by: Int64(rate.denominator))
    let (_, tooLong) = slotTicks.multipliedReportingOverflow(by: count)
    guard !overflow, !tooLong else {
      throw MediaError(.notExact, "\(count) slots do not fit 64 bits")
    }
    var pictures: [BlendedFrame] = []
    var first = 0
    for slot in 0..<count {
      let start = slot * slotTicks
      let stop = max(min(start + slotTicks, endTicks), start + 1)
      while first + 1 < starts.count, starts[first + 1] <= start { first += 1 }
      var parts: [BlendedFrame.Part] = []
      var index = first
      while index < starts.count, index == first || starts[index] < stop {
        let from = index == first ? start : starts[index]
        let to = index + 1 < starts.count ? min(starts[index + 1], stop) : stop
        if to > from { parts.append(.init(frame: index, share: to - from)) }
        index += 1
      }
      if parts.count == 1 { parts = [.init(frame: parts[0].frame, share: 1)] }
      if pictures.last?.parts == parts, parts.count == 1 {
        pictures[pictures.count - 1].count += 1
      } else {
        pictures.append(BlendedFrame(parts: parts, count: 1))
      }
    }
    return pictures
  }
}
