// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Makes a driver's times continuous, on the capture thread: clocks wrap, and some jump.
///
/// What a driver's clock cannot have done (gone back by much, or run ahead of the time that
/// passed here) is a wrap, which is undone exactly, or a jump, which is bridged by what the
/// sequence and our own clock say.
package struct TimestampUnwrapper {
  /// What counters of time count to, in microseconds: 32 bits of them, 32 and 31 bits of seconds,
  /// 64 bits of nanoseconds.
  private static let wraps: [Int64] = [
    1 << 32, (1 << 32) * 1_000_000, (1 << 31) * 1_000_000, 18_446_744_073_709_552,
  ]
  /// Less than this is jitter.
  private static let slack: Int64 = 500_000

  private let period: Int64
  private var offset: Int64 = 0
  /// The offset before the last jump, to which a clock that was wrong for a moment returns.
  private var offsetBefore: Int64 = 0
  private var last: (sequence: UInt32, microseconds: Int64, arrival: Int64)?
  /// The shortest time that a frame took to arrive; below it, it would come from the future.
  private var smallestLag = Int64.max

  /// - Parameter period: The frame duration that the driver granted, in microseconds.
  package init(period: Int64) { self.period = max(1, period) }

  /// The continuous time of a frame, and whether its clock jumped there.
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

  /// The step of a clock that explains what is missing: a wrap, or the way back from a jump.
  private func knownStep(_ missing: Int64) -> Int64? {
    let slack = max(period, Self.slack)
    // One after the other, since a list of them all would be made anew for each frame.
    if let wrap = Self.wraps.first(where: { distance(missing, $0) < slack }) { return wrap }
    let back = offsetBefore &- offset
    return distance(missing, back) < slack ? back : nil
  }

  /// Whether no clock that only goes on can tell this time: it went back by more than jitter,
  /// or the frame arrived sooner after its time than any before it did.
  private func isImpossible(_ time: Int64, _ arrival: Int64, after last: Int64) -> Bool {
    let elapsed = time.subtractingReportingOverflow(last)
    let lag = arrival.subtractingReportingOverflow(time)
    if elapsed.overflow || lag.overflow { return true }
    if elapsed.partialValue < -Self.slack { return true }
    let slack = max(Self.slack, period.saturatingMultiplied(by: 4))
    let gain = smallestLag.subtractingReportingOverflow(lag.partialValue)
    return smallestLag != .max && (gain.overflow || gain.partialValue > slack)
  }

  /// How much time must have passed since the last frame: the sequence says it, if that can be,
  /// else our own clock.
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

/// How far two numbers are apart, or the greatest distance there is.
private func distance(_ a: Int64, _ b: Int64) -> Int64 {
  let difference = a.subtractingReportingOverflow(b)
  guard !difference.overflow, difference.partialValue != .min else { return .max }
  return abs(difference.partialValue)
}
