// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Chooses the frames that are a minimum duration apart.
///
/// A minimum that is a whole number of the camera's frame periods chooses each nth frame, although
/// the driver's times jitter: a frame may then come early by a quarter of the minimum, but by no
/// more than half a period. Any other minimum lies between two periods, and is held exactly.
struct MinimumFrameInterval {
  /// The camera's frame period in nanoseconds, rounded up.
  private let period: Int64
  /// When the frame chosen last was captured, in microseconds.
  private var last: Int64?

  init(frameRate: FrameRate) {
    let exact = try? frameRate.frameDuration
      .converted(to: 1_000_000_000, rounding: .towardPositiveInfinity).value
    period = max(1, exact ?? 1)
  }

  /// Whether a frame comes before the minimum after the one chosen last is over.
  ///
  /// - Parameters:
  ///   - time: When the frame was captured, in microseconds.
  ///   - minimum: The minimum in microseconds; zero for none.
  /// - Returns: Whether the frame is to be left out.
  func isTooSoon(_ time: Int64, minimum: Int64) -> Bool {
    // A clock that went back says nothing about how long ago the last frame was.
    guard let last, minimum > 0, time >= last else { return false }
    return time &- last < minimum - tolerance(minimum)
  }

  /// Takes a frame as the one chosen last.
  mutating func choose(_ time: Int64) { last = time }

  /// Forgets the frame chosen last.
  mutating func reset() { last = nil }

  /// By how much a frame may be early, in microseconds.
  private func tolerance(_ minimum: Int64) -> Int64 {
    let (nanoseconds, overflow) = minimum.multipliedReportingOverflow(by: 1_000)
    if overflow { return 0 }
    // An eighth of a period leaves room for rates such as 239.76, of which each fourth frame comes
    // a little later than at 60 a second.
    let rest = nanoseconds % period
    guard rest == 0 || period - rest <= period / 8 else { return 0 }
    return min(period / 2_000, minimum / 4)
  }
}
