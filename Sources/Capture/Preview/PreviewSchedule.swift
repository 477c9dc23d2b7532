// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The schedule of a delayed preview: which capture time it shows at which time.
///
/// ```
///   speed 1     delay ─────────────────      speed < 1   delay    ╱│  ╱│  ╱
///                   0 ─────────────▶ time                    0 ╱  │╱  │╱  ▶ time
/// ```
struct PreviewSchedule: Hashable, Sendable {
  /// The constant delay at normal speed, or the greatest delay in slow motion, in microseconds.
  var delay: Int64
  var speed: Speed
  /// The time at which the schedule begins, in microseconds of the capture clock.
  var start: Int64

  /// Returns the capture time of the frame to show at a time, both in microseconds.
  ///
  /// In slow motion, the delay grows from zero. When the delay has reached its greatest value, it
  /// starts at zero again, with the newest frame.
  func shownTime(at time: Int64) -> Int64 {
    guard speed < .normal, delay > 0 else { return time - delay }
    let loss = 1 - speed.fraction
    let elapsed = Int128(max(0, time - start))
    let behind = elapsed * loss.numerator / loss.denominator % Int128(delay)
    return time - Int64(behind)
  }
}
