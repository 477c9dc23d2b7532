// SPDX-License-Identifier: Apache-2.0

/// Turns the driver's sequence numbers into frame periods, on the capture thread.
///
/// The span of the numbers is the one account of what was expected; what became of each period
/// is counted elsewhere, frame by frame, and the two must agree.
struct FrameJudge {
  private var last: FrameStamp?
  /// Frame periods so far, from the first that the driver claims (number 0).
  private(set) var periods: Int64 = 0

  /// Frame periods from the frame before to this one, at least 1.
  ///
  /// Numbers wrap at 2^32. A repeated number or one that goes backwards (both occur) still is a
  /// frame that arrived, so it counts as one period. A driver counts from 0 (`v4l2_buffer`),
  /// so the first number is how many were lost before it; a number too large to be a loss at
  /// the start is taken for a driver that does not.
  mutating func advance(to stamp: FrameStamp) -> Int64 {
    defer { last = stamp }
    let step: Int64
    if let last {
      step = max(1, Int64(Int32(bitPattern: stamp.sequence &- last.sequence)))
    } else {
      step = stamp.sequence < Self.plausibleStart ? Int64(stamp.sequence) + 1 : 1
    }
    periods += step
    return step
  }

  static let plausibleStart: UInt32 = 10_000
}
