// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension FrameTable {
  /// Whether the frames do not follow each other evenly, as far as the timescale can tell.
  ///
  /// Steps that differ by one tick are those of an even rate that the timescale rounds.
  public var isVariable: Bool {
    guard let range = stepRange else { return false }
    return range.upperBound - range.lowerBound > 1
  }

  /// Frames per second on average: their number over the time they fill, exactly; nil for none.
  public var averageFrameRate: Rational? {
    guard endTicks > 0 else { return nil }
    return Rational(Int128(entries.count) * Int128(timescale), over: Int128(endTicks)).ifValid
  }

  /// The rate that the times of the frames are those of, as far as their ticks can tell.
  ///
  /// Of even frames it is the one rate that rounds to all of their times: 240/1 where steps of
  /// 4166 and 4167 µs alternate. Of uneven ones it is the whole rate within one percent of the
  /// step that lies in the middle of all. Nil where there is none such.
  public var nominalFrameRate: FrameRate? {
    guard let first = entries.first, let last = entries.last else { return nil }
    guard let range = stepRange else { return rate(steps: 1, ticks: first.duration, off: 1) }
    if range.upperBound - range.lowerBound > 1 { return medianRate }
    // Either end is rounded by half a tick at most.
    let count = Int64(entries.count - 1)
    if let rate = rate(steps: count, ticks: last.ticks, off: 1) { return rate }
    return range.lowerBound == range.upperBound
      ? FrameRate(exactly: Rational(Int128(timescale), over: Int128(range.lowerBound))) : nil
  }

  /// The shortest and the longest step from frame to frame, in ticks; nil without a step.
  private var stepRange: ClosedRange<Int64>? {
    var range: ClosedRange<Int64>?
    // The last frame is followed by none: its duration is no step.
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

  /// The customary rate at which so many steps take this many ticks, give or take some.
  private func rate(steps: Int64, ticks: Int64, off: Int64) -> FrameRate? {
    guard ticks > off else { return nil }
    let perSecond = Int128(steps) * Int128(timescale)
    // Whole rates, those of broadcasting, and halves.
    for (numerator, denominator) in [(1, 1), (1_000, 1_001), (1, 2)] as [(Int128, Int128)] {
      // n·numerator/denominator nearest to steps·timescale/ticks.
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
