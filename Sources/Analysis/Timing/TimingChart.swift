// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankRaster

/// A chart of a movie's timing: the intervals between frames over time, and their histogram.
///
/// Gaps are red, repeated frames orange. A dashed line shows the expected interval. Intervals above
/// eight times the median are at the end of the axis.
public struct TimingChart: Sendable {
  private let audit: TimingAudit
  private let title: String
  /// The time of each frame and the interval after it, in milliseconds.
  private let times: [Double]
  private let intervals: [Double]

  private static let width = 1_200
  private static let left = 110
  private static let right = 1_170
  private static let plot = (top: 110, bottom: 390)
  private static let histogram = (top: 490, bottom: 610)
  private static let height = 680

  /// Makes the chart of an audit.
  ///
  /// - Parameters:
  ///   - audit: The audit.
  ///   - frames: The frames of the same video track.
  ///   - title: The first line of the chart, such as the name of the file.
  public init(_ audit: TimingAudit, frames: FrameTable, title: String) {
    (self.audit, self.title) = (audit, title)
    let scale = 1_000 / Double(frames.timescale)
    times = frames.entries.map { Double($0.ticks) * scale }
    intervals = frames.entries.dropLast().map { Double($0.duration) * scale }
  }

  /// The chart as an SVG document.
  public func svg() -> String { drawing().svg() }

  /// The chart as a PNG file.
  ///
  /// - Throws: `MediaError` with `.missingComponent` if FFmpeg was built without librsvg,
  ///   `.outOfMemory`, and `.writeFailed` if FFmpeg has no PNG encoder.
  public func png() throws(MediaError) -> [UInt8] {
    do throws(CallFailure) { return try drawing().png() } catch { throw Self.pngError(error) }
  }

  static func pngError(_ failure: CallFailure) -> MediaError {
    let stage = CallStage(
      [
        .notFound: .init(.missingComponent, "write the chart as SVG, or use an FFmpeg with librsvg")
      ],
      other: .init(.writeFailed, "write the chart as SVG"))
    return MediaError(
      failure, at: stage, message: "the chart cannot be drawn as PNG: \(failure.reason)")
  }

  private func drawing() -> ChartDrawing {
    var drawing = ChartDrawing(width: Self.width, height: Self.height)
    drawing.write(title, x: 20, y: 16)
    drawing.write(summary, x: 20, y: 44, audit.isOK ? .ink : .gap)
    let top = axisEnd
    drawLegend(&drawing, top)
    let end = max(times.last ?? 0, .leastNormalMagnitude)
    frame(&drawing, Self.plot.top, Self.plot.bottom)
    for tick in ticks(to: top, count: 4) {
      let y = Self.plot.bottom - Int(tick / top * Double(Self.plot.bottom - Self.plot.top))
      drawing.fill(x: Self.left, y: y, width: Self.right - Self.left, height: 1, .faint)
      drawing.write(number(tick), x: Self.left - 8, y: y - 7, anchor: .end)
    }
    for tick in ticks(to: end / 1_000, count: 8) {
      let x = column(tick * 1_000, end)
      drawing.fill(x: x, y: Self.plot.bottom, width: 1, height: 6, .ink)
      drawing.write(number(tick), x: x, y: Self.plot.bottom + 12, anchor: .middle)
    }
    label(&drawing, Self.plot, x: "time in s", y: "interval in ms")
    drawRepeated(&drawing, end)
    drawIntervals(&drawing, top, end)
    if let expected = expectedInterval(upTo: top) {
      let y = Self.plot.bottom - Int(expected / top * Double(Self.plot.bottom - Self.plot.top))
      drawing.dash(x: Self.left, y: y, toX: Self.right, toY: y, .expected)
    }
    drawHistogram(&drawing, top)
    return drawing
  }

  /// Names the axes of a plot.
  private func label(
    _ drawing: inout ChartDrawing, _ plot: (top: Int, bottom: Int), x: String, y: String
  ) {
    drawing.write(
      x, x: (Self.left + Self.right) / 2, y: plot.bottom + 38, anchor: .middle)
    drawing.write(
      y, x: 30, y: (plot.top + plot.bottom) / 2 - 14, anchor: .middle, isUpward: true)
  }

  /// Explains each color that the chart uses.
  private func drawLegend(_ drawing: inout ChartDrawing, _ top: Double) {
    var x = Self.left
    func entry(_ text: String, _ color: Color) {
      drawing.fill(x: x, y: 80, width: 14, height: 14, color)
      drawing.write(text, x: x + 22, y: 80)
      x += 22 + 12 * text.count + 24
    }
    entry("interval", .regular)
    if !audit.gaps.isEmpty { entry("gap", .gap) }
    if !audit.duplicates.isEmpty || !audit.frozen.isEmpty { entry("repeated frame", .repeated) }
    if let expected = expectedInterval(upTo: top) {
      entry("expected, \(number(expected)) ms (\(number(1_000 / expected)) fps)", .expected)
    }
  }

  /// The interval in milliseconds at the rate that the frames should have, if the axis shows it.
  ///
  /// A movie in slow motion should have its own measured rate.
  private func expectedInterval(upTo top: Double) -> Double? {
    let isWrong = audit.problems.contains { [.unexpectedRate, .statedRate].contains($0) }
    let rate = isWrong ? audit.expectedFrameRate ?? audit.captureFrameRate : nil
    let expected = rate?.framesPerSecond ?? audit.measuredFrameRate
    return expected.map { 1_000 / $0.doubleValue }.flatMap { $0 <= top ? $0 : nil }
  }

  private var summary: String {
    let rate = audit.measuredFrameRate.map { "\(number($0.doubleValue)) fps, " } ?? ""
    let lost = audit.gaps.reduce(0) { $0 + $1.count }
    return "\(audit.frameCount) frames, \(rate)\(audit.gaps.count) gaps (\(lost) missing), "
      + "\(audit.duplicates.count) duplicates, \(audit.frozen.count) frozen stretches"
  }

  /// The end of the interval axis in milliseconds: at most eight times the median interval.
  private var axisEnd: Double {
    let sorted = intervals.sorted()
    guard let longest = sorted.last else { return 1 }
    return max(min(longest * 1.1, sorted[sorted.count / 2] * 8), .leastNormalMagnitude)
  }

  private func column(_ milliseconds: Double, _ end: Double) -> Int {
    Self.left + Int(milliseconds / end * Double(Self.right - Self.left - 1))
  }

  private func frame(_ drawing: inout ChartDrawing, _ top: Int, _ bottom: Int) {
    drawing.fill(x: Self.left, y: top, width: 1, height: bottom - top, .ink)
    drawing.fill(x: Self.left, y: bottom, width: Self.right - Self.left, height: 1, .ink)
  }

  /// Draws repeated frames as marks below the top of the plot.
  private func drawRepeated(_ drawing: inout ChartDrawing, _ end: Double) {
    let ranges =
      audit.duplicates.map { $0.index...$0.index }
      + audit.frozen.map { $0.firstIndex + 1...$0.lastIndex }
    var drawn = Int.min
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound })
    where times.indices.contains(range.upperBound) {
      let (first, last) = (
        column(times[range.lowerBound], end), column(times[range.upperBound], end)
      )
      // Marks that end in the same column are drawn once, so a chart of many frames stays small.
      guard last > drawn else { continue }
      drawn = last
      drawing.fill(
        x: first, y: Self.plot.top, width: max(2, last - first + 1), height: 24, .repeated)
    }
  }

  /// Draws a bar in each column of pixels, from the shortest to the longest interval in that
  /// column.
  private func drawIntervals(_ drawing: inout ChartDrawing, _ top: Double, _ end: Double) {
    let missing = Set(audit.gaps.map(\.afterIndex))
    var bars: [Int: (ClosedRange<Int>, isGap: Bool)] = [:]
    for (index, interval) in intervals.enumerated() {
      let x = column(times[index], end)
      let share = min(1, interval / top)
      let y = Self.plot.bottom - Int(share * Double(Self.plot.bottom - Self.plot.top))
      let (known, isGap) = bars[x] ?? (y...y, false)
      bars[x] = (
        min(known.lowerBound, y)...max(known.upperBound, y), isGap || missing.contains(index)
      )
    }
    for (x, bar) in bars.sorted(by: { $0.key < $1.key }) {
      drawing.fill(
        x: x - 1, y: bar.0.lowerBound - 1, width: 3, height: bar.0.count + 2,
        bar.isGap ? .gap : .regular)
    }
  }

  private func drawHistogram(_ drawing: inout ChartDrawing, _ top: Double) {
    let (upper, bottom) = (Self.histogram.top, Self.histogram.bottom)
    frame(&drawing, upper, bottom)
    let bins = 200
    var counts = [Int](repeating: 0, count: bins)
    for interval in intervals { counts[min(bins - 1, Int(interval / top * Double(bins)))] += 1 }
    let largest = logarithm(counts.max() ?? 0)
    for (bin, count) in counts.enumerated() where count > 0 {
      let height = Int(logarithm(count) / max(largest, 1) * Double(bottom - upper - 4)) + 2
      let x = Self.left + bin * (Self.right - Self.left) / bins
      drawing.fill(x: x, y: bottom - height, width: 4, height: height, .regular)
    }
    for tick in ticks(to: top, count: 8) {
      let x = Self.left + Int(tick / top * Double(Self.right - Self.left - 1))
      drawing.fill(x: x, y: bottom, width: 1, height: 6, .ink)
      drawing.write(number(tick), x: x, y: bottom + 12, anchor: .middle)
    }
    var power = 1
    while power <= counts.max() ?? 0 {
      let y = bottom - Int(logarithm(power) / max(largest, 1) * Double(bottom - upper - 4))
      drawing.write("\(power)", x: Self.left - 8, y: y - 7, anchor: .end)
      power *= 10
    }
    if let expected = expectedInterval(upTo: top) {
      let x = Self.left + Int(expected / top * Double(Self.right - Self.left - 1))
      drawing.dash(x: x, y: upper, toX: x, toY: bottom, .expected)
    }
    label(&drawing, Self.histogram, x: "interval in ms", y: "number (log)")
  }

  /// Returns a logarithmic height for a count: 0 for none, and 1 more for each doubling.
  private func logarithm(_ count: Int) -> Double {
    guard count > 0 else { return 0 }
    let digits = count.bitWidth - count.leadingZeroBitCount
    return Double(digits) + Double(count) / Double(sign: .plus, exponent: digits, significand: 1)
  }

  /// Returns round numbers from zero to a value, about as many as `count`.
  private func ticks(to end: Double, count: Int) -> [Double] {
    guard end > 0, end.isFinite else { return [0] }
    var step = 1.0
    while step * Double(count) > end { step /= 10 }
    while step * 10 * Double(count) <= end { step *= 10 }
    let factor = [1.0, 2, 5, 10].first { step * $0 * Double(count) >= end } ?? 10
    step *= factor
    return stride(from: 0, through: end, by: step).map { $0 }
  }

  /// A number with at most three decimals.
  private func number(_ value: Double) -> String {
    let thousandths = Int64(min(1e15, max(0, (value * 1_000).rounded())))
    return Rational.decimals(thousandths, count: 3, trimsZeros: true)
  }
}
