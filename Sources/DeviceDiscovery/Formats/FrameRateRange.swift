// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A closed range of frame rates that a camera supports.
///
/// A single rate is a range with equal ends. If the camera has a duration step, the range contains
/// the shortest duration, every whole number of steps above it, and the longest duration.
public struct FrameRateRange: Hashable, Sendable, CustomStringConvertible {
  /// The lowest rate of the range.
  public let minFrameRate: FrameRate
  /// The highest rate of the range.
  public let maxFrameRate: FrameRate
  /// The difference of neighboring frame durations in seconds.
  ///
  /// Nil if every duration in the range is supported, and for a single rate.
  public let frameDurationStep: MediaTime?

  /// Creates the range of a single rate.
  public init(_ rate: FrameRate) {
    minFrameRate = rate
    maxFrameRate = rate
    frameDurationStep = nil
  }

  /// Creates the range between two rates, in either order.
  ///
  /// - Parameters:
  ///   - first: One end.
  ///   - second: The other end.
  ///   - frameDurationStep: The difference of neighboring durations in seconds. Nil, zero or less
  ///     means that every duration is supported.
  public init(_ first: FrameRate, _ second: FrameRate, frameDurationStep: MediaTime? = nil) {
    minFrameRate = min(first, second)
    maxFrameRate = max(first, second)
    if let frameDurationStep, frameDurationStep > .zero, first != second {
      self.frameDurationStep = frameDurationStep
    } else {
      self.frameDurationStep = nil
    }
  }

  /// The shortest frame duration in seconds, which belongs to the highest rate.
  public var minFrameDuration: MediaTime { maxFrameRate.frameDuration }
  /// The longest frame duration in seconds, which belongs to the lowest rate.
  public var maxFrameDuration: MediaTime { minFrameRate.frameDuration }

  /// Whether a rate lies in the range and, if the range has a step, exactly on a step.
  public func contains(_ rate: FrameRate) -> Bool {
    guard minFrameRate <= rate, rate <= maxFrameRate else { return false }
    guard frameDurationStep != nil, rate != minFrameRate else { return true }
    // A rate is supported if the number of steps to its duration is a whole number. On overflow the
    // number is an invalid rational, whose denominator is not 1 either, so the rate is rejected.
    return steps(to: rate).denominator == 1
  }

  /// Whether the range contains all rates of another range.
  public func contains(_ other: FrameRateRange) -> Bool {
    guard contains(other.minFrameRate), contains(other.maxFrameRate) else { return false }
    guard let frameDurationStep, other.minFrameRate != other.maxFrameRate else { return true }
    guard let others = other.frameDurationStep?.seconds else { return false }
    return (others / frameDurationStep.seconds).denominator == 1
  }

  /// The supported rate with the nearest frame duration.
  ///
  /// If two rates are equally near, the higher one is returned.
  public func nearest(to rate: FrameRate) -> FrameRate {
    if contains(rate) { return rate }
    guard rate > minFrameRate else { return minFrameRate }
    guard rate < maxFrameRate, let frameDurationStep else { return maxFrameRate }
    let below = try? rateAfter(steps(to: rate).rounded(.towardNegativeInfinity), frameDurationStep)
    let above = try? rateAfter(steps(to: rate).rounded(.towardPositiveInfinity), frameDurationStep)
    // If the next step would exceed the longest duration, the longest duration is used.
    let slower = max(above ?? minFrameRate, minFrameRate)
    guard let faster = below else { return slower }
    let wanted = rate.frameDuration
    return slower.frameDuration - wanted < wanted - faster.frameDuration ? slower : faster
  }

  /// The number of steps from the shortest duration to a rate's duration, or 0 if the range has no
  /// step.
  private func steps(to rate: FrameRate) -> Rational {
    guard let step = frameDurationStep?.seconds else { return .zero }
    return (rate.frameDuration.seconds - minFrameDuration.seconds) / step
  }

  private func rateAfter(
    _ steps: Int128, _ step: MediaTime
  ) throws(MediaError) -> FrameRate {
    let added = Rational(steps) * step.seconds
    return try FrameRate(
      frameDuration: MediaTime(minFrameDuration.seconds + added))
  }

  /// The range as `"1/1...60/1"`, or a single rate as `"60/1"`.
  public var description: String {
    minFrameRate == maxFrameRate ? "\(maxFrameRate)" : "\(minFrameRate)...\(maxFrameRate)"
  }
}
