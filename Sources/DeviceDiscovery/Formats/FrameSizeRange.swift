// SPDX-License-Identifier: Apache-2.0

public import OvercrankRaster
import OvercrankV4L2

/// A range of frame sizes of a pixel format, on a grid of pixels.
///
/// ``CaptureFormat``s are listed only for selected sizes. Any other size on the grid can be
/// requested, and the driver is then queried for its rates.
public struct FrameSizeRange: Hashable, Sendable, CustomStringConvertible {
  /// The pixel format of the frames.
  public let fourcc: FourCC
  /// The smallest size of the range.
  public let smallest: VideoSize
  /// The largest size of the range.
  public let largest: VideoSize
  /// The horizontal and vertical distance of neighboring sizes, in pixels.
  public let step: VideoSize

  /// Common sizes from QQVGA to 8K.
  static let wellKnown: [VideoSize] = [
    (160, 120), (176, 144), (240, 160), (320, 180), (320, 200), (320, 240), (352, 288),
    (424, 240), (480, 270), (640, 360), (640, 400), (640, 480), (720, 480), (720, 576),
    (800, 480), (800, 600), (848, 480), (960, 540), (960, 720), (1024, 576), (1024, 768),
    (1280, 720), (1280, 800), (1280, 960), (1280, 1024), (1440, 1080), (1600, 900),
    (1600, 1200), (1920, 1080), (1920, 1200), (2048, 1536), (2560, 1440), (2560, 1600),
    (2592, 1944), (3840, 2160), (4096, 2160), (7680, 4320),
  ].map { VideoSize(width: $0, height: $1) }

  /// Creates a range from a driver's values, or returns nil if the values are invalid.
  init?(_ fourcc: FourCC, _ smallest: VideoSize, _ largest: VideoSize, step: VideoSize?) {
    guard smallest.isSensible, largest.isSensible, smallest.width <= largest.width,
      smallest.height <= largest.height
    else { return nil }
    self.fourcc = fourcc
    (self.smallest, self.largest) = (smallest, largest)
    // Drivers report a step of 0 if the range has no sizes between its ends.
    self.step = VideoSize(width: max(1, step?.width ?? 1), height: max(1, step?.height ?? 1))
  }

  /// Whether a size is in the range and on its grid of pixels.
  public func contains(_ size: VideoSize) -> Bool {
    size == largest
      || (smallest.width...largest.width).contains(size.width)
        && (smallest.height...largest.height).contains(size.height)
        && (size.width - smallest.width).isMultiple(of: step.width)
        && (size.height - smallest.height).isMultiple(of: step.height)
  }

  /// The nearest size on the grid.
  ///
  /// Width and height are rounded separately.
  public func nearest(to size: VideoSize) -> VideoSize {
    if contains(size) { return size }
    func side(_ wanted: Int, _ least: Int, _ most: Int, _ step: Int) -> Int {
      let inside = min(max(wanted, least), most) - least
      let steps = min((inside + step / 2) / step, (most - least) / step)
      return least + steps * step
    }
    return VideoSize(
      width: side(size.width, smallest.width, largest.width, step.width),
      height: side(size.height, smallest.height, largest.height, step.height))
  }

  /// The sizes of the range to list: the smallest, the largest, common sizes, and those of the
  /// given sizes that lie on the grid.
  func sizesToList(besides others: [VideoSize]) -> [VideoSize] {
    let between = (Self.wellKnown + others).filter {
      contains($0) && $0 != smallest && $0 != largest
    }
    let middle = Set(between).sorted { ($0.area, $0.width) < ($1.area, $1.width) }
    return smallest == largest ? [smallest] : [smallest] + middle + [largest]
  }

  /// The range as `YUYV 16x16 to 16384x8640 in steps of 2x2`.
  public var description: String {
    "\(fourcc) \(smallest) to \(largest) in steps of \(step)"
  }
}

extension VideoSize {
  /// The number of pixels of a frame.
  ///
  /// Width and height fit a signed 32-bit integer, so the product cannot overflow.
  var area: Int { width * height }

  /// Whether width and height are above zero and fit a signed 32-bit integer.
  var isSensible: Bool {
    let sides = 1...Int(Int32.max)
    return sides.contains(width) && sides.contains(height)
  }
}
