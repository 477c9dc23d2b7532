// SPDX-License-Identifier: Apache-2.0
public import MediaTiming

/// The frame rates a camera can be set to, from the lowest to the highest, both included.
///
/// Cameras that offer single rates have one range for each, whose ends are equal.
public struct FrameRateRange: Hashable, Sendable, CustomStringConvertible {
  /// The lowest rate.
  public let minFrameRate: FrameRate
  /// The highest rate.
  public let maxFrameRate: FrameRate

  /// Makes the range that holds one rate.
  public init(_ rate: FrameRate) {
    minFrameRate = rate
    maxFrameRate = rate
  }

  /// Makes the range from one rate to another, in either order.
  public init(_ first: FrameRate, _ second: FrameRate) {
    minFrameRate = min(first, second)
    maxFrameRate = max(first, second)
  }

  /// The shortest time from one frame to the next, in seconds: that of the highest rate.
  public var minFrameDuration: MediaTime { maxFrameRate.frameDuration }
  /// The longest time from one frame to the next, in seconds: that of the lowest rate.
  public var maxFrameDuration: MediaTime { minFrameRate.frameDuration }

  /// Whether a rate lies in the range, exactly.
  public func contains(_ rate: FrameRate) -> Bool { minFrameRate <= rate && rate <= maxFrameRate }

  /// Whether all of another range lies in this one.
  public func contains(_ other: FrameRateRange) -> Bool {
    contains(other.minFrameRate) && contains(other.maxFrameRate)
  }

  /// The range as `"1/1...60/1"`, a single rate as `"60/1"`.
  public var description: String {
    minFrameRate == maxFrameRate ? "\(maxFrameRate)" : "\(minFrameRate)...\(maxFrameRate)"
  }
}
