// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// The source frames that are visible while the shutter is open, for each output frame.
package struct ShutterContent {
  /// The content of one window: the time during which the shutter is open for one output frame.
  struct Window {
    /// The time during which the shutter is open, in ticks; at least one tick long.
    let range: Range<Int64>
    /// The source frames visible in the window, in order, each with its visible time in ticks; at
    /// least one frame.
    let parts: [BlendedFrame.Part]
    /// The position in ``parts`` of the first frame that starts in the window.
    let firstStart: Int
  }

  let windows: ShutterWindows
  /// The number of output frames.
  private let count: Int64
  /// The start times of the source frames in ticks.
  let starts: [Int64]
  /// The start times of the source frames in composition seconds.
  let times: [Rational]

  /// Finds the visible source frames.
  ///
  /// - Parameters:
  ///   - times: The start times of the source frames in composition seconds, in ascending order. If
  ///     two times are equal, only the second frame is visible. Before the first time the first frame is
  ///     visible.
  ///   - end: The end of the last source frame; no window extends beyond this time.
  ///   - grid: The output frames.
  ///   - shutter: The angle, which sets how long the shutter is open in each output period.
  /// - Throws: `MediaError` with `.notAscending`, or `.notExact` if a time cannot be computed
  ///   exactly.
  package init(
    of times: [Rational], until end: Rational, _ grid: OutputFrameGrid, _ shutter: ShutterAngle
  ) throws(MediaError) {
    self.times = times
    count = grid.count
    windows = try ShutterWindows(grid, shutter, until: end)
    starts = try windows.starts(of: times)
  }

  /// Calls a closure with the content of each window in order; not at all without source frames.
  ///
  /// The windows are not stored, because in slow motion there are many more windows than source
  /// frames.
  private func forEachWindow(_ body: (Window) -> Void) {
    guard !starts.isEmpty else { return }
    var first = 0
    for slot in 0..<count {
      let range = windows.window(of: slot)
      while first + 1 < starts.count, starts[first + 1] <= range.lowerBound { first += 1 }
      body(window(range, from: first))
    }
  }

  /// Returns the content of a window; `first` is the frame that is visible when the window opens.
  private func window(_ range: Range<Int64>, from first: Int) -> Window {
    var parts: [BlendedFrame.Part] = []
    var index = first
    while index < starts.count, index == first || starts[index] < range.upperBound {
      let start = index == first ? range.lowerBound : starts[index]
      let next = index + 1 < starts.count ? starts[index + 1] : .max
      let end = min(next, range.upperBound)
      if end > start { parts.append(.init(frame: index, share: end - start)) }
      index += 1
    }
    return Window(
      range: range, parts: parts, firstStart: range.contains(starts[first]) ? 0 : 1)
  }

  /// The content of all output frames; consecutive output frames with equal content are merged.
  package var blended: [BlendedFrame] {
    var blended: [BlendedFrame] = []
    forEachWindow { window in
      var parts = window.parts
      if parts.count == 1 { parts = [.init(frame: parts[0].frame, share: 1)] }
      if blended.last?.parts == parts, parts.count == 1 {
        blended[blended.count - 1].count += 1
      } else {
        blended.append(BlendedFrame(parts: parts, count: 1))
      }
    }
    return blended
  }

  /// The instants that are averaged for each output frame.
  ///
  /// A window with at least ``Exposure/partCount`` visible source frames uses these frames,
  /// weighted by visible time, as a blend does. Any other window is divided into
  /// ``Exposure/partCount`` equal parts. Each part uses the source frames that start in it or, if
  /// none does, the instant in its middle.
  package var exposures: [Exposure] {
    var exposures: [Exposure] = []
    forEachWindow { window in
      exposures.append(
        window.parts.count >= Exposure.partCount
          ? Exposure(visible: window.parts, times) : Exposure(partsOf: window, self))
    }
    return exposures
  }
}

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
