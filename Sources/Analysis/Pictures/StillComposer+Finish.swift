// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
public import OvercrankMediaCore

extension StillComposer {
  /// The settings of a photo finish.
  public struct FinishSettings: Hashable, Sendable {
    /// The column of the finish line, in pixels from the left edge of the frame as displayed; nil
    /// for the middle.
    public var column: Int?
    /// The number of pixels for each frame, from 1 to 64.
    public var slitWidth: Int
    /// The time of the ruler's zero in the movie; nil for the start of the range.
    public var origin: MediaTime?
    /// Whether time runs to the left, as for runners who come from the right.
    public var isReversed: Bool

    /// Creates settings.
    public init(
      column: Int? = nil, slitWidth: Int = 2, origin: MediaTime? = nil, isReversed: Bool = false
    ) {
      (self.column, self.slitWidth, self.origin) = (column, slitWidth, origin)
      self.isReversed = isReversed
    }
  }

  /// Makes a photo finish: the finish line's column of each frame, side by side, above a ruler in
  /// milliseconds of real time.
  ///
  /// The time axis is even in capture time. A lost frame shows the one before it, so no time is missing.
  ///
  /// - Parameter settings: The finish line and the ruler.
  /// - Returns: The image; ``StillImage/frames`` has the part of each frame that is shown.
  /// - Throws: `MediaError` with `.outsideSource` for a column outside the frame, and for a range or an
  ///   origin beyond a cut of the movie, `.imageTooLarge` for a range of too many frames, `.invalidData` for a frame that cannot be decoded, or
  ///   `.cancelled`.
  public func photoFinish(
    _ settings: FinishSettings = FinishSettings()
  ) throws(MediaError) -> StillImage {
    let all = try indices
    guard let frames = asset.videoTrack?.frames, let first = all.first else {
      throw MediaError(.outsideSource, "\(asset.path) has no frame in this range")
    }
    var reader = try UprightFrames(asset, isColor: true)
    let start = try reader.image(at: first)
    let column = settings.column ?? start.width / 2
    guard (0..<start.width).contains(column) else {
      throw MediaError(
        .outsideSource,
        "the column \(column) is outside \(asset.path), which is \(start.width) pixels wide",
        recovery: "choose a column from 0 to \(start.width - 1)")
    }
    guard let line = CaptureLine(clock, asset, around: range.start),
      let from = clock.seconds(at: range.start),
      let to = clock.seconds(at: range.end)
        ?? clock.seconds(ofFrame: all.upperBound - 1),
      clock.part(ofFrame: first) == clock.part(ofFrame: all.upperBound - 1)
    else {
      throw MediaError(
        .outsideSource,
        "the range of \(asset.path) has a cut, at which the time of the capture jumps",
        recovery: "choose a range between two cuts")
    }
    // The median period, so that lost frames do not stretch the others.
    let period = max(
      1e-9,
      line.period(of: all)?.doubleValue
        ?? Double(max(1, frames.entries[first].duration)) / Double(frames.timescale))
    let slit = max(1, min(settings.slitWidth, 64))
    let begin = min(0, (to - from).doubleValue)
    let length = (to - from).magnitude.doubleValue
    let slots = Int(min(1e6, max(1, (length / period).rounded())))
    let ruler = Self.rulerHeight
    try Self.check(width: slots * slit, height: start.height + ruler)
    var canvas = Canvas(width: slots * slit, height: start.height + ruler)
    var shown: [StillImage.Frame] = []
    var image = start
    for slot in 0..<slots {
      try checkCancelled()
      let middle = ((begin + (Double(slot) + 0.5) * period) * 1e9).rounded()
      let found = line.frame(at: Rational(Int128(middle), over: 1_000_000_000))
      let index = max(first, min(found, all.upperBound - 1))
      if shown.last?.index != index {
        image = try reader.image(at: index)
        guard image.width == start.width, image.height == start.height else { continue }
      }
      let x = (settings.isReversed ? slots - 1 - slot : slot) * slit
      for y in 0..<start.height {
        let from = 3 * (y * image.width + column)
        let color = Canvas.Color(
          image.bytes[from], image.bytes[from + 1], image.bytes[from + 2])
        canvas.fill(x: x..<x + slit, y: y..<y + 1, color)
      }
      shown.append(
        StillImage.Frame(
          index: index, time: try time(of: index),
          box: PixelBox(x: x, y: 0, width: slit, height: start.height)))
    }
    let zero = try origin(settings, part: clock.part(ofFrame: first)) ?? from
    drawRuler(
      on: &canvas, top: start.height, from: (begin - (zero - from).doubleValue) * 1_000,
      perPixel: period * 1_000 / Double(slit), isReversed: settings.isReversed)
    return try StillImage(canvas, frames: shown)
  }

  /// The capture time of the ruler's zero; nil for the start of the range.
  private func origin(
    _ settings: FinishSettings, part: Int?
  ) throws(MediaError) -> Rational? {
    guard let time = settings.origin else { return nil }
    guard let index = asset.videoTrack?.frames.index(at: time), clock.part(ofFrame: index) == part,
      let seconds = clock.seconds(at: time)
    else {
      throw MediaError(
        .outsideSource,
        "the origin \(time.displayText) s is beyond a cut of \(asset.path), or its end",
        recovery: "choose an origin in the part of the range")
    }
    return seconds
  }

  private static let rulerHeight = 28

  /// Draws tick marks at round times, with labels in milliseconds.
  private func drawRuler(
    on canvas: inout Canvas, top: Int, from start: Double, perPixel: Double, isReversed: Bool
  ) {
    canvas.fill(x: 0..<canvas.width, y: top..<top + 1, Canvas.white)
    // The step between labels is the shortest round number that leaves space for the text.
    let steps = (-3...7).flatMap { exponent -> [Double] in
      let power = (0..<abs(exponent)).reduce(1.0) { value, _ in value * 10 }
      return [1, 2, 5].map { exponent < 0 ? $0 / power : $0 * power }
    }
    // Above 1e12 ms, tick marks can no longer be counted exactly, so later times have no ruler.
    guard perPixel > 0, start.magnitude < 1e12,
      let step = steps.first(where: { $0 / perPixel >= 56 })
    else { return }
    let end = start + Double(canvas.width) * perPixel
    var line = (start / step * 5).rounded(.up)
    while line * step / 5 <= end {
      let time = line * step / 5
      // After rounding, a quotient that should be a whole number may be just below this number.
      let distance = Int(((time - start) / perPixel + 1e-6).rounded(.down))
      let x = isReversed ? canvas.width - 1 - distance : distance
      let isMain = line.truncatingRemainder(dividingBy: 5) == 0
      canvas.fill(x: x..<x + 1, y: top..<top + (isMain ? 10 : 5), Canvas.white)
      if isMain {
        let text = Self.milliseconds(time)
        let left = x - Canvas.width(of: text, scale: 1) / 2
        canvas.draw(text, x: max(1, left), y: top + 14, scale: 1)
      }
      line += 1
    }
  }

  /// Formats milliseconds without trailing zeros.
  private static func milliseconds(_ value: Double) -> String {
    let thousandths = Int64((value * 1_000).rounded())
    let (whole, rest) = (thousandths.magnitude / 1_000, thousandths.magnitude % 1_000)
    var digits = String(rest)
    digits = String(repeating: "0", count: 3 - digits.count) + digits
    while digits.last == "0" { digits.removeLast() }
    let sign = thousandths < 0 ? "-" : ""
    return sign + "\(whole)" + (digits.isEmpty ? "" : ".\(digits)") + " ms"
  }
}
