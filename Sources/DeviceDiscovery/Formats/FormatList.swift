// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2

/// The formats of a device, and what of the driver's answers was left out of them.
public struct FormatList: Sendable {
  /// The formats in the driver's order.
  ///
  /// Where sizes come as a range, these are the smallest, the largest, the well-known ones in
  /// between, that of the picture that comes in where it is known, and the one in force.
  public let formats: [CaptureFormat]
  /// The ranges of sizes that formats were listed from.
  public let sizeRanges: [FrameSizeRange]
  /// The device's inputs; nil for a device that does not tell inputs apart.
  public internal(set) var inputs: InputConnectors?
  /// What the driver said that makes no sense, a line each.
  public internal(set) var warnings: [String]
}

/// What answers to the questions of discovery: a device, or a table in a test.
protocol FormatSource: ~Copyable {
  borrowing func formats() throws(DeviceError) -> [V4L2PixelFormat]
  borrowing func sizes(of fourcc: UInt32) throws(DeviceError) -> DriverSizes
  borrowing func intervals(
    of fourcc: UInt32, at size: DriverSize
  ) throws(DeviceError) -> DriverIntervals
  /// The size that the device is set to, where it can tell.
  borrowing func sizeInForce() -> DriverSize?
}

extension VideoDevice: FormatSource {
  borrowing func sizeInForce() -> DriverSize? {
    // Who cannot tell, or is being unplugged, has none to list; the next question tells.
    guard let format = try? currentFormat() else { return nil }
    return DriverSize(width: format.width, height: format.height)
  }
}

/// The picture that comes in at an input, which a device may scale to other sizes.
struct IncomingSignal: Hashable, Sendable {
  let size: ModeRequest.Size
}

extension FormatList {
  /// Asks a driver for all it has, by enumeration only: no request that reaches the camera.
  ///
  /// - Parameters:
  ///   - source: The driver.
  ///   - wanted: A size that somebody asks for; listed, too, where it lies in a range.
  ///   - incoming: The picture that comes in, where it is known.
  /// - Throws: `DeviceError` when the device is gone.
  init(
    asking source: borrowing some FormatSource & ~Copyable, for wanted: ModeRequest.Size? = nil,
    incoming: IncomingSignal? = nil
  ) throws(DeviceError) {
    var collector = FormatCollector()
    var sizeRanges: [FrameSizeRange] = []
    var others: [ModeRequest.Size]?
    for format in try source.formats() {
      let fourcc = FourCC(rawValue: format.fourcc)
      let range: FrameSizeRange?
      switch try source.sizes(of: format.fourcc) {
      case .discrete(let sizes):
        if sizes.isEmpty { collector.warn(format, nil, "the driver lists no frame sizes") }
        for size in sizes {
          guard size.isSensible else {
            collector.warn(format, size, "this is no frame size")
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
        collector.warn(format, nil, "the driver's range of frame sizes is none")
        continue
      }
      sizeRanges.append(range)
      if others == nil {
        let inForce = source.sizeInForce().map { ModeRequest.Size($0) }
        others = [inForce, incoming?.size, wanted].compactMap(\.self)
      }
      for size in range.sizesToList(besides: others ?? []) {
        guard let asked = size.driverSize else { continue }
        collector.add(
          try source.intervals(of: format.fourcc, at: asked), of: format, at: asked,
          incoming: incoming, isOfRange: true)
      }
    }
    self.init(
      formats: collector.withUniqueIDs(), sizeRanges: sizeRanges, warnings: collector.warnings)
  }

  init(formats: [CaptureFormat]) { self.init(formats: formats, sizeRanges: [], warnings: []) }
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
    _ intervals: DriverIntervals, of format: V4L2PixelFormat, at size: DriverSize,
    incoming: IncomingSignal? = nil, isOfRange: Bool = false
  ) {
    let picture = Picture(fourcc: format.fourcc, size: size)
    func add(_ range: FrameRateRange) {
      let isBeyond = isOfRange && range.exceedsSource(at: size, incoming)
      keep(range, of: format, picture, exceedsSource: isBeyond)
    }
    switch intervals {
    case .discrete(let single):
      if single.isEmpty { warn(format, size, "the driver lists no frame rates") }
      for interval in single {
        guard let rate = FrameRate(interval: interval) else {
          warn(format, size, "\(interval) s is no frame duration")
          continue
        }
        add(FrameRateRange(rate))
      }
    case .stepwise(let shortest, let longest, let step):
      guard let range = FrameRateRange(shortest, longest, step: step) else {
        warn(format, size, "\(shortest) s to \(longest) s is no range of frame durations")
        return
      }
      add(range)
    case .continuous(let shortest, let longest):
      guard let range = FrameRateRange(shortest, longest, step: nil) else {
        warn(format, size, "\(shortest) s to \(longest) s is no range of frame durations")
        return
      }
      add(range)
    }
  }

  /// Keeps a range unless the driver has said as much: UVC cameras list a size several times.
  private mutating func keep(
    _ range: FrameRateRange, of format: V4L2PixelFormat, _ picture: Picture, exceedsSource: Bool
  ) {
    let known = ranges[picture, default: []]
    guard !known.contains(where: { $0.contains(range) }) else { return }
    var range = range
    let fourcc = FourCC(rawValue: format.fourcc)
    let (width, height) = (Int(picture.size.width), Int(picture.size.height))
    // Two ranges with the same highest rate and different steps would be one mode by name.
    if let other = known.first(where: { $0.maxFrameRate == range.maxFrameRate }) {
      range = range.joined(other)
    }
    let replaced = known.filter(range.contains)
    ranges[picture] = known.filter { !range.contains($0) } + [range]
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
        driverOrder: nextOrder))
    nextOrder += 1
  }

  mutating func warn(_ format: V4L2PixelFormat, _ size: DriverSize?, _ what: String) {
    let position = size.map { " \($0.width)x\($0.height)" } ?? ""
    warnings.append("\(FourCC(rawValue: format.fourcc))\(position): \(what); left out")
  }

  /// The formats in order; where two ids differ by large and small letters only, with those.
  func withUniqueIDs() -> [CaptureFormat] {
    var counts: [String: Int] = [:]
    for format in formats { counts[format.id, default: 0] += 1 }
    return formats.map { counts[$0.id] == 1 ? $0 : $0.withExactID() }
  }
}

extension FrameRateRange {
  /// The range of a driver's frame durations, the shortest first, if it is one.
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

  /// The range that holds this one and another, which has the same highest rate.
  fileprivate func joined(_ other: FrameRateRange) -> FrameRateRange {
    let lower = min(minFrameRate, other.minFrameRate)
    let widest = FrameRateRange(lower, maxFrameRate, frameDurationStep: frameDurationStep)
    return widest.contains(self) && widest.contains(other)
      ? widest : FrameRateRange(lower, maxFrameRate)
  }

  /// Pixels a second that no camera and no cable gives: 8K at 60, the most of HDMI 2.1.
  private static let mostPixels = Rational(7680 * 4320 * 60 as Int64)

  /// Whether a size of a range, at this range's highest rate, is more than can come in.
  ///
  /// Where the picture that comes in is known, no larger one is real. Where it is not, the limit
  /// is what comes through the widest cable.
  fileprivate func exceedsSource(at size: DriverSize, _ incoming: IncomingSignal?) -> Bool {
    if let known = incoming?.size {
      return size.width > known.width || size.height > known.height
    }
    let area = Rational(Int64(size.width) * Int64(size.height))
    // What is too large to be counted is greater, too.
    return area * maxFrameRate.framesPerSecond > Self.mostPixels
  }
}

extension FrameRate {
  /// The rate of frames that follow each other at a driver's interval, if it is one.
  fileprivate init?(interval: DriverFraction) {
    self.init(
      exactly: Rational(Int128(interval.denominator), over: Int128(interval.numerator)))
  }
}
