// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

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
          index: index, time: time, box: PixelBox(x: x, y: y, width: width, height: height)))
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
    let rest = String(milliseconds % 1_000)
    return "\(milliseconds / 1_000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
  }
}
