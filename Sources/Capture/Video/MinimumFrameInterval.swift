// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Selects frames that are at least a minimum duration apart.
///
/// If the minimum is n frame periods of the camera, every nth frame is selected. The driver's
/// timestamps jitter, so a frame may then be early by at most a quarter of the minimum and at most
/// half a period. If the minimum is not a whole number of periods, no frame may be early.
struct MinimumFrameInterval {
  /// The camera's frame period in nanoseconds, rounded up.
  private let period: Int64
  /// The time of the last selected frame in microseconds.
  private var last: Int64?

  init(frameRate: FrameRate) {
    let exact = try? frameRate.frameDuration
      .converted(to: 1_000_000_000, rounding: .towardPositiveInfinity).value
    period = max(1, exact ?? 1)
  }

  /// Whether a frame comes too soon after the last selected frame.
  ///
  /// - Parameters:
  ///   - time: The capture time of the frame, in microseconds.
  ///   - minimum: The minimum duration in microseconds, or zero to select every frame.
  /// - Returns: True if the frame must be left out, false if it may be selected.
  func isTooSoon(_ time: Int64, minimum: Int64) -> Bool {
    // If the clock went back, the time since the last selected frame is unknown. The frame is
    // selected.
    guard let last, minimum > 0, time >= last else { return false }
    return time &- last < minimum - tolerance(minimum)
  }

  /// Records that the frame with this time was selected.
  mutating func choose(_ time: Int64) { last = time }

  /// Forgets the last selected frame, so that the next frame is selected.
  mutating func reset() { last = nil }

  /// The time by which a frame may be early, in microseconds.
  private func tolerance(_ minimum: Int64) -> Int64 {
    let (nanoseconds, overflow) = minimum.multipliedReportingOverflow(by: 1_000)
    if overflow { return 0 }
    // A minimum duration counts as n frame periods even if it is shorter by up to an eighth of a
    // period. At 239.76 fps, for example, four periods are slightly longer than a minimum of 1/60
    // s.
    let rest = nanoseconds % period
    guard rest == 0 || period - rest <= period / 8 else { return 0 }
    return min(period / 2_000, minimum / 4)
  }
}
