// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2

/// The formats of a device, with warnings about invalid driver data.
public struct FormatList: Sendable {
  /// The formats in the driver's order.
  ///
  /// For a range of sizes, these are the smallest, the largest, common sizes in between, the size
  /// of the incoming signal, and the current size.
  public let formats: [CaptureFormat]
  /// The size ranges from which formats were derived.
  public let sizeRanges: [FrameSizeRange]
  /// The device's inputs, or nil for a device without input selection.
  public internal(set) var inputs: InputConnectors?
  /// One line of text for each invalid entry in the driver's lists.
  public internal(set) var warnings: [String]
}

/// A source of lists of formats, sizes and frame intervals: a device, or a table in a test.
protocol FormatSource: ~Copyable {
  borrowing func formats() throws(CallFailure) -> [V4L2PixelFormat]
  borrowing func sizes(of fourcc: UInt32) throws(CallFailure) -> DriverSizes
  borrowing func intervals(
    of fourcc: UInt32, at size: VideoSize
  ) throws(CallFailure) -> DriverIntervals
  /// The current frame size, or nil if the source cannot report it.
  borrowing func sizeInForce() -> VideoSize?
}

extension VideoDevice: FormatSource {
  borrowing func sizeInForce() -> VideoSize? {
    // If the format cannot be read, no current size is listed. A lost device is not reported here,
    // because the next request reports it.
    guard let format = try? currentFormat() else { return nil }
    return VideoSize(format.width, format.height)
  }
}

/// The size of the incoming video signal.
///
/// The device may scale it.
struct IncomingSignal: Hashable, Sendable {
  let size: VideoSize
}

extension FormatList {
  /// Queries all formats of a driver by enumeration only, without requests to the camera.
  ///
  /// - Parameters:
  ///   - source: The driver.
  ///   - wanted: A requested size. If it lies in a range, it is listed too.
  ///   - incoming: The size of the incoming signal, if known.
  ///   - capabilities: The ranges of the camera's controls.
  /// - Throws: `CallFailure` if the device is lost.
  init(
    asking source: borrowing some FormatSource & ~Copyable, for wanted: VideoSize? = nil,
    incoming: IncomingSignal? = nil, capabilities: FormatCapabilities = FormatCapabilities()
  ) throws(CallFailure) {
    var collector = FormatCollector(capabilities: capabilities)
    var sizeRanges: [FrameSizeRange] = []
    var others: [VideoSize]?
    for format in try source.formats() {
      let fourcc = FourCC(rawValue: format.fourcc)
      let range: FrameSizeRange?
      switch try source.sizes(of: format.fourcc) {
      case .discrete(let sizes):
        if sizes.isEmpty { collector.warn(format, nil, "the driver lists no frame sizes") }
        for size in sizes {
          guard size.isSensible else {
            collector.warn(format, size, "not a valid frame size")
            continue
          }
          collector.add(try source.intervals(of: format.fourcc, at: size), of: format, at: size)
        }
        continue
      case .stepwise(let smallest, let largest, let step):
        range = FrameSizeRange(fourcc, smallest, largest, step: step)
      case .continuous(let smallest, let largest):
        range = FrameSizeRange(fourcc, smallest, largest, step: nil)
      }
      guard let range else {
        collector.warn(format, nil, "the driver's range of frame sizes is invalid")
        continue
      }
      sizeRanges.append(range)
      if others == nil {
        others = [source.sizeInForce(), incoming?.size, wanted].compactMap(\.self)
      }
      for size in range.sizesToList(besides: others ?? []) {
        collector.add(
          try source.intervals(of: format.fourcc, at: size), of: format, at: size,
          incoming: incoming, isOfRange: true)
      }
    }
    self.init(
      formats: collector.withUniqueIDs(), sizeRanges: sizeRanges, warnings: collector.warnings)
  }

  init(formats: [CaptureFormat]) { self.init(formats: formats, sizeRanges: [], warnings: []) }
}

/// Converts a driver's enumerations to formats, one entry at a time.
private struct FormatCollector {
  private struct SizedFormat: Hashable {
    let fourcc: UInt32
    let size: VideoSize
  }

  let capabilities: FormatCapabilities
  private var formats: [CaptureFormat] = []
  private var nextOrder = 0
  private var ranges: [SizedFormat: [FrameRateRange]] = [:]
  private(set) var warnings: [String] = []

  init(capabilities: FormatCapabilities) { self.capabilities = capabilities }

  mutating func add(
    _ intervals: DriverIntervals, of format: V4L2PixelFormat, at size: VideoSize,
    incoming: IncomingSignal? = nil, isOfRange: Bool = false
  ) {
    let key = SizedFormat(fourcc: format.fourcc, size: size)
    func add(_ range: FrameRateRange) {
      let isBeyond = isOfRange && range.exceedsSource(at: size, incoming)
      keep(range, of: format, key, exceedsSource: isBeyond)
    }
    switch intervals {
    case .discrete(let single):
      if single.isEmpty { warn(format, size, "the driver lists no frame rates") }
      for interval in single {
        guard let rate = FrameRate(interval: interval) else {
          warn(format, size, "\(interval) s is not a valid frame duration")
          continue
        }
        add(FrameRateRange(rate))
      }
    case .stepwise(let shortest, let longest, let step):
      guard let range = FrameRateRange(shortest, longest, step: step) else {
        warn(format, size, "\(shortest) s to \(longest) s is not a valid range of frame durations")
        return
      }
      add(range)
    case .continuous(let shortest, let longest):
      guard let range = FrameRateRange(shortest, longest, step: nil) else {
        warn(format, size, "\(shortest) s to \(longest) s is not a valid range of frame durations")
        return
      }
      add(range)
    }
  }

  /// Adds a format with a range of frame rates, unless a known format of this size and pixel format
  /// already contains the range.
  ///
  /// UVC cameras list some sizes several times.
  private mutating func keep(
    _ range: FrameRateRange, of format: V4L2PixelFormat, _ key: SizedFormat, exceedsSource: Bool
  ) {
    let known = ranges[key, default: []]
    guard !known.contains(where: { $0.contains(range) }) else { return }
    var range = range
    let fourcc = FourCC(rawValue: format.fourcc)
    let (width, height) = (key.size.width, key.size.height)
    // The id contains the highest rate. Two ranges of rates with the same highest rate would have
    // the same id, so the ranges are merged.
    if let other = known.first(where: { $0.maxFrameRate == range.maxFrameRate }) {
      range = range.joined(other)
    }
    let replaced = known.filter(range.contains)
    ranges[key] = known.filter { !range.contains($0) } + [range]
    if !replaced.isEmpty {
      formats.removeAll {
        $0.fourcc == fourcc && $0.width == width && $0.height == height
          && replaced.contains($0.frameRateRange)
      }
    }
    formats.append(
      CaptureFormat(
        fourcc: fourcc, width: width, height: height, isCompressed: format.isCompressed,
        isEmulated: format.isEmulated, exceedsSource: exceedsSource, frameRateRange: range,
        driverOrder: nextOrder, capabilities: capabilities))
    nextOrder += 1
  }

  mutating func warn(_ format: V4L2PixelFormat, _ size: VideoSize?, _ what: String) {
    let position = size.map { " \($0)" } ?? ""
    warnings.append("\(FourCC(rawValue: format.fourcc))\(position): \(what); left out")
  }

  /// The formats in order, with unique ids.
  ///
  /// Ids are usually in lower case. If two pixel formats differ only in case, the ids of both keep
  /// the case.
  func withUniqueIDs() -> [CaptureFormat] {
    var counts: [String: Int] = [:]
    for format in formats { counts[format.id, default: 0] += 1 }
    return formats.map { counts[$0.id] == 1 ? $0 : $0.withExactID() }
  }
}

extension FrameRateRange {
  /// Creates a range from a driver's shortest and longest frame duration, or returns nil if these
  /// durations are invalid.
  fileprivate init?(_ shortest: DriverFraction, _ longest: DriverFraction, step: DriverFraction?) {
    guard let highest = FrameRate(interval: shortest), let lowest = FrameRate(interval: longest),
      lowest <= highest
    else { return nil }
    var duration: MediaTime?
    if let step, step.numerator > 0, step.denominator > 0 {
      duration = try? MediaTime(Rational(Int128(step.numerator), over: Int128(step.denominator)))
    }
    self.init(lowest, highest, frameDurationStep: duration)
  }

  /// The smallest range that contains this range and another range with the same highest rate.
  fileprivate func joined(_ other: FrameRateRange) -> FrameRateRange {
    let lower = min(minFrameRate, other.minFrameRate)
    let widest = FrameRateRange(lower, maxFrameRate, frameDurationStep: frameDurationStep)
    return widest.contains(self) && widest.contains(other)
      ? widest : FrameRateRange(lower, maxFrameRate)
  }

  /// The greatest pixel rate of HDMI 2.1: 7680x4320 pixels at 60 fps.
  private static let maximumPixels = Rational(7680 * 4320 * 60 as Int64)

  /// Whether a frame size, at the highest rate of this range, exceeds the incoming signal.
  ///
  /// If the size of the signal is unknown, the limit is the greatest pixel rate of HDMI 2.1.
  fileprivate func exceedsSource(at size: VideoSize, _ incoming: IncomingSignal?) -> Bool {
    if let known = incoming?.size {
      return size.width > known.width || size.height > known.height
    }
    let area = Rational(Int64(size.width) * Int64(size.height))
    // If the pixel rate overflows, the rational is invalid. An invalid rational compares as greater
    // than any limit, so the size counts as larger than the signal.
    return area * maxFrameRate.framesPerSecond > Self.maximumPixels
  }
}

extension FrameRate {
  /// Creates a rate from a driver's frame interval, or returns nil if the interval is invalid.
  fileprivate init?(interval: DriverFraction) {
    self.init(
      exactly: Rational(Int128(interval.denominator), over: Int128(interval.numerator)))
  }
}
