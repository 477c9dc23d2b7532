// SPDX-License-Identifier: Apache-2.0
import MediaTiming
import V4L2

/// The formats of a device, and what of the driver's answers was left out of them.
public struct FormatList: Sendable {
  /// The formats in the driver's order.
  public let formats: [CaptureFormat]
  /// What the driver said that makes no sense, a line each.
  public let warnings: [String]
}

/// What answers to the questions of discovery: a device, or a table in a test.
protocol FormatSource: ~Copyable {
  borrowing func formats() throws(DeviceError) -> [V4L2PixelFormat]
  borrowing func sizes(of fourcc: UInt32) throws(DeviceError) -> DriverSizes
  borrowing func intervals(
    of fourcc: UInt32, at size: DriverSize
  ) throws(DeviceError) -> DriverIntervals
}

extension VideoDevice: FormatSource {}

extension FormatList {
  /// Asks a driver for all it has, by enumeration only: no request that reaches the camera.
  ///
  /// Where sizes come as a range, the smallest and the largest are listed.
  init(asking source: borrowing some FormatSource & ~Copyable) throws(DeviceError) {
    var collector = FormatCollector()
    for format in try source.formats() {
      let sizes: [DriverSize]
      switch try source.sizes(of: format.fourcc) {
      case .discrete(let single): sizes = single
      case .stepwise(let smallest, let largest, _), .continuous(let smallest, let largest):
        sizes = smallest == largest ? [smallest] : [smallest, largest]
      }
      if sizes.isEmpty { collector.warn(format, nil, "the driver lists no frame sizes") }
      for size in sizes {
        guard size.isSensible else {
          collector.warn(format, size, "this is no frame size")
          continue
        }
        collector.add(try source.intervals(of: format.fourcc, at: size), of: format, at: size)
      }
    }
    self.init(formats: collector.withUniqueIDs(), warnings: collector.warnings)
  }
}

/// Turns a driver's answers into formats, one at a time.
private struct FormatCollector {
  private struct Picture: Hashable {
    let fourcc: UInt32
    let size: DriverSize
  }

  private var formats: [CaptureFormat] = []
  private var nextOrder = 0
  private var ranges: [Picture: [FrameRateRange]] = [:]
  private(set) var warnings: [String] = []

  mutating func add(
    _ intervals: DriverIntervals, of format: V4L2PixelFormat, at size: DriverSize
  ) {
    switch intervals {
    case .discrete(let single):
      if single.isEmpty { warn(format, size, "the driver lists no frame rates") }
      for interval in single {
        guard let rate = FrameRate(interval: interval) else {
          warn(format, size, "\(interval) s is no frame duration")
          continue
        }
        add(FrameRateRange(rate), of: format, at: size)
      }
    case .stepwise(let shortest, let longest, _), .continuous(let shortest, let longest):
      guard let highest = FrameRate(interval: shortest), let lowest = FrameRate(interval: longest),
        lowest <= highest
      else {
        warn(format, size, "\(shortest) s to \(longest) s is no range of frame durations")
        return
      }
      add(FrameRateRange(lowest, highest), of: format, at: size)
    }
  }

  /// Keeps a range unless the driver has said as much: UVC cameras list a size several times.
  private mutating func add(
    _ range: FrameRateRange, of format: V4L2PixelFormat, at size: DriverSize
  ) {
    let picture = Picture(fourcc: format.fourcc, size: size)
    let known = ranges[picture, default: []]
    guard !known.contains(where: { $0.contains(range) }) else { return }
    let replaced = known.filter(range.contains)
    ranges[picture] = known.filter { !range.contains($0) } + [range]
    let fourcc = FourCC(rawValue: format.fourcc)
    let (width, height) = (Int(size.width), Int(size.height))
    if !replaced.isEmpty {
      formats.removeAll {
        $0.fourcc == fourcc && $0.width == width && $0.height == height
          && replaced.contains($0.frameRateRange)
      }
    }
    formats.append(
      CaptureFormat(
        fourcc: fourcc, width: width, height: height, isCompressed: format.isCompressed,
        isEmulated: format.isEmulated, frameRateRange: range, driverOrder: nextOrder))
    nextOrder += 1
  }

  mutating func warn(_ format: V4L2PixelFormat, _ size: DriverSize?, _ what: String) {
    let place = size.map { " \($0.width)x\($0.height)" } ?? ""
    warnings.append("\(FourCC(rawValue: format.fourcc))\(place): \(what); left out")
  }

  /// The formats in order; where two ids differ by large and small letters only, with those.
  func withUniqueIDs() -> [CaptureFormat] {
    var counts: [String: Int] = [:]
    for format in formats { counts[format.id, default: 0] += 1 }
    return formats.map { counts[$0.id] == 1 ? $0 : $0.withExactID() }
  }
}

extension DriverSize {
  /// Whether both sides are above zero and fit the 32 bits that everybody else counts in.
  fileprivate var isSensible: Bool {
    let sides = 1...UInt32(Int32.max)
    return sides.contains(width) && sides.contains(height)
  }
}

extension FrameRate {
  /// The rate of frames that follow each other at a driver's interval, if it is one.
  fileprivate init?(interval: DriverFraction) {
    guard interval.numerator > 0,
      let rate = try? FrameRate(Int64(interval.denominator), Int64(interval.numerator))
    else { return nil }
    self = rate
  }
}
