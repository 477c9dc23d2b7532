// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The frame rates a camera can be set to, from the lowest to the highest, both included.
///
/// Cameras that offer single rates have one range for each, whose ends are equal. Where a camera
/// counts frame durations in steps, the range holds the durations of whole steps from the
/// shortest, and the longest.
public struct FrameRateRange: Hashable, Sendable, CustomStringConvertible {
  /// The lowest rate.
  public let minFrameRate: FrameRate
  /// The highest rate.
  public let maxFrameRate: FrameRate
  /// What neighbouring frame durations differ by, in seconds; nil where every duration will do,
  /// and for single rates.
  public let frameDurationStep: MediaTime?

  /// Makes the range that holds one rate.
  public init(_ rate: FrameRate) {
    minFrameRate = rate
    maxFrameRate = rate
    frameDurationStep = nil
  }

  /// Makes the range from one rate to another, in either order.
  ///
  /// - Parameters:
  ///   - first: One end.
  ///   - second: The other end.
  ///   - frameDurationStep: What neighbouring durations differ by, in seconds; nil, zero and
  ///     less mean that every duration will do.
  public init(_ first: FrameRate, _ second: FrameRate, frameDurationStep: MediaTime? = nil) {
    minFrameRate = min(first, second)
    maxFrameRate = max(first, second)
    if let frameDurationStep, frameDurationStep > .zero, first != second {
      self.frameDurationStep = frameDurationStep
    } else {
      self.frameDurationStep = nil
    }
  }

  /// The shortest time from one frame to the next, in seconds: that of the highest rate.
  public var minFrameDuration: MediaTime { maxFrameRate.frameDuration }
  /// The longest time from one frame to the next, in seconds: that of the lowest rate.
  public var maxFrameDuration: MediaTime { minFrameRate.frameDuration }

  /// Whether a rate lies in the range, exactly, and on its steps.
  public func contains(_ rate: FrameRate) -> Bool {
    guard minFrameRate <= rate, rate <= maxFrameRate else { return false }
    guard frameDurationStep != nil, rate != minFrameRate else { return true }
    // Numbers too large to count in steps are on none.
    return steps(to: rate).denominator == 1
  }

  /// Whether all of another range lies in this one.
  public func contains(_ other: FrameRateRange) -> Bool {
    guard contains(other.minFrameRate), contains(other.maxFrameRate) else { return false }
    guard let frameDurationStep, other.minFrameRate != other.maxFrameRate else { return true }
    guard let others = other.frameDurationStep?.seconds else { return false }
    return (others / frameDurationStep.seconds).denominator == 1
  }

  /// The rate of the range whose duration is the nearest; of two as near, the higher rate.
  public func nearest(to rate: FrameRate) -> FrameRate {
    if contains(rate) { return rate }
    guard rate > minFrameRate else { return minFrameRate }
    guard rate < maxFrameRate, let frameDurationStep else { return maxFrameRate }
    let below = try? rateAfter(steps(to: rate).rounded(.towardNegativeInfinity), frameDurationStep)
    let above = try? rateAfter(steps(to: rate).rounded(.towardPositiveInfinity), frameDurationStep)
    // The last step may lie beyond the longest duration, which stands for it.
    let slower = max(above ?? minFrameRate, minFrameRate)
    guard let faster = below else { return slower }
    let wanted = rate.frameDuration
    return slower.frameDuration - wanted < wanted - faster.frameDuration ? slower : faster
  }

  /// How many steps a rate's duration lies above the shortest; 0 without steps.
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

  /// The range as `"1/1...60/1"`, a single rate as `"60/1"`.
  public var description: String {
    minFrameRate == maxFrameRate ? "\(maxFrameRate)" : "\(minFrameRate)...\(maxFrameRate)"
  }
}
