// SPDX-License-Identifier: Apache-2.0

/// The times and slots of the latest frames, in a ring of fixed size.
struct FrameHistory {
  private struct Entry {
    var microseconds: Int64
    var slot: Int64
    /// Whether the frame follows the previous one by the number of periods that the slots show.
    var isCounted: Bool
  }

  private static let capacity = 128

  private var entries: [Entry] = []
  /// The position of the oldest frame in `entries`.
  private var start = 0

  init() { entries.reserveCapacity(Self.capacity) }

  var isEmpty: Bool { entries.isEmpty }
  var count: Int { entries.count }
  /// The oldest frame.
  var first: (microseconds: Int64, slot: Int64)? { isEmpty ? nil : frame(0) }
  /// The latest frame.
  var last: (microseconds: Int64, slot: Int64)? { isEmpty ? nil : frame(entries.count - 1) }

  /// Adds the next frame.
  ///
  /// `isCounted` is false after a jump of the clock, or if the slot is uncertain.
  mutating func add(_ microseconds: Int64, slot: Int64, isCounted: Bool) {
    let entry = Entry(microseconds: microseconds, slot: slot, isCounted: isCounted)
    if entries.count < Self.capacity {
      entries.append(entry)
    } else {
      entries[start] = entry
      start = (start + 1) % Self.capacity
    }
  }

  /// The times between frames in neighbouring slots, in microseconds.
  func intervals() -> [Int64] {
    (1..<max(1, entries.count)).compactMap { index in
      let (last, next) = (entry(index - 1), entry(index))
      guard next.isCounted, next.slot &- last.slot == 1 else { return nil }
      return next.microseconds &- last.microseconds
    }
  }

  /// Estimates the step of the driver's times.
  ///
  /// One late frame makes an interval of 6 ms and one of 2 ms among those of 4 and 8 ms, all of which
  /// are multiples of 2 ms. The longest step at which nearly all frames are on time is therefore taken.
  ///
  /// - Parameter period: The frame duration that the driver granted, in microseconds.
  /// - Returns: The step, or nil if none is apparent.
  func quantum(granted period: Double) -> TimestampQuantum? {
    let intervals = intervals()
    guard let found = TimestampQuantum(intervals, granted: period) else { return nil }
    let longest = Double(intervals.max() ?? 0) / found.microseconds
    guard !found.isAssumed, longest >= 2 else { return found }
    for multiple in (2...min(16, Int(longest.rounded()))).reversed() {
      let step = found.microseconds * Double(multiple)
      // A late frame spoils two intervals.
      let fitting = intervals.count { TimestampQuantum.isMultiple(Double($0), of: step) }
      guard fitting * 4 >= intervals.count * 3 else { continue }
      let kept = withoutLateFrames(step: step)
      guard kept.count < count, kept.isMost(of: self),
        let longer = TimestampQuantum(kept.intervals(), granted: period),
        abs(longer.microseconds / step - 1) <= TimestampQuantum.tolerance
      else { continue }
      return longer
    }
    return found
  }

  /// Whether these are so many of all frames that the others can have been late.
  func isMost(of all: FrameHistory) -> Bool { count * 8 >= all.count * 7 }

  /// These frames without those that were late, if the driver's times have a step.
  ///
  /// The times of all other frames differ by multiples of the step, in microseconds.
  func withoutLateFrames(step: Double) -> FrameHistory {
    guard let first else { return self }
    let phases = entries.indices.map { index -> Double in
      let steps = Double(frame(index).microseconds &- first.microseconds) / step
      return steps - steps.rounded(.down)
    }
    func distance(_ a: Double, _ b: Double) -> Double {
      let distance = abs(a - b)
      return min(distance, 1 - distance)
    }
    let tolerance = TimestampQuantum.tolerance
    // The phase of a step that has the most frames near it. Phases are cyclic: 0.9 is near 0.
    let sorted = phases.sorted()
    let all = sorted.map { $0 - 1 } + sorted + sorted.map { $0 + 1 }
    var (low, high, most, main) = (0, 0, 0, 0.0)
    for phase in sorted {
      while all[low] < phase - tolerance { low += 1 }
      while high < all.count, all[high] <= phase + tolerance { high += 1 }
      if high - low > most { (most, main) = (high - low, phase) }
    }
    var kept = FrameHistory()
    for (index, phase) in phases.enumerated() where distance(phase, main) <= tolerance {
      let frame = entry(index)
      kept.add(frame.microseconds, slot: frame.slot, isCounted: frame.isCounted)
    }
    return kept
  }

  /// Whether the last frame followed after another interval than the given one, in microseconds.
  func endsUnequally(to interval: Double) -> Bool {
    guard entries.count > 1 else { return false }
    let (last, next) = (entry(entries.count - 2), entry(entries.count - 1))
    guard next.isCounted else { return false }
    let found = Double(next.microseconds &- last.microseconds)
    return abs(found - interval) > TimestampQuantum.shortest
  }

  /// The period at which the spread of the frames is least, in microseconds.
  ///
  /// Nil for a single frame.
  var evenestPeriod: Double? {
    guard let first, let last, last.slot > first.slot else { return nil }
    let mean = Double(last.microseconds &- first.microseconds) / Double(last.slot &- first.slot)
    guard mean > 0 else { return nil }
    // The spread is a convex function of the period, so thirds of the range can be discarded.
    var (low, high) = (mean * 0.7, mean * 1.4)
    for _ in 0..<32 {
      let third = (high - low) / 3
      if spread(period: low + third) < spread(period: high - third) {
        high -= third
      } else {
        low += third
      }
    }
    return (low + high) / 2
  }

  /// The difference between the latest and the earliest of the last `count` frames, relative to a
  /// grid of a period, in microseconds.
  func spread(period: Double, ofLast count: Int = .max) -> Double {
    var (least, greatest) = (0.0, 0.0)
    forEachLateness(period: period, ofLast: count) {
      least = min(least, $0)
      greatest = max(greatest, $0)
    }
    return greatest - least
  }

  /// Calls a function with the lateness of each frame relative to a grid through the latest frame,
  /// oldest first.
  func forEachLateness(
    period: Double, ofLast count: Int = .max, _ body: (Double) -> Void
  ) {
    guard let last else { return }
    for index in entries.indices.suffix(count) {
      let frame = frame(index)
      body(
        Double(frame.microseconds &- last.microseconds) - Double(frame.slot &- last.slot) * period)
    }
  }

  private func entry(_ index: Int) -> Entry { entries[(start + index) % entries.count] }

  private func frame(_ index: Int) -> (microseconds: Int64, slot: Int64) {
    let entry = entry(index)
    return (entry.microseconds, entry.slot)
  }
}
