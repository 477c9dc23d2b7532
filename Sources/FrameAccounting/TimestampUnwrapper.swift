// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Makes a driver's timestamps continuous across wraps and jumps.
///
/// Used by the capture thread only.
///
/// A timestamp is impossible if it goes back by more than jitter, or if it is ahead of the local
/// clock. If a wrap of known length explains the timestamp, the wrap is undone exactly. Otherwise
/// the time is computed from the sequence number or the local clock.
package struct TimestampUnwrapper {
  /// The periods after which drivers' clocks wrap, in microseconds.
  ///
  /// The clocks are counters of 32-bit microseconds, 32-bit or 31-bit seconds, and 64-bit
  /// nanoseconds.
  private static let wraps: [Int64] = [
    1 << 32, (1 << 32) * 1_000_000, (1 << 31) * 1_000_000, 18_446_744_073_709_552,
  ]
  /// The deviation in microseconds up to which a timestamp counts as jittered and not as wrong.
  private static let slack: Int64 = 500_000

  private let period: Int64
  private var offset: Int64 = 0
  /// The correction of timestamps, in microseconds, that was in use before the clock's last jump.
  ///
  /// A clock that was wrong only briefly jumps back, and the earlier correction is then right
  /// again.
  private var offsetBefore: Int64 = 0
  private var last: (sequence: UInt32, microseconds: Int64, arrival: Int64)?
  /// The shortest time from a frame's timestamp to its arrival so far, in microseconds.
  ///
  /// If a frame arrives a much shorter time after its timestamp, the timestamp is impossible.
  private var smallestLag = Int64.max

  /// Creates an unwrapper for a driver.
  ///
  /// - Parameter period: The frame duration that the driver granted, in microseconds.
  package init(period: Int64) { self.period = max(1, period) }

  /// Returns the continuous timestamp of a frame and whether the clock jumped at this frame.
  package mutating func read(
    _ frame: FrameObservation
  ) -> (microseconds: Int64, isJump: Bool) {
    let arrival = frame.arrival
    var time = frame.driverMicroseconds &+ offset
    var isJump = false
    if let last, isImpossible(time, arrival, after: last.microseconds) {
      let due = expected(frame, after: last)
      let missing = due &- (time &- last.microseconds)
      if distance(missing, 0) > period {
        let known = knownStep(missing)
        isJump = known == nil
        offsetBefore = offset
        offset = offset &+ (known ?? missing)
        time = frame.driverMicroseconds &+ offset
      }
    }
    let lag = arrival.subtractingReportingOverflow(time)
    if !lag.overflow { smallestLag = min(smallestLag, lag.partialValue) }
    last = (frame.sequence, time, arrival)
    return (time, isJump)
  }

  /// Returns the correction for a deviation of a timestamp if its cause is known, otherwise nil.
  ///
  /// The known causes are a wrap, and the return of the clock from its last jump.
  private func knownStep(_ missing: Int64) -> Int64? {
    let slack = max(period, Self.slack)
    // A wrap and the return of the clock are tested one after the other, because an array of all
    // corrections would allocate memory for every frame.
    if let wrap = Self.wraps.first(where: { distance(missing, $0) < slack }) { return wrap }
    let back = offsetBefore &- offset
    return distance(missing, back) < slack ? back : nil
  }

  /// Whether a timestamp is impossible for a monotonic clock.
  ///
  /// A timestamp is impossible if it goes back by more than jitter explains. It is also impossible
  /// if the time from it to the arrival of the frame is much shorter than for any frame before.
  private func isImpossible(_ time: Int64, _ arrival: Int64, after last: Int64) -> Bool {
    let elapsed = time.subtractingReportingOverflow(last)
    let lag = arrival.subtractingReportingOverflow(time)
    if elapsed.overflow || lag.overflow { return true }
    if elapsed.partialValue < -Self.slack { return true }
    let slack = max(Self.slack, period.saturatingMultiplied(by: 4))
    let gain = smallestLag.subtractingReportingOverflow(lag.partialValue)
    return smallestLag != .max && (gain.overflow || gain.partialValue > slack)
  }

  /// The expected time since the last frame, in microseconds.
  ///
  /// The time follows from the sequence number if the number is plausible, otherwise from the local
  /// clock.
  private func expected(
    _ frame: FrameObservation,
    after last: (sequence: UInt32, microseconds: Int64, arrival: Int64)
  ) -> Int64 {
    let passed = max(0, frame.arrival &- last.arrival)
    let steps = Int64(Int32(bitPattern: frame.sequence &- last.sequence))
    let counted = steps.saturatingMultiplied(by: period)
    guard steps >= 1, counted <= passed &+ 1_000_000 else { return max(period, passed) }
    return counted
  }
}

/// The distance between two numbers, clamped to the greatest 64-bit integer.
private func distance(_ a: Int64, _ b: Int64) -> Int64 {
  let difference = a.subtractingReportingOverflow(b)
  guard !difference.overflow, difference.partialValue != .min else { return .max }
  return abs(difference.partialValue)
}
