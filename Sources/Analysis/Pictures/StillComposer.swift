// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore
import OvercrankRaster

/// Makes one image of many frames of a movie.
///
/// Frames are shown as players rotate them. If the size changes within the movie, frames of other sizes
/// are scaled to the size of the first one. Blocks the calling thread, which may be any.
public struct StillComposer: Sendable {
  /// The range of the movie that the frames come from.
  public let range: TimeRange
  let asset: Asset
  /// The capture times of the movie.
  let clock: CaptureClock
  let isCancelled: @Sendable () -> Bool

  /// The greatest number of pixels of an image.
  static let maximumPixels = 128 << 20

  /// Prepares images of a range.
  ///
  /// - Parameters:
  ///   - asset: The movie.
  ///   - range: The range in the movie's time; nil for all of it.
  ///   - clock: The capture times; nil for those that the file states, or its own times.
  ///   - isCancelled: Polled between frames.
  /// - Throws: `MediaError` with `.invalidData` for an asset without video, `.outsideSource` for a
  ///   range without a frame.
  public init(
    _ asset: Asset, range: TimeRange? = nil, clock: CaptureClock? = nil,
    isCancelled: @escaping @Sendable () -> Bool = { false }
  ) throws(MediaError) {
    guard let track = asset.videoTrack else {
      throw MediaError(
        .invalidData, "\(asset.path) contains no video", recovery: "choose a movie with video")
    }
    let whole = try TimeRange(duration: asset.duration)
    guard let shown = range.map({ $0.intersection(whole) }) ?? whole, !shown.isEmpty,
      track.frames.index(at: shown.start) != nil
    else {
      throw MediaError(
        .outsideSource, "the range is outside \(asset.path)",
        recovery: "it ends at \(asset.duration.displayText) s")
    }
    (self.asset, self.range, self.isCancelled) = (asset, shown, isCancelled)
    if let clock = clock ?? (try? asset.captureClock()) {
      self.clock = clock
    } else {
      self.clock = try asset.captureClock(.file)
    }
  }

  /// The indices of the frames that are shown in the range.
  var indices: Range<Int> {
    get throws(MediaError) {
      guard let frames = asset.videoTrack?.frames, let first = frames.index(at: range.start) else {
        return 0..<0
      }
      // A frame that begins at the end of the range is not in the range.
      let last = frames.entries.indices.last { index in
        MediaTime(frames.entries[index].ticks, over: frames.timescale) < range.end
      }
      return first..<max(first, last ?? first) + 1
    }
  }

  func time(of index: Int) throws(MediaError) -> MediaTime {
    guard let frames = asset.videoTrack?.frames else { return .zero }
    return try frames.time(ofFrame: Int64(index))
  }

  /// Returns the indices of frames spread evenly over the range, with the first and the last one.
  func spread(_ count: Int) throws(MediaError) -> [Int] {
    let all = try indices
    guard count < all.count else { return Array(all) }
    guard count > 1 else { return [all.lowerBound] }
    return (0..<count).map {
      all.lowerBound + ($0 * (all.count - 1) * 2 + count - 1) / (2 * (count - 1))
    }
  }

  /// The frames shown at the start of the range, and at every multiple of a duration of capture time
  /// after it, up to the next cut.
  func frames(every step: MediaTime) throws(MediaError) -> [Int] {
    guard step > .zero else {
      throw MediaError(
        .notPositive, "a step of \(step.displayText) s is not above zero",
        recovery: "choose a longer step")
    }
    let all = try indices
    guard let first = all.first, let line = CaptureLine(clock, asset, around: range.start),
      let start = clock.seconds(at: range.start)
    else { return [] }
    let last = all.last { clock.part(ofFrame: $0) == clock.part(ofFrame: first) } ?? first
    let end = last + 1 == all.upperBound ? clock.seconds(at: range.end) : nil
    let frames = line.frames(every: step.seconds, until: end.map { $0 - start } ?? line.end)
    return Array(frames.lazy.filter(all.contains).prefix(10_000))
  }

  func checkCancelled() throws(MediaError) {
    if isCancelled() { throw .readingCancelled(asset) }
  }

  /// Throws for an image that is too large.
  static func check(width: Int, height: Int) throws(MediaError) {
    let (pixels, overflow) = width.multipliedReportingOverflow(by: height)
    guard width > 0, height > 0, width <= 65_500, height <= 65_500, !overflow,
      pixels <= maximumPixels
    else {
      throw MediaError(
        .imageTooLarge, "cannot create an image of \(width)x\(height) pixels",
        recovery: "choose fewer or smaller frames")
    }
  }
}

extension MediaError.Code {
  /// An image would have too many pixels.
  public static let imageTooLarge = Self(rawValue: "image_too_large")
}

extension StillComposer {
  /// The settings of a contact sheet.
  public struct SheetSettings: Hashable, Sendable {
    /// The number of frames, spread evenly over the range.
    public var count: Int
    /// The number of frames in a row; nil for a sheet with a shape of about 4:3.
    public var columns: Int?
    /// The width of a frame in pixels; nil for 240, or the movie's own width if it is smaller.
    public var frameWidth: Int?
    /// Whether each frame has its time and its index below it.
    public var hasLabels: Bool

    /// Creates settings.
    public init(
      count: Int = 12, columns: Int? = nil, frameWidth: Int? = nil, hasLabels: Bool = true
    ) {
      (self.count, self.columns) = (count, columns)
      (self.frameWidth, self.hasLabels) = (frameWidth, hasLabels)
    }
  }

  /// Makes a contact sheet: small frames in rows, each with its time.
  ///
  /// - Parameter settings: The number and size of the frames.
  /// - Returns: The image; ``StillImage/frames`` has the frames in reading order.
  /// - Throws: `MediaError` with `.imageTooLarge`, `.invalidData` for a frame that cannot be
  ///   decoded, or `.cancelled`.
  public func contactSheet(_ settings: SheetSettings = SheetSettings()) throws(MediaError)
    -> StillImage
  {
    let chosen = try spread(max(1, min(settings.count, 10_000)))
    var reader = try UprightFrames(asset, isColor: true)
    let first = try reader.image(at: chosen.first ?? 0)
    let width = max(16, min(settings.frameWidth ?? min(240, first.width), 16_384))
    let height = max(1, (first.height * width + first.width / 2) / first.width)
    reader.scale(toWidth: width, height: height)
    let scale = Canvas.textScale(forWidth: width * 2)
    let label = settings.hasLabels ? Canvas.textHeight(scale: scale) + 6 * scale : 0
    let gap = 2 * scale
    let columns = max(1, min(settings.columns ?? Self.columns(chosen.count, width, height), 1_000))
    let used = min(columns, chosen.count)
    let rows = (chosen.count + columns - 1) / columns
    let size = (
      width: used * (width + gap) + gap, height: rows * (height + label + gap) + gap
    )
    try Self.check(width: size.width, height: size.height)
    var canvas = Canvas(width: size.width, height: size.height)
    var frames: [StillImage.Frame] = []
    for (number, index) in chosen.enumerated() {
      try checkCancelled()
      let x = gap + number % columns * (width + gap)
      let y = gap + number / columns * (height + label + gap)
      canvas.draw(try reader.image(at: index), x: x, y: y)
      let time = try time(of: index)
      if settings.hasLabels {
        let full = "\(Self.text(time)) s  #\(index)"
        let text =
          Canvas.width(of: full, scale: scale) <= width ? full : "\(Self.text(time)) s"
        canvas.draw(text, x: x + scale, y: y + height + 3 * scale, scale: scale)
      }
      frames.append(
        StillImage.Frame(
          index: index, time: time, box: PixelRect(x: x, y: y, width: width, height: height)))
    }
    return try StillImage(canvas, frames: frames)
  }

  /// The number of columns of a sheet with a shape of about 4:3.
  private static func columns(_ count: Int, _ width: Int, _ height: Int) -> Int {
    (1...max(1, count)).first { columns in
      let rows = (count + columns - 1) / columns
      return columns * width * 3 >= rows * height * 4
    } ?? count
  }

  /// A time in seconds with three digits after the point.
  static func text(_ time: MediaTime) -> String {
    let microseconds = max(0, time.wholeMicroseconds)
    let milliseconds = microseconds / 1_000 + (microseconds % 1_000 >= 500 ? 1 : 0)
    return Rational.decimals(milliseconds, count: 3)
  }

  /// The frames of a strobe image.
  public enum StrobeFrames: Hashable, Sendable {
    /// A number of frames, spread evenly over the range.
    case count(Int)
    /// The frames shown at the start of the range, and at every multiple of a duration after it.
    case every(MediaTime)
  }

  /// Makes a strobe image: moving objects are shown at several times, over the still background.
  ///
  /// The background is the median of up to 15 frames of the range, so it shows no object that is at
  /// the same position in fewer than half of these frames. The camera must not move.
  ///
  /// - Parameter frames: The frames whose moving parts are shown.
  /// - Returns: The image; ``StillImage/frames`` has the frames in order.
  /// - Throws: `MediaError` with `.imageTooLarge`, `.notPositive` for a step that is not above zero,
  ///   `.invalidData` for a frame that cannot be decoded, or `.cancelled`.
  public func strobe(_ frames: StrobeFrames = .count(8)) throws(MediaError) -> StillImage {
    let chosen =
      switch frames {
      case .count(let count): try spread(max(1, min(count, 1_000)))
      case .every(let step): try self.frames(every: step)
      }
    return try composite(chosen) { _ in 1 }
  }

  /// Makes a trail: moving objects are shown at all their positions, older ones fainter.
  ///
  /// - Returns: The image; ``StillImage/frames`` has the frames in order.
  /// - Throws: `MediaError` as ``strobe(_:)`` does.
  public func trail() throws(MediaError) -> StillImage {
    let all = Array(try indices)
    let count = Float(max(1, all.count - 1))
    return try composite(all) { 0.25 + 0.75 * Float($0) / count }
  }

  /// Draws the moving parts of frames over the background; later frames are on top.
  private func composite(
    _ chosen: [Int], weight: (Int) -> Float
  ) throws(MediaError) -> StillImage {
    var reader = try UprightFrames(asset, isColor: true)
    let background = try background(&reader)
    var canvas = Canvas(background)
    var frames: [StillImage.Frame] = []
    for (number, index) in chosen.enumerated() {
      try checkCancelled()
      let image = try reader.image(at: index)
      let share = weight(number)
      for pixel in 0..<image.width * image.height {
        let start = 3 * pixel
        var distance = 0
        for channel in start..<start + 3 {
          distance += abs(Int(image.bytes[channel]) - Int(background.bytes[channel]))
        }
        // A difference from the background of up to 36 levels, summed over the three channels, is
        // noise. From 36 to 72, as at an object's edge, the opacity rises.
        guard distance > 36 else { continue }
        let opacity = share * min(1, Float(distance - 36) / 36)
        for channel in start..<start + 3 {
          let (old, new) = (Float(canvas.bytes[channel]), Float(image.bytes[channel]))
          canvas.bytes[channel] = UInt8(old + (new - old) * opacity)
        }
      }
      frames.append(
        StillImage.Frame(
          index: index, time: try time(of: index),
          box: PixelRect(x: 0, y: 0, width: image.width, height: image.height)))
    }
    return try StillImage(canvas, frames: frames)
  }

  /// The median of frames spread over the range, for each pixel and channel.
  private func background(
    _ reader: inout UprightFrames
  ) throws(MediaError) -> UprightFrames.Image {
    var images: [UprightFrames.Image] = []
    for index in try spread(15) {
      try checkCancelled()
      images.append(try reader.image(at: index))
      guard images.count == 1 else { continue }
      try Self.check(width: images[0].width, height: images[0].height)
      reader.scale(toWidth: images[0].width, height: images[0].height)
    }
    guard var result = images.first else {
      throw MediaError(.outsideSource, "\(asset.path) has no frame in this range")
    }
    var values = [UInt8](repeating: 0, count: images.count)
    for index in result.bytes.indices {
      for (number, image) in images.enumerated() {
        // An insertion sort of up to 15 numbers.
        let value = image.bytes[index]
        var position = number
        while position > 0, values[position - 1] > value {
          values[position] = values[position - 1]
          position -= 1
        }
        values[position] = value
      }
      result.bytes[index] = values[images.count / 2]
    }
    return result
  }

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
  ///   origin beyond a cut of the movie, `.imageTooLarge` for a range of too many frames, `.invalidData`
  ///   for a frame that cannot be decoded, or `.cancelled`.
  public func photoFinish(
    _ settings: FinishSettings = FinishSettings()
  ) throws(MediaError) -> StillImage {
    let all = try indices
    guard let frames = asset.videoTrack?.frames, let first = all.first else {
      throw MediaError(.outsideSource, "\(asset.path) has no frame in this range")
    }
    var reader = try UprightFrames(asset, isColor: true)
    let start = try reader.image(at: first)
    reader.scale(toWidth: start.width, height: start.height)
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
      if shown.last?.index != index { image = try reader.image(at: index) }
      let x = (settings.isReversed ? slots - 1 - slot : slot) * slit
      for y in 0..<start.height {
        let from = 3 * (y * image.width + column)
        let color = Color(
          red: image.bytes[from], green: image.bytes[from + 1], blue: image.bytes[from + 2])
        canvas.fill(x: x..<x + slit, y: y..<y + 1, color)
      }
      shown.append(
        StillImage.Frame(
          index: index, time: try time(of: index),
          box: PixelRect(x: x, y: 0, width: slit, height: start.height)))
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
    // The step between labels is the shortest round number that leaves space for the text. A label
    // at an edge of the canvas is moved by half of its width at most.
    let steps = (-3...7).flatMap { exponent -> [Double] in
      let power = (0..<abs(exponent)).reduce(1.0) { value, _ in value * 10 }
      return [1, 2, 5].map { exponent < 0 ? $0 / power : $0 * power }
    }
    // Above 1e12 ms, tick marks can no longer be counted exactly, so later times have no ruler.
    guard perPixel > 0, start.magnitude < 1e12 else { return }
    let end = start + Double(canvas.width) * perPixel
    func labelWidth(_ step: Double) -> Int {
      // The next to the last label may have more digits than the last one.
      [start, start + step, end - step, end].map {
        Canvas.width(of: Self.milliseconds(($0 / step).rounded(.down) * step), scale: 1)
      }.max() ?? 0
    }
    guard
      let step = steps.first(where: {
        $0 / perPixel >= max(56, 1.5 * Double(labelWidth($0)) + 6)
      })
    else { return }
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
        let width = Canvas.width(of: text, scale: 1)
        let left = max(1, min(x - width / 2, canvas.width - width - 1))
        if left + width < canvas.width { canvas.draw(text, x: left, y: top + 14, scale: 1) }
      }
      line += 1
    }
  }

  /// Formats milliseconds without trailing zeros.
  private static func milliseconds(_ value: Double) -> String {
    Rational.decimals(Int64((value * 1_000).rounded()), count: 3, trimsZeros: true) + " ms"
  }
}
