// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
package import OvercrankV4L2

/// Digital video timings, for interfaces such as HDMI.
public struct VideoTimings: Hashable, Sendable, CustomStringConvertible {
  package let driver: DriverTimings

  package init(_ driver: DriverTimings) { self.driver = driver }

  /// The width of the active image, in pixels.
  public var width: Int { Int(driver.width) }
  /// The height of the active image, in lines of both fields.
  public var height: Int { Int(driver.height) }
  /// Whether frames consist of two interlaced fields.
  public var isInterlaced: Bool { driver.isInterlaced }
  /// The pixel clock in hertz, which includes blanking.
  public var pixelClock: UInt64 { driver.pixelClock }
  /// The total width in pixels, including blanking.
  public var totalWidth: Int { Int(driver.totalWidth) }
  /// The total height in lines, including blanking.
  public var totalHeight: Int { Int(driver.totalHeight) }

  /// The exact frame rate, or nil if the timings define none.
  public var frameRate: FrameRate? {
    // The total width and height are sums of a few 32-bit numbers, so their product fits 128 bits.
    let pixels = Int128(driver.totalWidth) * Int128(driver.totalHeight)
    let rate = Rational(Int128(driver.pixelClock), over: pixels)
    let isReduced = driver.flags & DriverTimings.reducedRate != 0
    return FrameRate(exactly: isReduced ? rate * 1000 / 1001 : rate)
  }

  /// The timings in text form, such as `1280x720p 60.000 Hz`.
  ///
  /// Interlaced timings show the field rate.
  public var description: String {
    let rate = (frameRate?.doubleValue ?? 0) * (isInterlaced ? 2 : 1)
    let text = Rational.decimals(Int((rate * 1000).rounded()), count: 3)
    return "\(width)x\(height)\(isInterlaced ? "i" : "p") \(text) Hz"
  }

  /// The amount of blanking in VESA CVT timings.
  public enum Blanking: Int, Hashable, Sendable {
    /// Normal blanking, for cathode-ray tubes.
    case normal = 0
    /// Reduced blanking, CVT-RB, for flat panels.
    case reduced = 1
    /// Reduced blanking version 2, CVT-RB2, with the least blanking.
    case reducedTwice = 2
  }

  /// Computes timings by VESA Coordinated Video Timings 1.2.
  ///
  /// The computation uses integers and whole nanoseconds per line, as v4l2-ctl and the kernel do,
  /// so the results are the same. The pixel clock is rounded to a multiple of 250 kHz, or of 1 kHz
  /// for CVT-RB2. The resulting rate, `frameRate`, therefore differs slightly from the requested
  /// one.
  ///
  /// - Parameters:
  ///   - width: Pixels per line, 1 to 32767.
  ///   - height: Lines, 1 to 32767.
  ///   - framesPerSecond: The rate, 1 to 1000.
  ///   - blanking: The amount of blanking.
  /// - Returns: The timings, or nil if the formula has no solution.
  public static func cvt(
    width: Int, height: Int, framesPerSecond: Int, blanking: Blanking = .normal
  ) -> VideoTimings? {
    guard (1...32_767).contains(width), (1...32_767).contains(height),
      (1...1000).contains(framesPerSecond)
    else { return nil }
    let image = CoordinatedTiming(width: width, height: height, rate: framesPerSecond)
    let timings = blanking == .normal ? image.normal() : image.reduced(blanking)
    return timings.map(VideoTimings.init)
  }
}

/// The VESA CVT formula with its constants.
///
/// Durations are in nanoseconds. CVT counts widths in cells of 8 pixels.
private struct CoordinatedTiming {
  let width: Int
  let height: Int
  let rate: Int

  private static let cell = 8
  private static let second = 1_000_000_000

  /// The number of vertical sync lines.
  ///
  /// CVT defines a number for each standard aspect ratio, and 10 for all others.
  private var syncLines: Int {
    let shapes = [(4, 3, 4), (16, 9, 5), (16, 10, 6), (5, 4, 7), (15, 9, 7)]
    let matching = shapes.first { across, down, _ in
      width == (height * across / down) / Self.cell * Self.cell
    }
    return matching?.2 ?? 10
  }

  private var roundedWidth: Int { width / Self.cell * Self.cell }

  func normal() -> DriverTimings? {
    let frontLines = 3
    // CVT requires at least 550 µs for the vertical sync and the back porch together.
    let retrace = 550_000
    let line = (Self.second - retrace * rate) / ((height + frontLines) * rate)
    guard line > 0, roundedWidth > 0 else { return nil }
    let syncAndBack = max(retrace / line + 1, syncLines + frontLines)
    // The blanking as a fraction of the line, in 1/1000 percent. CVT defines it as 30 % minus 0.3 %
    // per microsecond of line time, and at least 20 %.
    let blankShare = max(20_000, 30_000 - 300 * line / 1000)
    let blank =
      (roundedWidth * blankShare / (100_000 - blankShare)) / (2 * Self.cell) * (2 * Self.cell)
    let total = roundedWidth + blank
    let sync = (total * 8 / 100) / Self.cell * Self.cell
    let clock = total * Self.second / line
    return timings(
      clock: clock - clock % 250_000,
      horizontal: (blank - blank / 2 - sync, sync, blank / 2),
      vertical: (frontLines, syncLines, syncAndBack - syncLines), isReduced: false)
  }

  func reduced(_ blanking: VideoTimings.Blanking) -> DriverTimings? {
    let isSecond = blanking == .reducedTwice
    let sync = isSecond ? 8 : syncLines
    let minimumFrontPorch = isSecond ? 1 : 3
    let minimumBackPorch = isSecond ? 6 : 7
    let blank = isSecond ? 80 : 160
    // CVT requires at least 460 µs of vertical blanking.
    let retrace = 460_000
    let line = (Self.second - retrace * rate) / (height * rate)
    guard line > 0 else { return nil }
    let blankLines = max(retrace / line + 1, minimumFrontPorch + sync + minimumBackPorch)
    // CVT-RB2 uses the exact width; the other versions round it to whole cells of 8 pixels.
    let total = (isSecond ? width : roundedWidth) + blank
    let clock = rate * total * (height + blankLines)
    let front = isSecond ? blankLines - minimumBackPorch - sync : minimumFrontPorch
    return timings(
      clock: clock - clock % (isSecond ? 1000 : 250_000),
      horizontal: (blank - blank / 2 - 32, 32, blank / 2),
      vertical: (front, sync, blankLines - front - sync), isReduced: true)
  }

  private func timings(
    clock: Int, horizontal: (Int, Int, Int), vertical: (Int, Int, Int), isReduced: Bool
  ) -> DriverTimings? {
    func blanking(
      _ lengths: (Int, Int, Int), isPositive: Bool
    ) -> DriverTimings.Blanking? {
      guard let front = UInt32(exactly: lengths.0), let sync = UInt32(exactly: lengths.1),
        let back = UInt32(exactly: lengths.2)
      else { return nil }
      return DriverTimings.Blanking(
        frontPorch: front, sync: sync, backPorch: back, isSyncPositive: isPositive)
    }
    guard clock > 0, let width = UInt32(exactly: width), let height = UInt32(exactly: height),
      let horizontal = blanking(horizontal, isPositive: isReduced),
      let vertical = blanking(vertical, isPositive: !isReduced)
    else { return nil }
    var timings = DriverTimings(
      width: width, height: height, pixelClock: UInt64(clock), horizontal: horizontal,
      vertical: vertical, standards: .cvt)
    if isReduced { timings.flags = DriverTimings.reducedBlanking }
    return timings
  }
}
