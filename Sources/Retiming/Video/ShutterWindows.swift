// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The times during which the shutter is open for each output frame, in ticks.
///
/// A tick is below 1 ns, and every output period and every window is a whole number of ticks.
struct ShutterWindows {
  /// The end of the last window in ticks.
  private(set) var end: Int64
  private let slotTicks: Int64
  private let windowTicks: Int64
  private let ticksPerSecond: Rational

  /// - Throws: `MediaError` with `.notExact` if the ticks of all output frames do not fit 64 bits.
  init(
    _ grid: OutputFrameGrid, _ shutter: ShutterAngle, until end: Rational
  ) throws(MediaError) {
    let share = try (shutter.degrees / 360).exact("the time of an open shutter")
    let (above, below) = (share.numerator, share.denominator)
    let numerator = Int128(grid.rate.numerator)
    // Rounds up to a multiple of the denominator of the open fraction of the output period, so that
    // a window is a whole number of ticks.
    let least = max(1, 2_000_000_000 / numerator)
    let (added, isTooFine) = least.addingReportingOverflow(below - 1)
    let fine = Int64(exactly: isTooFine ? .max : added / below * below)
    let slot = fine?.multipliedReportingOverflow(by: Int64(grid.rate.denominator))
    guard let fine, let slot, !slot.overflow,
      !slot.partialValue.multipliedReportingOverflow(by: grid.count).overflow
    else { throw MediaError(.notExact, "\(grid.count) slots exceed 64 bits") }
    slotTicks = slot.partialValue
    // A window is at most an output period long, so the result fits. The product of a 64-bit number
    // and the numerator fits 128 bits.
    windowTicks = Int64(truncatingIfNeeded: Int128(slotTicks) / below * above)
    ticksPerSecond = Rational(Int128(fine) * numerator)
    self.end = .max
    self.end = try ticks(of: end)
  }

  /// Returns a time rounded to the nearest tick.
  func ticks(of time: Rational) throws(MediaError) -> Int64 {
    try (time * ticksPerSecond).exact("the time \(time.displayText) s")
      .wholeNumber(.halfAwayFromZero, of: "the time \(time.displayText) s")
  }

  /// Returns the start times of source frames in ticks.
  ///
  /// - Throws: `MediaError` with `.notAscending`, or `.notExact` if a time cannot be computed
  ///   exactly.
  func starts(of times: [Rational]) throws(MediaError) -> [Int64] {
    var starts: [Int64] = []
    starts.reserveCapacity(times.count)
    for (index, time) in times.enumerated() {
      if index > 0, time < times[index - 1] {
        throw OutputFrameGrid.notAscending(times[index - 1], time)
      }
      starts.append(try ticks(of: time))
    }
    return starts
  }

  /// Returns the composition time of a tick in seconds.
  func seconds(of tick: Int64) -> Rational { Rational(tick) / ticksPerSecond }

  /// Returns the window of an output frame, cut off at the end of the last source frame; at least
  /// one tick long.
  func window(of slot: Int64) -> Range<Int64> {
    let start = slot * slotTicks
    return start..<max(min(start + windowTicks, end), start + 1)
  }
}
