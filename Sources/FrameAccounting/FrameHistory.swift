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
    func isNear(_ a: Double, _ b: Double) -> Bool { distance(a, b) <= TimestampQuantum.tolerance }
    // The phase of a step that has the most frames near it.
    let main = phases.max { left, right in
      phases.count { isNear($0, left) } < phases.count { isNear($0, right) }
    }
    var kept = FrameHistory()
    for (index, phase) in phases.enumerated() where isNear(phase, main ?? 0) {
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
