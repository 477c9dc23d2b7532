// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

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
