// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Makes a driver's timestamps continuous across wraps and jumps.
///
/// Capture thread only.
///
/// A timestamp is impossible when it goes far backwards or runs ahead of the local clock. A known
/// wrap is undone exactly. Any other jump is bridged by the sequence number and the local clock.
package struct TimestampUnwrapper {
  /// The known wrap lengths in microseconds: 32 bits of microseconds, 32 and 31 bits of seconds, 64
  /// bits of nanoseconds.
  private static let wraps: [Int64] = [
    1 << 32, (1 << 32) * 1_000_000, (1 << 31) * 1_000_000, 18_446_744_073_709_552,
  ]
  /// Smaller deviations count as jitter, in microseconds.
  private static let slack: Int64 = 500_000

  private let period: Int64
  private var offset: Int64 = 0
  /// The offset before the last jump.
  ///
  /// A clock that was wrong only briefly returns to it.
  private var offsetBefore: Int64 = 0
  private var last: (sequence: UInt32, microseconds: Int64, arrival: Int64)?
  /// The shortest time from timestamp to arrival so far.
  ///
  /// A much shorter one is impossible.
  private var smallestLag = Int64.max

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

  /// Returns a known step that explains the deviation: a wrap or the return from a jump.
  private func knownStep(_ missing: Int64) -> Int64? {
    let slack = max(period, Self.slack)
    // The two cases are tested in turn; a combined array would allocate for every frame.
    if let wrap = Self.wraps.first(where: { distance(missing, $0) < slack }) { return wrap }
    let back = offsetBefore &- offset
    return distance(missing, back) < slack ? back : nil
  }

  /// Whether no monotonic clock can produce this timestamp.
  ///
  /// It went back by more than jitter, or the frame arrived sooner after it than any before.
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
  /// The sequence number decides where plausible, otherwise the local clock.
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

/// The distance between two numbers, clamped to the maximum.
private func distance(_ a: Int64, _ b: Int64) -> Int64 {
  let difference = a.subtractingReportingOverflow(b)
  guard !difference.overflow, difference.partialValue != .min else { return .max }
  return abs(difference.partialValue)
}
